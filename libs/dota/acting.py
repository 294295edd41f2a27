"""A small policy on observations as games write them, by one call: the core's part of five.agent.model.host_actor.

What it computes, and in which order everything lies, that module says; here is what holds it together. All numbers are
float32, rows are read as `dota.rows` reads them, and products are made with the widest instructions that the processor
has.
"""

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from dota import _core

Arrays = Mapping[str, npt.NDArray[Any]]


class Actor:
    """A policy with its parameters, which are copied. Any number of threads may ask it at once.

    ``net``: sizes, places, layers ([out, in], [out]) and tables by name. ``instructions``: 'portable' or 'avx2' in
    place of the widest, for the test that compares them. Raises ValueError where parts do not fit together.
    """

    def __init__(self, net: Mapping[str, Any], instructions: str = "") -> None:
        self._core = _core.Actor(dict(net), instructions)

    def act(self, seen: Arrays, done: Arrays) -> None:
        """Acts on the C-contiguous arrays of ``seen`` and writes those of ``done``; the interpreter's lock is free
        meanwhile. Raises ValueError for sizes that do not fit, IndexError for an id that has no vector."""
        self._core.act(dict(seen), dict(done))

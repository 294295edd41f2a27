"""Faults on purpose, for tests of surgery: nothing else reads this, and without the variable nothing happens.

``FIVE_SURGERY_FAULTS`` names a file, read at every order that the optimizer carries out, so that a test can change it
while the run goes on. A line is the order's kind and what happens then:

    transform fail          the order fails; another attempt may be made
    check refuse            the order is refused
    publish die             the process is killed as by kill -9 before it begins, at the order's first attempt
    publish die-after       ... after the work was done, before it is answered
    checkpoint wait 5       it takes five seconds longer

One line is about no order: it harms what is learned, as a change of the game may, so that an anneal's guard has a real
loss to find. It holds at every version for as long as it is there.

    version weights FILE    the learner's parameters become those in FILE, a NumPy archive of arrays by name
"""

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch

VARIABLE = "FIVE_SURGERY_FAULTS"


class Fault(RuntimeError):
    """An order that a test has made to fail. ``final``: another attempt would fail as well."""

    def __init__(self, kind: str, final: bool) -> None:
        super().__init__(f"a fault that {VARIABLE} asked for, at {kind!r}")
        self.final = final


def _of(kind: str) -> list[str]:
    path = os.environ.get(VARIABLE)
    if not path:
        return []
    try:
        lines = Path(path).read_text().splitlines()
    except FileNotFoundError:
        return []
    return next((words[1:] for line in lines if (words := line.split()) and words[0] == kind), [])


def before(kind: str, attempt: int) -> None:
    """What was asked for before an order is carried out. Raises Fault."""
    match _of(kind):
        case ["fail"]:
            raise Fault(kind, final=False)
        case ["refuse"]:
            raise Fault(kind, final=True)
        case ["die"] if attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        case ["wait", seconds]:
            time.sleep(float(seconds))


def after(kind: str, attempt: int) -> None:
    """What was asked for once an order was carried out."""
    if _of(kind) == ["die-after"] and attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def overwrite(parameters: Callable[[], Mapping[str, torch.Tensor]]) -> None:
    """Writes what was asked for into a policy's parameters, by name, before a version is made of them; ``parameters``
    is called only then. Raises KeyError for an unknown name."""
    match _of("version"):
        case ["weights", file]:
            named = parameters()
            with np.load(file, allow_pickle=False) as arrays:
                for name, array in arrays.items():
                    named[name].copy_(torch.from_numpy(array))

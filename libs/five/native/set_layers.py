"""Two linear layers over packed rows on a processor, and their gradients: out = second(relu(first(row))).

A row's columns come in pieces that are never put side by side in memory, and rows go through both layers a few at a
time. All arrays are float32, two-dimensional and C-contiguous, biases one-dimensional.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from five.native import _native

Floats = npt.NDArray[np.float32]


class Weights(NamedTuple):
    """Of both layers, or their gradients: [hidden, in], [hidden], [out, hidden], [out]."""

    first: Floats
    first_bias: Floats
    second: Floats
    second_bias: Floats


def forward(pieces: Sequence[Floats], weights: Weights, instructions: str = "") -> tuple[Floats, Floats]:
    """(hidden [R, hidden] behind the ReLU, out [R, out]) of ``pieces`` [R, ...], together the first layer's columns.

    ``instructions``: 'portable' or 'avx2' in place of the widest, for the test that compares them. What is no number
    shows. Raises ValueError for sizes that do not fit together.
    """
    rows = len(pieces[0]) if pieces else 0
    hidden = np.empty((rows, len(weights.first)), np.float32)
    out = np.empty((rows, len(weights.second)), np.float32)
    _native.set_forward(list(pieces), list(weights), hidden, out, instructions)
    return hidden, out


def backward(pieces: Sequence[Floats], learned: Sequence[bool], weights: Weights, hidden: Floats, gradient: Floats,
             instructions: str = "") -> tuple[Weights, list[Floats | None]]:
    """The gradients of the weights, and of those pieces of which something is ``learned``, for ``gradient`` [R, out] of
    what `forward` made; ``hidden`` is what it made too. Raises as `forward`."""
    of_weights = Weights(*map(np.empty_like, weights))
    of_pieces = [np.empty_like(piece) if wanted else None for piece, wanted in zip(pieces, learned, strict=True)]
    _native.set_backward(list(pieces), of_pieces, list(weights), list(of_weights), hidden, gradient, instructions)
    return of_weights, of_pieces

"""Where the numbers of a tensor come from: each new index from the old one of the same label."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.surgery.tensor_labels import Axis, Initializer, TensorLabels

Array = npt.NDArray[Any]
ZERO = Initializer("zero")


@dataclass(frozen=True)
class EntryInitializers:
    """What new numbers are drawn from: ``out`` for new outputs (whole slices), ``into`` for what the outputs that were
    there read of new inputs."""

    out: Initializer
    into: Initializer = ZERO


@dataclass(frozen=True)
class TensorRemap:
    """How one tensor is made. ``source`` is the old tensor ("" when all of it is new); ``indices`` by axis the old
    index of each new one, -1 for none; ``same``: it is the old tensor as it is."""

    labelled: TensorLabels
    source: str
    indices: tuple[npt.NDArray[np.int64], ...]
    same: bool

    @property
    def new(self) -> tuple[npt.NDArray[np.int64], ...]:
        """By axis, the indices that have no old one."""
        return tuple(np.flatnonzero(index < 0) for index in self.indices)


def list_remaps(old: Mapping[str, TensorLabels], new: Mapping[str, TensorLabels]) -> dict[str, TensorRemap]:
    """How each tensor of the new labels is made of the old ones'."""
    return {name: _move(name, labelled, old) for name, labelled in new.items()}


def _move(name: str, labelled: TensorLabels, old: Mapping[str, TensorLabels]) -> TensorRemap:
    source = name if name in old else labelled.clone_of if labelled.clone_of in old else ""
    if not source:
        return TensorRemap(labelled, "", tuple(np.full(len(axis), -1) for axis in labelled.axes), False)
    pairs = list(zip(labelled.axes, old[source].axes, strict=True))
    same = source == name and all(axis.labels == before.labels for axis, before in pairs)
    return TensorRemap(labelled, source, tuple(_index(axis, before) for axis, before in pairs), same)


def _index(axis: Axis, before: Axis) -> npt.NDArray[np.int64]:
    if axis.labels == before.labels:
        return np.arange(len(axis))
    place = {label: i for i, label in enumerate(before.labels)}
    parents = axis.parents or {}
    return np.array([place.get(label, place.get(parents.get(label, ""), -1)) for label in axis.labels], np.int64)


def remap_tensor(move: TensorRemap, source: Array | None, fill: EntryInitializers, seed: str) -> Array:
    """The new tensor. ``source``: the old tensor's numbers (None when all of it is new).

    Entries with an old counterpart are equal to it to the bit. ``seed`` is any text: the same text draws the same
    numbers on any machine, so that a version is the same wherever it is migrated.
    """
    if move.same:
        assert source is not None
        return source
    labelled = move.labelled
    dtype = np.dtype(labelled.dtype) if source is None else source.dtype
    array = np.zeros(labelled.shape, dtype)
    random = np.random.Generator(np.random.Philox(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big")))
    # Inputs first, then whole outputs, then what stays zero: a slice is what its last rule says.
    for role, initial in (("in", fill.into), ("out", fill.out), ("query", ZERO)):
        for at, (axis, new) in enumerate(zip(labelled.axes, move.new, strict=True)):
            if axis.role == role and len(new) and (initial.kind != "zero" or role == "query"):
                slices = (slice(None),) * at + (new,)
                array[slices] = sample_initial(initial, array[slices].shape, random) if initial.kind != "zero" else 0
    if labelled.none:
        array[0] = 0
    if source is not None:
        kept = tuple(np.flatnonzero(index >= 0) for index in move.indices)
        array[np.ix_(*kept)] = source[np.ix_(*(index[index >= 0] for index in move.indices))]
    return array


def sample_initial(initial: Initializer, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """float32 numbers from an initial distribution."""
    if initial.kind == "normal":
        return initial.scale * random.standard_normal(shape, np.float32)
    if initial.kind == "uniform":
        return (random.random(shape, np.float32) * 2 - 1) * np.float32(initial.scale)
    return np.zeros(shape, np.float32)

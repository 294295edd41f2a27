"""Remapping of tensors: each new index takes the entry of the old index with the same label."""

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
    """Initializers of new entries: ``out`` for new outputs (whole slices), ``into`` for weights of old outputs on new
    inputs."""

    out: Initializer
    into: Initializer = ZERO


@dataclass(frozen=True)
class TensorRemap:
    """Construction of one new tensor.

    ``source`` is the old tensor's name, "" for a new tensor. ``indices`` holds, per axis, the old index of each new
    one, -1 for none. ``same`` is True if the old tensor is used unchanged.
    """

    labelled: TensorLabels
    source: str
    indices: tuple[npt.NDArray[np.int64], ...]
    same: bool

    @property
    def new(self) -> tuple[npt.NDArray[np.int64], ...]:
        """Per axis, the indices without an old one."""
        return tuple(np.flatnonzero(index < 0) for index in self.indices)


def list_remaps(old: Mapping[str, TensorLabels], new: Mapping[str, TensorLabels]) -> dict[str, TensorRemap]:
    """Return the construction of each tensor of ``new`` from those of ``old``."""
    return {name: _remap(name, labelled, old) for name, labelled in new.items()}


def _remap(name: str, labelled: TensorLabels, old: Mapping[str, TensorLabels]) -> TensorRemap:
    source = name if name in old else labelled.clone_of if labelled.clone_of in old else ""
    if not source:
        return TensorRemap(labelled, "", tuple(np.full(len(axis), -1) for axis in labelled.axes), False)
    pairs = list(zip(labelled.axes, old[source].axes, strict=True))
    same = source == name and all(axis.labels == before.labels for axis, before in pairs)
    return TensorRemap(labelled, source, tuple(_old_indices(axis, before) for axis, before in pairs), same)


def _old_indices(axis: Axis, before: Axis) -> npt.NDArray[np.int64]:
    if axis.labels == before.labels:
        return np.arange(len(axis))
    old_index = {label: i for i, label in enumerate(before.labels)}
    parents = axis.parents or {}
    indices = [old_index.get(label, old_index.get(parents.get(label, ""), -1)) for label in axis.labels]
    return np.array(indices, np.int64)


def remap_tensor(remap: TensorRemap, source: Array | None, fill: EntryInitializers, seed: str) -> Array:
    """Return the new tensor. ``source`` holds the old tensor's entries, None for a new tensor.

    Entries with an old counterpart are bit-identical to it. ``seed`` is any text. Equal texts give equal random entries
    on every machine, so a version migrates to the same bits everywhere.
    """
    if remap.same:
        assert source is not None
        return source
    labelled = remap.labelled
    dtype = np.dtype(labelled.dtype) if source is None else source.dtype
    array = np.zeros(labelled.shape, dtype)
    random = np.random.Generator(np.random.Philox(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big")))
    # Whole outputs overwrite inputs. Everything else stays zero.
    for role, initial in (("in", fill.into), ("out", fill.out)):
        for at, (axis, new) in enumerate(zip(labelled.axes, remap.new, strict=True)):
            if axis.role == role:
                slices = (slice(None),) * at + (new,)
                array[slices] = sample_initial(initial, array[slices].shape, random)
    if labelled.none:
        array[0] = 0
    if source is not None:
        kept = tuple(np.flatnonzero(index >= 0) for index in remap.indices)
        array[np.ix_(*kept)] = source[np.ix_(*(index[index >= 0] for index in remap.indices))]
    return array


def sample_initial(initial: Initializer, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Return float32 samples of an initial distribution."""
    match initial.kind:
        case "normal":
            return initial.scale * random.standard_normal(shape, np.float32)
        case "uniform":
            return (random.random(shape, np.float32) * 2 - 1) * np.float32(initial.scale)
        case "zero":
            return np.zeros(shape, np.float32)

"""Rows of a batch: which of them one forward pass takes, and how its results come back in order."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from services.inference.requests import Array


def groups(versions: npt.NDArray[np.int64], greedy: npt.NDArray[np.bool_]
            ) -> list[tuple[tuple[int, bool], npt.NDArray[np.int64] | None]]:
    """Rows of each (version, greedy); None for all rows when there is one group."""
    keys = versions * 2 + greedy
    unique = np.unique(keys)
    if len(unique) == 1:
        return [((int(unique[0]) >> 1, bool(unique[0] & 1)), None)]
    return [((int(key) >> 1, bool(key & 1)), np.flatnonzero(keys == key)) for key in unique]


def merge(outputs: list[tuple[npt.NDArray[np.int64] | None, dict[str, Array]]], rows: int,
           want: npt.NDArray[np.bool_]) -> dict[str, Array]:
    """Puts the groups' rows back in order."""
    if len(outputs) == 1:
        return outputs[0][1]
    place = np.cumsum(want) - 1  # row -> its place among those that want their state
    merged: dict[str, Array] = {}
    for group, arrays in outputs:
        assert group is not None
        kept = place[group[want[group]]]
        for name, array in arrays.items():
            of_wanted = "/" in name
            if name not in merged:
                merged[name] = np.empty((int(want.sum()) if of_wanted else rows, *array.shape[1:]), array.dtype)
            merged[name][kept if of_wanted else group] = array
    return merged


def joined(arrays: Sequence[Array]) -> Array:
    """The arrays one after another; a single one as it is."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def to_numpy(tensor: torch.Tensor, dtype: Any) -> Array:
    """A tensor of any device as an array of ``dtype``."""
    return np.asarray(tensor.detach().cpu().numpy(), dtype)

"""Selection of the rows of a batch for each forward pass, and the merge of their results in order."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from five.services.inference.requests import Array


def groups(versions: npt.NDArray[np.int64], greedy: npt.NDArray[np.bool_]
           ) -> list[tuple[tuple[int, bool], npt.NDArray[np.int64] | None]]:
    """Return the rows of each (version, greedy) pair; None for all rows if there is one pair."""
    keys = versions * 2 + greedy
    if (keys == keys[0]).all():
        return [((int(keys[0]) >> 1, bool(keys[0] & 1)), None)]
    unique = np.unique(keys)
    return [((int(key) >> 1, bool(key & 1)), np.flatnonzero(keys == key)) for key in unique]


def merge(outputs: list[tuple[npt.NDArray[np.int64] | None, dict[str, Array]]], rows: int,
          chosen: Mapping[str, npt.NDArray[np.bool_]]) -> dict[str, Array]:
    """Merge the groups' rows in order.

    Arrays have one row for each row of the batch. Arrays named ``prefix/...`` have one for each row that is true in
    ``chosen[prefix]``, bool [rows].
    """
    if len(outputs) == 1:
        return outputs[0][1]
    positions = {prefix: np.cumsum(of) - 1 for prefix, of in chosen.items()}  # row -> its index among the chosen rows
    merged: dict[str, Array] = {}
    for group, arrays in outputs:
        assert group is not None
        for name, array in arrays.items():
            of = chosen.get(name.partition("/")[0])
            if name not in merged:
                merged[name] = np.empty((rows if of is None else int(of.sum()), *array.shape[1:]), array.dtype)
            merged[name][group if of is None else positions[name.partition("/")[0]][group[of[group]]]] = array
    return merged


def concatenate(arrays: Sequence[Array]) -> Array:
    """Concatenate arrays; return a single one uncopied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def to_numpy(tensor: torch.Tensor, dtype: Any) -> Array:
    """Copy a tensor from any device into an array of ``dtype``."""
    return np.asarray(tensor.detach().cpu().numpy(), dtype)

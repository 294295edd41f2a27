"""Rows of a batch: groups by version and greediness, and the merge of their results in the batch's order."""

import numpy as np
import pytest
import torch

from five.services.inference.rows import concatenate, groups, merge, to_numpy


def grouped(versions: list[int], greedy: list[bool]) -> dict[tuple[int, bool], list[int] | None]:
    found = groups(np.array(versions, np.int64), np.array(greedy, np.bool_))
    return {key: None if rows is None else rows.tolist() for key, rows in found}


def test_one_version_gets_the_whole_batch() -> None:
    assert grouped([7, 7, 7], [False] * 3) == {(7, False): None}
    assert grouped([0], [True]) == {(0, True): None}


def test_rows_are_grouped_by_version_and_greediness() -> None:
    assert grouped([7, 3, 7, 7, 0], [False, False, True, False, True]) == {
        (0, True): [4], (3, False): [1], (7, False): [0, 3], (7, True): [2]}


@pytest.mark.parametrize("seed", range(4))
def test_merged_rows_equal_those_of_one_forward_pass(seed: int) -> None:
    """States and policy debug data exist only for the rows that want them."""
    rng = np.random.default_rng(seed)
    rows = 9
    versions, greedy = rng.integers(0, 3, rows), rng.random(rows) < 0.3
    want = {"state": rng.random(rows) < 0.5, "debug": rng.random(rows) < 0.5}
    whole = {"actions": rng.integers(0, 30, (rows, 2)).astype(np.int16), "values": rng.random((rows, 1)),
             "state/h": rng.random((rows, 3)), "debug/choice": rng.random((rows, 4)).astype(np.float16)}

    def results(at: np.ndarray) -> dict[str, np.ndarray]:
        of = {name: want.get(name.partition("/")[0]) for name in whole}
        return {name: array[at] if (w := of[name]) is None else array[at[w[at]]] for name, array in whole.items()}

    outputs = [(at, results(np.arange(rows) if at is None else at)) for _, at in groups(versions, greedy)]
    merged = merge(outputs, rows, want)
    expected = results(np.arange(rows))
    assert merged.keys() == expected.keys()
    for name, array in expected.items():
        assert merged[name].dtype == array.dtype and np.array_equal(merged[name], array), name


def test_group_without_wanted_rows_leaves_the_others_in_place() -> None:
    outputs = [(np.array([1]), {"values": np.array([5.0])}),
               (np.array([0, 2]), {"values": np.array([4.0, 6.0]), "state/h": np.array([7.0])})]
    merged = merge(outputs, 3, {"state": np.array([False, False, True])})
    assert merged["values"].tolist() == [4, 5, 6] and merged["state/h"].tolist() == [7]


def test_single_array_is_not_copied() -> None:
    one, other = np.arange(3), np.arange(2)
    assert concatenate([one]) is one and concatenate([one, other]).tolist() == [0, 1, 2, 0, 1]
    arrays = {"values": one}
    assert merge([(None, arrays)], 3, {}) is arrays


def test_tensors_become_arrays_of_the_wire_dtype() -> None:
    tensor = torch.tensor([1.5, 2.0], requires_grad=True)
    found = to_numpy(tensor, np.float16)
    assert found.dtype == np.float16 and found.tolist() == [1.5, 2.0]

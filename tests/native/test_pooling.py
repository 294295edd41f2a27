"""Max-pools over packed rows and their gradient, against numpy."""

import numpy as np
import pytest

from five.native.pooling import pool_gradient, pool_rows


def pooled_of(values: np.ndarray, owner: np.ndarray, owners: int) -> np.ndarray:
    pooled = np.full((owners, values.shape[1]), 7.0, np.float32)  # what was there counts for nothing
    pool_rows(values, owner, pooled)
    return pooled


@pytest.mark.parametrize("width", [1, 7, 48])
def test_pools_are_the_largest_row_of_each_owner_or_zero(width: int) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, width)).astype(np.float32)
    owner = rng.integers(0, 6, 40)
    owner[owner == 2] = 3  # owner 2 has no rows
    values[owner == 4] = -np.abs(values[owner == 4])  # none of owner 4's reaches above the floor
    pooled, gradient = pooled_of(values, owner, 6), rng.normal(size=(6, width)).astype(np.float32)
    for o in range(6):
        np.testing.assert_array_equal(pooled[o], values[owner == o].max(0, initial=0.0))
    got = pool_gradient(values, owner, pooled, gradient)
    reached = (values == pooled[owner]) & (values > 0)
    np.testing.assert_array_equal(got, np.where(reached, gradient[owner], 0.0))
    assert (got.any(0) & (pooled > 0).any(0)).any()


def test_rows_that_share_a_maximum_share_its_gradient() -> None:
    values = np.array([[2.0], [2.0], [1.0], [2.0], [0.0]], np.float32)
    owner = np.array([0, 0, 0, 1, 2])
    pooled = pooled_of(values, owner, 3)
    assert pooled.tolist() == [[2.0], [2.0], [0.0]]
    got = pool_gradient(values, owner, pooled, np.array([[3.0], [5.0], [7.0]], np.float32))
    assert got.tolist() == [[1.5], [1.5], [0.0], [5.0], [0.0]]  # nothing reaches the floor, zero neither


def test_what_is_no_number_shows() -> None:
    values = np.array([[1.0, np.nan], [np.nan, 2.0], [3.0, 4.0]], np.float32)
    assert np.isnan(pooled_of(values, np.zeros(3, np.int64), 1)).all()


def test_no_rows_and_no_pools() -> None:
    assert pooled_of(np.zeros((0, 3), np.float32), np.zeros(0, np.int64), 2).tolist() == [[0.0] * 3] * 2
    assert pooled_of(np.zeros((0, 3), np.float32), np.zeros(0, np.int64), 0).shape == (0, 3)


def test_rows_of_nobody_and_wrong_sizes_are_refused() -> None:
    values, pooled = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
    for owner in ([0, 2], [-1, 0]):
        with pytest.raises(IndexError, match="an owner that there is not"):
            pool_rows(values, np.array(owner), pooled)
        with pytest.raises(IndexError, match="an owner that there is not"):
            pool_gradient(values, np.array(owner), pooled, pooled)
    with pytest.raises(ValueError, match="an owner for each row"):
        pool_rows(values, np.array([0]), pooled)
    with pytest.raises(ValueError, match="as wide as rows"):
        pool_rows(values, np.array([0, 1]), pooled[:, :2].copy())
    with pytest.raises(ValueError, match="of another size"):
        pool_gradient(values, np.array([0, 1]), pooled, pooled[:1].copy())

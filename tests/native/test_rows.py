"""Observation rows as float32 compared with numpy, with F16C and without."""

import numpy as np
import pytest

from five.native import RowColumns, _native
from five.native.rows import RowLayout, RunningSums, id_rows, standard_rows


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("fields", [1, 7, 8, 13, 16, 37])
def test_rows_are_standardised_and_clipped(fields: int, portable: bool) -> None:
    rng = np.random.default_rng(0)
    layout = RowLayout(width=3 * fields + 5, lines=2, offset=4, stride=fields, fields=fields)
    values = rng.normal(size=(4, 2, layout.width)).astype(np.float16)
    values[0, 0, 4] = 6e-8  # subnormal in float16
    values[0, 1, 4] = np.nan  # must not be clipped to the minimum
    step, slot, group = (np.array(a, np.int64) for a in ([0, 3, 3, 1], [0, 2, 1, 1], [1, 0, 1, 1]))
    scale, shift = rng.normal(size=(2, 2, fields)).astype(np.float32)
    out = np.zeros((4, 2, fields), np.float32)
    _native.standard_rows(values.view(np.uint16), layout, step, slot, group, scale.ravel(), shift.ravel(), 1.5, out,
                          portable=portable)
    for r in range(4):
        first = 4 + slot[r] * fields
        row = values[step[r], :, first:first + fields].astype(np.float64)
        # In float64 product and sum are exact enough that one rounding to float32 remains.
        expected = (row * scale[group[r]] + shift[group[r]]).astype(np.float32)
        np.testing.assert_array_equal(out[r], np.clip(expected, -1.5, 1.5))


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("fields", [1, 8, 13])
def test_raw_values_are_summed_by_group(fields: int, portable: bool) -> None:
    rng = np.random.default_rng(1)
    layout = RowLayout(width=2 * fields + 3, lines=2, offset=3, stride=fields, fields=fields)
    values = rng.normal(1000.0, 4.0, size=(150, 2, layout.width)).astype(np.float16)
    step, slot, group = rng.integers(0, 150, 400), rng.integers(0, 2, 400), np.repeat([2, 0, 2], [100, 250, 50])
    sums = np.zeros((4, 3 * fields))
    ones = np.ones(3 * fields, np.float32)
    _native.standard_rows(values.view(np.uint16), layout, step, slot, group, ones, ones, 1.0,
                          np.zeros((400, 2, fields), np.float32), tuple(sums), portable)
    count, pivot, total, squares = sums.reshape(4, 3, fields)
    rows = np.stack([values[s, :, 3 + i * fields:][:, :fields] for s, i in zip(step, slot, strict=True)]).astype(float)
    for g in (0, 2):
        mine = rows[group == g].reshape(-1, fields)
        assert (count[g] == len(mine)).all() and (pivot[g] == mine[0]).all()
        np.testing.assert_allclose(total[g], (mine - mine[0]).sum(0), rtol=1e-5, atol=1e-2)
        np.testing.assert_allclose(squares[g], ((mine - mine[0]) ** 2).sum(0), rtol=1e-5)
    assert not sums.reshape(4, 3, fields)[:, 1].any()
    with pytest.raises(ValueError, match="one number a field"):
        standard_rows(values, layout, step, slot, ones, ones, 1.0, np.zeros((400, 2, fields), np.float32), group,
                      RunningSums(*sums[:, 1:].copy()))


def test_rows_outside_the_array_are_refused() -> None:
    values, out = np.zeros((2, 10), np.float16), np.zeros((1, 4), np.float32)
    one, two = np.ones(4, np.float32), np.array([2])
    for layout, step, slot in ((RowLayout(10, 1, 0, 4, 4), two, two * 0), (RowLayout(10, 1, 0, 4, 4), two * 0, two),
                               (RowLayout(10, 1, 0, 4, 4), -two, two * 0), (RowLayout(10, 1, 0, 4, 4), two * 0, -two)):
        with pytest.raises(IndexError, match="outside the array"):
            standard_rows(values, layout, step, slot, one, one, 5.0, out)
    with pytest.raises(ValueError, match="multiple of a team-step"):
        standard_rows(values, RowLayout(7, 1, 0, 4, 4), two * 0, two * 0, one, one, 5.0, out)
    with pytest.raises(IndexError, match="unknown group"):
        standard_rows(values, RowLayout(10, 1, 0, 4, 4), two * 0, two * 0, one, one, 5.0, out, two)
    with pytest.raises(ValueError, match="size of out"):
        standard_rows(values, RowLayout(10, 1, 0, 4, 4), two * 0, two * 0, one, one, 5.0, out[:, :3].copy())
    with pytest.raises(IndexError, match="outside the array"):
        id_rows(np.zeros((2, 10), np.uint16), RowLayout(10, 1, 9, 2, 2), two * 0, two * 0)


def test_presence_by_id_owner_and_status() -> None:
    # Columns: a set's row that the last column owns, two rows with a status, a unit.
    columns = RowColumns([0, 1, 2, 3], [3], (2, 1, 3))
    ids = np.array([[5, 0, 7, 1], [5, 0, 0, 0], [0, 0, 0, 2]], np.uint16)
    shared = np.zeros((3, 8), np.float16)
    shared[1, 5] = 1.0  # status of the second such row
    shared[2, 1] = -0.0
    column, step = columns.find(ids, shared.view(np.uint16), 3)
    assert list(zip(column.tolist(), step.tolist(), strict=True)) == [(0, 0), (2, 0), (2, 1), (3, 0), (3, 2)]
    with pytest.raises(IndexError, match="a column"):
        columns.find(ids[:, :3].copy(), shared.view(np.uint16), 3)
    with pytest.raises(IndexError, match="an owner"):
        RowColumns([0], [1], (0, 0, 0))

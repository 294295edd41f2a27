"""Rows of observations as float32: against numpy, with the processor's conversion and without."""

import numpy as np
import pytest

from five.native import RowColumns, _native
from five.native.rows import Place, Sums, id_rows, standard_rows


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("fields", [1, 7, 8, 13, 16, 37])
def test_rows_are_standardised_and_clipped(fields: int, portable: bool) -> None:
    rng = np.random.default_rng(0)
    place = Place(width=3 * fields + 5, lines=2, offset=4, stride=fields, fields=fields)
    values = rng.normal(size=(4, 2, place.width)).astype(np.float16)
    values[0, 0, 4] = 6e-8  # below what float16 holds in full
    values[0, 1, 4] = np.nan  # shows, in place of passing for the least
    step, slot, group = (np.array(a, np.int64) for a in ([0, 3, 3, 1], [0, 2, 1, 1], [1, 0, 1, 1]))
    scale, shift = rng.normal(size=(2, 2, fields)).astype(np.float32)
    out = np.zeros((4, 2, fields), np.float32)
    _native.standard_rows(values.view(np.uint16), place, step, slot, group, scale.ravel(), shift.ravel(), 1.5, out,
                        portable=portable)
    for r in range(4):
        first = 4 + slot[r] * fields
        row = values[step[r], :, first:first + fields].astype(np.float64)
        # Of float64 products and sums of such numbers the rounding to float32 is that of one operation.
        expected = (row * scale[group[r]] + shift[group[r]]).astype(np.float32)
        np.testing.assert_array_equal(out[r], np.clip(expected, -1.5, 1.5))


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("fields", [1, 8, 13])
def test_values_are_added_up_by_group_as_they_were(fields: int, portable: bool) -> None:
    rng = np.random.default_rng(1)
    place = Place(width=2 * fields + 3, lines=2, offset=3, stride=fields, fields=fields)
    values = rng.normal(1000.0, 4.0, size=(150, 2, place.width)).astype(np.float16)
    step, slot, group = rng.integers(0, 150, 400), rng.integers(0, 2, 400), np.repeat([2, 0, 2], [100, 250, 50])
    sums = np.zeros((4, 3 * fields))
    standing = np.ones(3 * fields, np.float32)
    _native.standard_rows(values.view(np.uint16), place, step, slot, group, standing, standing, 1.0,
                        np.zeros((400, 2, fields), np.float32), tuple(sums), portable)
    count, near, total, squares = sums.reshape(4, 3, fields)
    rows = np.stack([values[s, :, 3 + i * fields:][:, :fields] for s, i in zip(step, slot, strict=True)]).astype(float)
    for g in (0, 2):
        mine = rows[group == g].reshape(-1, fields)
        assert (count[g] == len(mine)).all() and (near[g] == mine[0]).all()
        np.testing.assert_allclose(total[g], (mine - mine[0]).sum(0), rtol=1e-5, atol=1e-2)
        np.testing.assert_allclose(squares[g], ((mine - mine[0]) ** 2).sum(0), rtol=1e-5)
    assert not sums.reshape(4, 3, fields)[:, 1].any()
    with pytest.raises(ValueError, match="a sum for each field"):
        standard_rows(values, place, step, slot, standing, standing, 1.0, np.zeros((400, 2, fields), np.float32), group,
                      Sums(*sums[:, 1:].copy()))


def test_no_row_outside_of_the_array_is_read() -> None:
    values, out = np.zeros((2, 10), np.float16), np.zeros((1, 4), np.float32)
    one, two = np.ones(4, np.float32), np.array([2])
    for place, step, slot in ((Place(10, 1, 0, 4, 4), two, two * 0), (Place(10, 1, 0, 4, 4), two * 0, two),
                              (Place(10, 1, 0, 4, 4), -two, two * 0), (Place(10, 1, 0, 4, 4), two * 0, -two)):
        with pytest.raises(IndexError, match="a row that the array does not have"):
            standard_rows(values, place, step, slot, one, one, 5.0, out)
    with pytest.raises(ValueError, match="whole number of team-steps"):
        standard_rows(values, Place(7, 1, 0, 4, 4), two * 0, two * 0, one, one, 5.0, out)
    with pytest.raises(IndexError, match="an unknown group"):
        standard_rows(values, Place(10, 1, 0, 4, 4), two * 0, two * 0, one, one, 5.0, out, two)
    with pytest.raises(ValueError, match="out has another size"):
        standard_rows(values, Place(10, 1, 0, 4, 4), two * 0, two * 0, one, one, 5.0, out[:, :3].copy())
    with pytest.raises(IndexError, match="a row that the array does not have"):
        id_rows(np.zeros((2, 10), np.uint16), Place(10, 1, 9, 2, 2), two * 0, two * 0)


def test_rows_are_there_by_their_ids_their_owners_and_their_status() -> None:
    # Columns: a set's row that hangs on the last, two rows that are told by a status too, a unit.
    columns = RowColumns([0, 1, 2, 3], [3], (2, 1, 3))
    ids = np.array([[5, 0, 7, 1], [5, 0, 0, 0], [0, 0, 0, 2]], np.uint16)
    shared = np.zeros((3, 8), np.float16)
    shared[1, 5] = 1.0  # of the second row told by a status
    shared[2, 1] = -0.0
    column, step = columns.find(ids, shared.view(np.uint16), 3)
    assert list(zip(column.tolist(), step.tolist(), strict=True)) == [(0, 0), (2, 0), (2, 1), (3, 0), (3, 2)]
    with pytest.raises(IndexError, match="a column"):
        columns.find(ids[:, :3].copy(), shared.view(np.uint16), 3)
    with pytest.raises(IndexError, match="an owner"):
        RowColumns([0], [1], (0, 0, 0))

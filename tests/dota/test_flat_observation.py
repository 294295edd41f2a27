"""The observation as one row of numbers."""

import numpy as np
import pytest

from dota.flat import FlatObservation
from dota.spaces import ID_SPACES, Layout
from dota.vec_game import VecGame
from tests.dota.small_games import TEAM


@pytest.mark.parametrize("heroes", [1, 2])
def test_every_value_is_there_in_its_column(heroes):
    games = VecGame(TEAM, 3, seed=1)
    layout = games.layout
    arrays = {name: array[:, 1] for name, array in games.obs.items()}
    if heroes == 1:
        arrays = {name: a if name.startswith("shared") else a[:, 0] for name, a in arrays.items()}
    flat = FlatObservation(layout, heroes)
    rows = flat(arrays)
    assert rows.shape == (3, flat.size) and rows.dtype == np.float32
    assert flat.size == layout.shared + layout.shared_ids + heroes * (layout.private + layout.private_ids)
    assert np.array_equal(rows[:, : layout.shared], arrays["shared"].astype(np.float32))
    places = np.concatenate([flat.columns[name] for name in flat.columns])
    assert len(set(places.tolist())) == len(places)
    units = layout.blocks["units"]
    field = units.field("unit")
    at = units.offset["shared_ids"] + field.offset + np.arange(units.instances) * units.stride["shared_ids"]
    expected = arrays["shared_ids"][:, at].astype(np.float32) / ID_SPACES["unit"]
    assert np.allclose(rows[:, flat.columns["units.unit"]], expected) and expected.any()


def test_numbers_are_small():
    """Ids are scaled by their space, so that none outweighs the rest."""
    layout = Layout(TEAM)
    full = {name: np.full(shape, 0 if np.dtype(dtype).kind == "f" else 15, dtype)
            for name, (shape, dtype) in layout.array_specs().items()}
    row = FlatObservation(layout, 2)(full)
    assert 0 < row.max() <= 1

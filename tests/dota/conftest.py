"""Fixtures: the compiled core and the tables of both patches, loaded once for all tests of the game."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.dota.other_core import use_other_core

other = use_other_core()  # `make test-asan` and `make test-compilers`

DATA = Path(__file__).parents[2] / "libs" / "dota" / "data"
FILES = ("heroes", "abilities", "items", "units", "rules", "map")


def read_data(version: str) -> dict[str, Any]:
    """Return the six parsed files of a patch by name."""
    return {f: json.loads((DATA / f"dota-{version}" / f"{f}.json").read_text("ascii")) for f in FILES}


@pytest.fixture(scope="session")
def core() -> Any:
    core = pytest.importorskip("dota._core", reason="the core is not built: run `make build`", exc_type=ImportError)
    assert not other or core.__file__.startswith(other), f"the core tested is {core.__file__}, not that of {other}"
    return core


@pytest.fixture(scope="session")
def data() -> dict[str, Any]:
    return read_data("7.21d")


@pytest.fixture(scope="session")
def tables(core: Any, data: dict[str, Any]) -> Any:
    return core.load_tables(*(data[f] for f in FILES))


@pytest.fixture
def new_world(core: Any, tables: Any) -> Any:
    """Create a World; by default one Shadow Fiend a side in mid, at the horn, with lane creeps only."""

    def make(radiant: Any = ("nevermore",), dire: Any = ("nevermore",), seed: int = 1, **settings: Any) -> Any:
        quiet = {
            "start_s": 0.0,
            "neutrals": False,
            "roshan": False,
            "runes": False,
            "lanes": [False, False, False],
            "keep_tango": 0,
            "keep_salve": 0,
            "keep_clarity": 0,
        }
        return core.World(tables, quiet | settings, list(radiant), list(dire), seed)

    return make


@pytest.fixture
def lane() -> Any:
    """A VecGame: both heroes in the middle of mid, 400 apart, before creeps arrive."""
    # Not before the path above is set.
    from dota.vec_game import VecGame
    from tests.dota.watching import duel, hero_unit, place

    game = VecGame(duel(kills_to_win=5), 1, seed=1)
    place(game, hero_unit(game, 0), -700, -600)
    place(game, hero_unit(game, 1), -400, -330)
    game._core.observe(0)
    return game

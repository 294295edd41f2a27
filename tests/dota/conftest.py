"""Fixtures: the compiled core and the tables of patch 7.21d, loaded once for all tests of the game."""

from typing import Any

import pytest

from tests.dota.other_core import use_other_core
from tests.dota.scenes.patches import PATCHES, QUIET, load_tables, read_data

other = use_other_core()  # `make test-asan` and `make test-compilers`


@pytest.fixture(scope="session")
def core() -> Any:
    core = pytest.importorskip("dota._core", reason="the core is not built: run `make build`", exc_type=ImportError)
    assert not other or core.__file__.startswith(other), f"the core tested is {core.__file__}, not that of {other}"
    return core


@pytest.fixture(params=PATCHES)
def patch(request: pytest.FixtureRequest) -> str:
    """Run the test in both patches."""
    version: str = request.param
    return version


@pytest.fixture(scope="session")
def data() -> dict[str, Any]:
    return read_data("7.21d")


@pytest.fixture(scope="session")
def tables(core: Any, data: dict[str, Any]) -> Any:
    return load_tables(core, data)


@pytest.fixture
def new_world(core: Any, tables: Any) -> Any:
    """Create a quiet World (QUIET); by default of one Shadow Fiend a side."""

    def make(radiant: Any = ("nevermore",), dire: Any = ("nevermore",), seed: int = 1, **settings: Any) -> Any:
        return core.World(tables, QUIET | settings, list(radiant), list(dire), seed)

    return make


@pytest.fixture
def ground(core: Any, tables: Any) -> Any:
    return core.Ground(tables)


@pytest.fixture(scope="session")
def plain(core: Any) -> dict[str, Any]:
    """Tables of a fight (`Fight`) by helper, in which the helpers' abilities do nothing."""
    from tests.dota.fight import helpers

    nothing = [{"p": "phase", "to": "self", "dur": 0.1}]
    return helpers(core, nothing, nothing)


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

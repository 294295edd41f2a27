"""Knowledge of runes: what a team has seen of their spots since the last one appeared."""

import numpy as np

from dota.vec_game import VecGame
from tests.dota.watching import choose, duel, field, hero_unit, offered, place

GAMES = 4
POWER = range(4, 6)  # rows of the power spots; those of the bounty spots come first
ABSENT, UNKNOWN = [0, 1, 0], [0, 0, 1]  # the field `status`
HOME = (-6700.0, -6200.0)


def play_to(game: VecGame, seconds: float) -> None:
    while game.spectate(0)["time"] < seconds:
        game.step()


def power_status(game: VecGame, index: int) -> list[list[float]]:
    return field(game, "pickups", "status", index)[POWER.start:].tolist()


def spots(game: VecGame, index: int = 0) -> np.ndarray:
    return field(game, "pickups", "location", index) * 8192


def take_power_runes(game: VecGame) -> None:
    """Lead hero 0 of each game to both spots, to take what is there, and home."""
    for row in POWER:
        for index in range(GAMES):
            place(game, hero_unit(game, index=index), *map(float, spots(game)[row]), index=index)
        game.step()
        actions = np.zeros_like(game._no_actions)
        for index in range(GAMES):
            if "pickup" in offered(game, index):
                choose(game, "pickup", index, into=actions)
        game.step(actions)
        game.step()
    for index in range(GAMES):
        place(game, hero_unit(game, index=index), *HOME, index=index)


def test_nobody_knows_where_a_power_rune_appears() -> None:
    """Neither the spots' positions nor what was seen of them before give away which of the two has the next one."""
    game = VecGame(duel(runes=True), GAMES, seed=3)
    known = spots(game).copy()
    assert (np.abs(known).sum(axis=1) > 1000).all()
    for spawn in (120, 240, 360):
        play_to(game, spawn + 1)
        for index in range(GAMES):
            assert power_status(game, index) == [UNKNOWN, UNKNOWN], (spawn, index)
            np.testing.assert_array_equal(spots(game, index), known)
        take_power_runes(game)
        game.step()
        assert all(power_status(game, index) == [ABSENT, ABSENT] for index in range(GAMES))

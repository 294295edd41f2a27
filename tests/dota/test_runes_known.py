"""Knowledge of runes: what a team has seen of their spots since the last one appeared."""

import numpy as np

from dota.play import Order
from dota.vec_game import VecGame
from tests.dota.playing import frames, place, played, seen, unit
from tests.dota.watching import choose, duel, field, hero_unit, offered
from tests.dota.watching import place as place_in
from tests.dota.world_states import state_of

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
            place_in(game, hero_unit(game, index=index), *map(float, spots(game)[row]), index=index)
        game.step()
        actions = np.zeros_like(game._no_actions)
        for index in range(GAMES):
            if "pickup" in offered(game, index):
                choose(game, "pickup", index, into=actions)
        game.step(actions)
        game.step()
    for index in range(GAMES):
        place_in(game, hero_unit(game, index=index), *HOME, index=index)


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


def test_people_see_a_rune_until_its_spot_is_seen_empty() -> None:
    """A rune that an enemy took in the fog still shows where it was."""
    game = played(runes=True)
    rows = [row.tolist() for row in seen(game, None)["rune"]]
    x, y = (float(v) / 65535 * 16640 - 8320 for v in rows[0][1:])
    place(game, 0, x - 300, y)
    frames(game, 8)
    assert seen(game, 0)["rune"][0].tolist() == rows[0]
    place(game, 0, *HOME)
    game.take(5, True)
    place(game, 5, x, y)
    gold = unit(game, 5)["gold"]
    frames(game, 4)
    assert game.order(5, Order("pickup", at=(x, y))).ok
    frames(game, 8)
    assert unit(game, 5)["gold"] > gold + 30 and not seen(game, None)["rune"][0].any()
    assert seen(game, 0)["rune"][0].tolist() == rows[0]
    place(game, 0, x - 300, y)
    frames(game, 8)
    assert not seen(game, 0)["rune"][0].any()


def test_world_states_tell_no_more_of_runes() -> None:
    game = played(runes=True)
    place(game, 0, *HOME)
    known = [(rune.location.x, rune.location.y) for rune in state_of(game, 0).rune_infos]
    assert len(set(known)) == len(known) == 6
    frames(game, 121 * 30)
    told = state_of(game, 0).rune_infos
    assert [(rune.location.x, rune.location.y) for rune in told] == known
    assert [rune.status for rune in told[POWER.start:]] == [0, 0]

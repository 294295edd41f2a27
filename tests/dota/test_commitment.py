"""``commit_windups``: a policy's next choice does not cancel an attack or a cast in progress."""

import numpy as np
import pytest

from dota.vec_game import Controller, VecGame
from tests.dota.watching import choose, duel, field, hero_unit, offered, place


def fight(commit: bool) -> VecGame:
    """Both heroes in the middle of mid, 400 apart."""
    game = VecGame(duel(kills_to_win=5, commit_windups=commit), 1, seed=1)
    place(game, hero_unit(game, 0), -700, -600)
    place(game, hero_unit(game, 1), -400, -330)
    game._core.observe(0)
    return game


def enemy(game: VecGame) -> int:
    return game.layout.groups["enemy_heroes"].start


def hit_points(game: VecGame) -> float:
    return float(hero_unit(game, 1)["hp"])


def test_a_chosen_attack_is_all_that_is_offered_until_it_is_out() -> None:
    game = fight(commit=True)
    game.step(choose(game, "attack", unit=enemy(game)))
    waiting = 0
    while offered(game) == ["noop"]:
        game.step()
        waiting += 1
    # Attack point 0.5 s: the step in which the order arrives, then about four of windup.
    assert 4 <= waiting <= 6
    full = hit_points(game)
    for _ in range(4):  # the shot is on its way
        game.step(choose(game, "move", x=0, y=0) if "move" in offered(game) else None)
    assert hit_points(game) < full


def test_without_it_the_next_choice_cancels_the_attack() -> None:
    game = fight(commit=False)
    full = hit_points(game)
    game.step(choose(game, "attack", unit=enemy(game)))
    for _ in range(12):
        assert "move" in offered(game)
        game.step(choose(game, "move", x=4, y=3))
    assert hit_points(game) >= full


def test_a_random_policy_hits_often_only_when_it_is_bound() -> None:
    def damage(commit: bool) -> float:
        game = VecGame(duel(commit_windups=commit, max_game_seconds=120.0), 12, seed=3)
        rng = np.random.default_rng(0)
        while (game.winner == 0).any():
            actions = np.zeros((12, 2, 1, 6), np.int16)
            count = (game.obs["available"] != 0).sum(-1)
            actions[..., 0] = rng.integers(0, np.maximum(count, 1))
            actions[..., 4:] = rng.integers(0, 9, (12, 2, 1, 2))
            for index in np.ndindex(12, 2, 1):
                chosen = game.layout.actions[game.obs["available"][(*index, int(actions[(*index, 0)]))]]
                valid = np.flatnonzero(game.obs["target_mask"][(*index, int(chosen.mask))])
                if valid.size:
                    actions[(*index, 2)] = rng.choice(valid)
            game.step(actions, np.flatnonzero(game.winner == 0).astype(np.int32))
        return float(game.stats[..., 0].sum() + game.stats[..., 1].sum())

    assert damage(True) > 2 * damage(False) + 2


def test_bots_are_not_bound() -> None:
    games = [VecGame(duel(commit_windups=commit, max_game_seconds=90.0), 1, seed=2) for commit in (False, True)]
    for game in games:
        game.controllers[:] = [Controller.RANDOM, Controller.SCRIPTED]
        game.reset_as(0, 5)
        while game.winner[0] == 0:
            game.step()
    assert games[0].hash(0) == games[1].hash(0)
    assert games[0].game_time[0] == pytest.approx(games[1].game_time[0])
    assert field(games[0], "global", "time")[0, 0] == field(games[1], "global", "time")[0, 0]

"""``commit_windups`` and ``commit_moves``: a policy's next choice does not cancel an attack, a cast or a walk."""

from typing import Any

import numpy as np
import pytest

from dota.spaces import MaskClass
from dota.vec_game import Controller, VecGame
from tests.dota.watching import choose, duel, enemy_slot, field, hero_unit, mask, offered, place


def fight(commit: bool) -> VecGame:
    """Both heroes in the middle of mid, 400 apart."""
    game = VecGame(duel(kills_to_win=5, commit_windups=commit), 1, seed=1)
    place(game, hero_unit(game, 0), -700, -600)
    place(game, hero_unit(game, 1), -400, -330)
    game._core.observe(0)
    return game


def hit_points(game: VecGame) -> float:
    return float(hero_unit(game, 1)["hp"])


def test_a_chosen_attack_is_all_that_is_offered_until_it_is_out() -> None:
    game = fight(commit=True)
    game.step(choose(game, "attack", unit=enemy_slot(game)))
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
    game.step(choose(game, "attack", unit=enemy_slot(game)))
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


@pytest.mark.parametrize("bound", [{"commit_windups": True}, {"commit_moves": 4}, {"save_consumables": True}])
def test_bots_are_not_bound(bound: dict[str, Any]) -> None:
    games = [VecGame(duel(max_game_seconds=90.0, **commit), 1, seed=2) for commit in ({}, bound)]
    for game in games:
        game.controllers[:] = [Controller.RANDOM, Controller.SCRIPTED]
        game.reset_as(0, 5)
        while game.winner[0] == 0:
            game.step()
    assert games[0].hash(0) == games[1].hash(0)
    assert games[0].game_time[0] == pytest.approx(games[1].game_time[0])
    assert field(games[0], "global", "time")[0, 0] == field(games[1], "global", "time")[0, 0]


def walk(moves: int) -> VecGame:
    return VecGame(duel(kills_to_win=5, commit_moves=moves), 1, seed=1)


@pytest.mark.parametrize("action", ["move", "follow"])
@pytest.mark.parametrize("moves", [0, 1, 3])
def test_a_hero_that_chose_to_walk_is_offered_to_only_after_some_choices(action: str, moves: int) -> None:
    game = walk(moves)
    place(game, hero_unit(game, 0), -700, -600)
    game.step(choose(game, "move", x=4, y=4))
    for _ in range(moves):
        game.step()
    unit = mask(game, MaskClass.ALLY)[0] if action == "follow" else 0
    game.step(choose(game, action, unit=unit, x=0, y=4))
    for _ in range(moves):
        assert not {"move", "follow"} & set(offered(game)) and "noop" in offered(game)
        before = hero_unit(game, 0)
        game.step()
        assert hero_unit(game, 0)["x"] != before["x"] or hero_unit(game, 0)["y"] != before["y"]
    assert "move" in offered(game)


def test_a_walking_hero_may_attack_and_then_walk() -> None:
    """The attack ends the walk, but not the wait for the next one."""
    game = fight(commit=False)
    bound = VecGame(duel(kills_to_win=5, commit_moves=2), 1, seed=1)
    for hero, (x, y) in ((0, (-700, -600)), (1, (-400, -330))):
        place(bound, hero_unit(bound, hero), x, y)
    bound._core.observe(0)
    bound.step(choose(bound, "move", x=0, y=0))
    assert {"noop", "attack"} <= set(offered(bound)) and "move" not in offered(bound)
    bound.step(choose(bound, "attack", unit=enemy_slot(bound)))
    assert "move" not in offered(bound)
    bound.step()
    assert "move" in offered(bound)
    game.step(choose(game, "move", x=0, y=0))
    assert "move" in offered(game)


def test_a_random_walk_goes_farther_when_it_is_bound() -> None:
    """200 choices of a random direction, 100 games; the distance grows with the root of a walk's length."""
    def gone(moves: int) -> float:
        game = VecGame(duel(kills_to_win=0, commit_moves=moves, start_seconds=-60.0), 100, seed=3)
        start = np.array([[unit["x"], unit["y"]] for unit in (hero_unit(game, index=i) for i in range(100))])
        rng = np.random.default_rng(0)
        for _ in range(200):
            actions = np.zeros((100, 2, 1, 6), np.int16)
            for i in range(100):
                names = [game.layout.actions[int(a)].name for a in game.obs["available"][i, 0, 0] if a]
                actions[i, 0, 0, 0] = names.index("move") if "move" in names else names.index("noop")
            actions[..., 4:] = rng.integers(0, 9, (100, 2, 1, 2))
            game.step(actions)
        now = np.array([[unit["x"], unit["y"]] for unit in (hero_unit(game, index=i) for i in range(100))])
        return float(np.mean(np.hypot(*(now - start).T)))

    assert gone(4) > 1.5 * gone(0)

"""Game with people: frames, control of heroes, and equality with the stepped game when nobody takes part."""

from typing import Any

import numpy as np
import pytest

from dota import play
from dota.game import Game
from dota.play import OFFERED, InteractiveGame, Order
from dota.vec_game import Controller
from tests.dota.playing import MIDDLE, frames, order, place, played, unit
from tests.dota.small_games import TEAM
from tests.dota.watching import choose, duel


@pytest.mark.parametrize("controller", [Controller.HARD, Controller.RANDOM, Controller.POLICY])
def test_without_people_it_is_the_game_that_is_stepped(controller: Controller) -> None:
    stepped, framed = Game(TEAM, 3), InteractiveGame(TEAM, 3)
    for game in (stepped, framed):
        game.controllers[:] = controller
    chance = np.random.default_rng(1)
    for _ in range(200):
        actions = chance.integers(0, 9, stepped._vec._no_actions.shape[1:], dtype=np.int16)
        stepped.step(actions)
        framed.begin(actions)
        told = []
        for _ in range(4):
            framed.frame()
            told += framed.events()
        assert framed.hash() == stepped.hash()
        assert told == stepped.events()
    for name, array in stepped.obs.items():
        np.testing.assert_array_equal(framed.obs[name], array)
    np.testing.assert_array_equal(framed.stats, stepped.stats)
    np.testing.assert_array_equal(framed.signals, stepped.signals)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_choice_during_frames_equals_choice_at_the_start(after: int) -> None:
    at_once, meanwhile = InteractiveGame(TEAM, 3), InteractiveGame(TEAM, 3)
    for game in (at_once, meanwhile):
        game.controllers[:] = Controller.POLICY, Controller.HARD  # the bot chooses once all the same
        game.take(1, True)
    chance = np.random.default_rng(1)
    for _ in range(150):
        actions = chance.integers(0, 9, at_once._vec._no_actions.shape[1:], dtype=np.int16)
        at_once.step(actions)
        meanwhile.begin()
        for frame in range(4):
            if frame == after:
                meanwhile.choose(actions)
            meanwhile.frame()
        assert meanwhile.hash() == at_once.hash()
    np.testing.assert_array_equal(meanwhile.obs["shared"], at_once.obs["shared"])
    with pytest.raises(ValueError, match="begin"):
        meanwhile.choose(actions)


def test_a_late_answer_refers_to_its_own_observation() -> None:
    game = InteractiveGame(TEAM.model_copy(update={"max_game_seconds": 900}), 3)
    chance = np.random.default_rng(2)
    moved = 0
    while game.time < 600:
        game.controllers[:] = Controller.HARD  # stays where creeps come and go
        for _ in range(4):
            game.step()
        game.controllers[:] = Controller.POLICY
        actions = np.zeros(game._vec._no_actions.shape[1:], np.int16)
        actions[..., 1] = game.obs["target_mask"][..., 0, :].argmax(-1)  # the first that may be attacked
        offered = game.obs["available"]
        which = chance.random(offered.shape[:2]) * (offered > 0).sum(-1)
        actions[..., 0] = np.take_along_axis(offered, which.astype(int)[..., None], -1)[..., 0]
        game.begin()
        game.choose(actions)
        meant = game._play.commands()
        for _ in range(4):
            game.frame()
        game.begin()
        game.choose(actions, 1)
        assert game._play.commands() == meant
        game.choose(actions)
        moved += game._play.commands() != meant
        for _ in range(4):
            game.frame()
    assert moved > 4  # available actions and unit slots change between timesteps
    game.begin()
    for age in (-1, OFFERED):
        with pytest.raises(ValueError, match="not kept"):
            game.choose(actions, age)


def test_a_game_that_ends_between_two_timesteps_ends_the_same() -> None:
    config = TEAM.model_copy(update={"max_game_seconds": 3.05})
    stepped, framed = Game(config, 3), InteractiveGame(config, 3)
    for _ in range(60):
        stepped.step()
        framed.step()
    assert framed.winner == stepped.winner != 0
    assert framed.hash() == stepped.hash() and framed.time == stepped.time < 3.1


def test_frames_out_of_order_are_refused() -> None:
    game = InteractiveGame(duel(), 1)
    with pytest.raises(ValueError, match="begin"):
        game.frame()
    game.begin()
    with pytest.raises(ValueError, match="under way"):
        game.begin()
    for n in range(1, 5):
        game.frame()
        assert game.engine_frame == n
    with pytest.raises(ValueError, match="begin"):
        game.frame()
    with pytest.raises(ValueError, match="int16"):
        game.begin(np.zeros((2, 1, 6), np.int32))
    with pytest.raises(ValueError, match="another one"):
        game.reset(1)
    with pytest.raises(ValueError, match="cannot be restored"):
        game.restore(game.snapshot())
    with pytest.raises(IndexError):
        game.take(3, True)


def test_observations_come_with_the_fourth_frame() -> None:
    game = InteractiveGame(duel(), 1)
    before = game.obs["shared"].copy()
    game.begin()
    for _ in range(4):
        np.testing.assert_array_equal(game.obs["shared"], before)
        game.frame()
    assert (game.obs["shared"] != before).any()


def test_a_held_hero_ignores_its_policy_and_a_released_one_obeys() -> None:
    game = played()
    walk = choose(game._vec, "move", x=8)[0]
    at = unit(game, 0)["x"]

    def walks(steps: int) -> float:
        for _ in range(steps):
            game.step(walk)
        return float(unit(game, 0)["x"])

    assert walks(5) == at
    game.take(0, False)
    assert walks(5) > at + 50
    game.take(0, True)
    order(game, "stop")
    frames(game, 3)
    at = unit(game, 0)["x"]
    assert walks(5) == at


def test_a_held_hero_ignores_its_bot_and_scripts() -> None:
    def play_on(held: bool, scripted: bool) -> InteractiveGame:
        game = InteractiveGame(duel(), 1)
        game.controllers[:] = Controller.SCRIPTED
        game._vec._core.give_gold(0, 0, 3000)
        if held:
            game.take(0, True, scripted=scripted)
        for _ in range(40):
            game.step()
        return game

    def owned(game: InteractiveGame) -> int:
        return sum(bool(i) for i in unit(game, 0)["items"])

    free, scripted, held = play_on(False, False), play_on(True, True), play_on(True, False)
    home = unit(InteractiveGame(duel(), 1), 0)
    assert unit(free, 0)["x"] != home["x"]
    for game in (scripted, held):
        assert (unit(game, 0)["x"], unit(game, 0)["y"]) == (home["x"], home["y"])
    assert owned(scripted) > owned(held) == sum(bool(i) for i in home["items"])
    assert unit(held, 0)["gold"] > unit(scripted, 0)["gold"] + 500
    held._vec._core.give_xp(0, 0, 1000)
    scripted._vec._core.give_xp(0, 0, 1000)
    ranks = [sum(level for _, level, _ in unit(game, 0)["abilities"]) for game in (held, scripted)]
    assert ranks[0] < ranks[1]
    held.take(0, False)
    for _ in range(40):
        held.step()
    assert owned(held) > 0 and unit(held, 0)["x"] != home["x"]
    assert sum(level for _, level, _ in unit(held, 0)["abilities"]) == ranks[1]


@pytest.mark.parametrize("buys", [False, True])
def test_scripts_buy_and_learn_independently(buys: bool) -> None:
    game = InteractiveGame(duel(), 1)
    game._vec._core.give_gold(0, 0, 3000)
    home = unit(game, 0)
    game.take(0, True, scripted=buys, learns=not buys)
    for _ in range(40):
        game.step()
    game._vec._core.give_xp(0, 0, 1000)

    def ranks(body: dict[str, Any]) -> int:
        return sum(level for _, level, _ in body["abilities"])

    body = unit(game, 0)
    assert (body["gold"] < home["gold"] - 500) == buys and (ranks(body) > ranks(home)) == (not buys)
    game.take(0, True, scripted=True)
    for _ in range(4):
        game.step()
    assert ranks(unit(game, 0)) > ranks(home), "a script that takes over spends the points"


def test_the_scripts_first_skill_can_be_forgotten() -> None:
    game = InteractiveGame(duel(), 1)
    assert sum(level for _, level, _ in unit(game, 0)["abilities"]) == 1
    game.take(0, True)
    game.forget_skills(0)
    frames(game, 8)
    assert sum(level for _, level, _ in unit(game, 0)["abilities"]) == 0
    assert order(game, "level", slot=0).ok and order(game, "level", slot=4) == (False, "points")
    assert unit(game, 0)["abilities"][0][1] == 1
    with pytest.raises(ValueError, match="begun"):
        game.forget_skills(0)
    with pytest.raises(IndexError, match="no such hero"):
        InteractiveGame(duel(), 1).forget_skills(3)
    again = InteractiveGame(duel(), 1)
    again.forget_skills(0)
    with pytest.raises(ValueError, match="recorded"):
        again.record()
    recorded = InteractiveGame(duel(), 1)
    recorded.record()
    with pytest.raises(ValueError, match="recorded"):
        recorded.forget_skills(0)


def test_orders_to_uncontrolled_heroes_are_refused() -> None:
    game = played()
    assert game.order(5, Order("stop")) == (False, "not_held")
    assert game.order(3, Order("stop")) == (False, "unknown")
    assert game.order(99, Order("stop")) == (False, "unknown")
    assert game.order(0, Order("dance")) == (False, "unknown")
    game.take(0, False)
    assert game.order(0, Order("stop")) == (False, "not_held")


def test_an_order_to_a_game_that_is_over_is_refused() -> None:
    game = played(max_game_seconds=1.0)
    frames(game, 40)
    assert game.order(0, Order("stop")) == (False, "game_over")


def test_an_order_takes_effect_in_the_next_frame() -> None:
    game = played()
    place(game, 0, *MIDDLE)
    at = unit(game, 0)["x"]
    assert game.order(0, Order("move", at=(MIDDLE[0] + 500, MIDDLE[1]))).ok
    assert unit(game, 0)["order"] == 0
    frames(game, 1)
    assert unit(game, 0)["order"] == 3
    frames(game, 15)
    assert unit(game, 0)["x"] > at


def test_refusals_have_words() -> None:
    assert len(set(play.REFUSALS)) == len(play.REFUSALS)
    assert {"dead", "stunned", "silenced", "mana", "cooldown", "not_learned", "unseen", "target", "range", "gold",
            "shop", "stock", "full", "slot", "points", "game_over", "unknown"} <= set(play.REFUSALS)

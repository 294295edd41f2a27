"""Orders of people to a hero's body, each kind in a small scene, and the reason of each refusal."""

import math

import pytest

from dota.play import InteractiveGame, Order
from tests.dota.playing import MIDDLE, frames, handle, order, place, played, unit
from tests.dota.watching import duel

EAST = (MIDDLE[0] + 600, MIDDLE[1])
FAR = (-6500.0, 6500.0)  # a corner that nobody looks at


def beside(hero: str = "nevermore", gap: float = 300.0) -> InteractiveGame:
    """Return the person's hero and an enemy who stands still, within sight of each other."""
    game = played(hero)
    game.take(5, True)
    frames(game, 4)
    place(game, 5, MIDDLE[0] + gap, MIDDLE[1])
    order(game, "hold", 5)
    frames(game, 4)
    return game


def learn(game: InteractiveGame, slot: int, hero: int = 0) -> None:
    """Ensure that the ability has a rank."""
    if not unit(game, hero)["abilities"][slot][1]:
        game._vec._core.give_xp(0, hero, 2000)
        assert order(game, "level", hero, slot=slot).ok


def gap(game: InteractiveGame) -> float:
    a, b = unit(game, 0), unit(game, 5)
    return math.dist((a["x"], a["y"]), (b["x"], b["y"]))


def test_move_goes_there_and_ends() -> None:
    game = played()
    assert order(game, "move", at=EAST).ok
    frames(game, 120)
    u = unit(game, 0)
    assert math.dist((u["x"], u["y"]), EAST) < 60 and u["order"] == 0


def test_a_first_move_before_the_horn_goes_to_the_middle() -> None:
    game = InteractiveGame(duel(start_seconds=-20.0), 1)
    game.take(0, True)
    frames(game, 4)
    before = unit(game, 0)
    assert game.order(0, Order("move", at=(0.0, 0.0))).ok
    frames(game, 60)
    now = unit(game, 0)
    assert math.dist((before["x"], before["y"]), (now["x"], now["y"])) > 200


def test_stop_ends_movement() -> None:
    game = played()
    order(game, "move", at=EAST)
    frames(game, 20)
    assert order(game, "stop").ok
    at = unit(game, 0)["x"]
    frames(game, 10)
    assert unit(game, 0)["x"] == at < EAST[0] - 100


def test_follow_stays_with_the_unit() -> None:
    game = beside(gap=600)
    assert order(game, "follow", target=handle(unit(game, 5))).ok
    frames(game, 60)
    assert gap(game) < 250
    order(game, "move", 5, at=(MIDDLE[0] + 1000, MIDDLE[1] - 700))
    frames(game, 120)
    assert gap(game) < 300


def test_following_ends_when_the_target_is_out_of_sight() -> None:
    game = beside(gap=300)
    assert order(game, "follow", target=handle(unit(game, 5))).ok
    frames(game, 20)
    last = unit(game, 5)
    place(game, 5, *FAR)
    frames(game, 120)
    body = unit(game, 0)
    assert math.dist((body["x"], body["y"]), (last["x"], last["y"])) < 60 and body["order"] == 0


def test_attack_strikes() -> None:
    game = beside()
    before = unit(game, 5)["hp"]
    assert order(game, "attack", target=handle(unit(game, 5))).ok
    frames(game, 60)
    assert unit(game, 5)["hp"] < before and unit(game, 0)["order"] == 4


def test_attack_move_fights_enemies_on_the_way() -> None:
    game = beside(gap=700)
    before = unit(game, 5)["hp"]
    assert order(game, "attack_move", at=(MIDDLE[0] + 2000, MIDDLE[1])).ok
    frames(game, 90)
    assert unit(game, 5)["hp"] < before and unit(game, 0)["x"] < MIDDLE[0] + 700


def test_hold_keeps_its_place() -> None:
    game = beside(gap=700)
    order(game, "attack", target=handle(unit(game, 5)))
    frames(game, 5)
    assert order(game, "hold").ok
    at = unit(game, 0)["x"]
    frames(game, 60)
    assert unit(game, 0)["x"] == at


def test_cast_without_a_target_and_its_refusals() -> None:
    game = beside(gap=200)
    assert order(game, "cast", slot=5) == (False, "not_learned")
    learn(game, 0)
    assert order(game, "cast", slot=4) == (False, "slot")  # passive
    before, mana = unit(game, 5)["hp"], unit(game, 0)["mana"]
    assert order(game, "cast", slot=0).ok
    frames(game, 45)
    assert unit(game, 5)["hp"] < before - 50 and unit(game, 0)["mana"] < mana - 50
    assert order(game, "cast", slot=0) == (False, "cooldown")
    for slot in (-1, 6, 400):
        assert order(game, "cast", slot=slot) == (False, "slot")
    while order(game, "cast", slot=0).reason != "mana":
        frames(game, 60)
        assert game.engine_frame < 3000


def test_cast_on_a_unit_and_its_refusals() -> None:
    game = beside("lion", gap=300)
    learn(game, 1)  # Hex
    assert order(game, "cast", slot=1) == (False, "target")
    assert order(game, "cast", slot=1, at=EAST) == (False, "target")
    assert order(game, "cast", slot=1, target=handle(unit(game, 0))) == (False, "target")
    assert order(game, "cast", slot=1, target=handle(unit(game, 5))).ok
    frames(game, 20)
    learn(game, 0, 5)
    assert order(game, "cast", 5, slot=0, at=MIDDLE) == (False, "stunned")
    assert order(game, "move", 5, at=EAST).ok


def test_a_spell_for_units_is_aimed_at_the_ground() -> None:
    """Lightning Bolt on the ground strikes the closest enemy hero within 325 (tooltip)."""
    game = beside("zuus", gap=500)
    learn(game, 1)
    game._vec._core.place(0, unit(game, 5)["slot"], MIDDLE[0] + 500, MIDDLE[1])
    before = unit(game, 5)["hp"]
    assert order(game, "cast", slot=1, at=(MIDDLE[0] + 300, MIDDLE[1])).ok
    frames(game, 30)
    assert unit(game, 5)["hp"] < before - 40  # the fountain still heals
    assert not order(game, "cast", slot=0, at=(MIDDLE[0] + 300, MIDDLE[1])).ok  # Arc Lightning is for units only


def test_cast_at_a_place_walks_up() -> None:
    game = beside("sniper", gap=2400)
    learn(game, 0)  # Shrapnel
    there = unit(game, 5)
    assert order(game, "cast", slot=0) == (False, "target")
    assert order(game, "cast", slot=0, at=(there["x"], there["y"])).ok
    frames(game, 160)
    assert unit(game, 5)["hp"] < there["hp"] and unit(game, 0)["x"] > MIDDLE[0] + 300


def test_level_takes_points_and_is_refused_without() -> None:
    game = played()
    assert order(game, "level", slot=5) == (False, "level")
    slot = 3 if not unit(game, 0)["abilities"][3][1] else 0  # the one that he did not begin with
    assert order(game, "level", slot=slot) == (False, "points")
    game._vec._core.give_xp(0, 0, 400)
    assert order(game, "level", slot=1) == (False, "slot")  # the razes' rank is the first one's
    assert order(game, "level", slot=6) == (False, "slot")
    assert order(game, "level", slot=slot).ok
    assert unit(game, 0)["abilities"][slot][1] == 1


@pytest.mark.parametrize("kind", ["attack", "follow", "cast"])
def test_unseen_and_stale_units_are_refused_in_the_same_word(kind: str) -> None:
    game = beside("lion")
    learn(game, 1)
    place(game, 5, *FAR)
    slot, generation = handle(unit(game, 5))
    nobody = [(slot, generation), (slot, generation + 1), (383, 7), (-1, 0), (384, 0), (10**9, 0), (0, 10**9), (0, -1)]
    state = game.hash()
    assert [game.order(0, Order(kind, target=t, slot=1)) for t in nobody] == [(False, "unseen")] * len(nobody)
    assert game.hash() == state
    assert game.order(0, Order("attack")) == (False, "target")


def test_attacks_on_invalid_targets_are_refused() -> None:
    game = beside()
    assert order(game, "attack", target=handle(unit(game, 0))) == (False, "target")
    assert order(game, "follow", target=handle(unit(game, 0))) == (False, "target")


def test_the_dead_do_nothing_and_buy_back() -> None:
    game = beside()
    core = game._vec._core
    core.set_hp(0, unit(game, 0)["slot"], 1.0)
    order(game, "attack", 5, target=handle(unit(game, 0)))
    while unit(game, 0)["alive"]:
        frames(game, 1)
        assert game.engine_frame < 600
    assert order(game, "move", at=EAST) == (False, "dead")
    assert order(game, "buyback") == (False, "gold")
    core.give_gold(0, 0, 5000)
    assert order(game, "buyback").ok
    assert unit(game, 0)["alive"]
    assert order(game, "buyback") == (False, "alive")


def test_invalid_positions_are_refused() -> None:
    game = played()
    for kind in ("move", "attack_move"):
        assert order(game, kind) == (False, "target")
        for bad in ((math.nan, 0.0), (0.0, math.inf), (-math.inf, math.nan)):
            assert order(game, kind, at=bad) == (False, "target")
        assert order(game, kind, at=(1e30, -1e300)).ok


def test_buy_and_use() -> None:
    game = InteractiveGame(played().config, 1)
    game.take(0, True)
    assert order(game, "buy", item="item_nonsense") == (False, "item")
    assert order(game, "buy", item="item_rapier") == (False, "gold")
    game._vec._core.give_gold(0, 0, 1000)
    gold = unit(game, 0)["gold"]
    assert order(game, "buy", item="item_flask").ok
    bought = unit(game, 0)
    assert "item_flask" in bought["items"][6:9] and bought["gold"] < gold  # the inventory is full
    assert order(game, "use", slot=bought["items"].index("item_flask")) == (False, "slot")
    slot = bought["items"].index("item_branches")
    assert order(game, "swap", slot=bought["items"].index("item_flask"), to=slot).ok
    assert order(game, "use", slot=slot) == (False, "cooldown")  # it comes from the backpack
    frames(game, 200)
    game._vec._core.set_hp(0, bought["slot"], 50.0)
    place(game, 0, *MIDDLE)
    assert order(game, "use", slot=slot).reason == "target"
    assert order(game, "use", slot=slot, target=handle(bought)).ok
    frames(game, 120)
    assert unit(game, 0)["hp"] > 100 and "item_flask" not in unit(game, 0)["items"]
    assert order(game, "use", slot=slot) == (False, "slot")
    assert order(game, "use", slot=7) == (False, "slot")


def test_one_attack_ends_the_order() -> None:
    game = beside()
    before = unit(game, 5)["hp"]
    assert order(game, "attack", target=handle(unit(game, 5)), once=True).ok
    assert unit(game, 0)["order"] == 4
    for _ in range(60):
        frames(game, 1)
        if unit(game, 0)["order"] != 4:
            break
    assert unit(game, 0)["order"] == 0 and game.spectate()["projectiles"]
    frames(game, 15)
    assert unit(game, 5)["hp"] < before and unit(game, 0)["order"] == 0


def test_one_attack_given_again_is_not_begun_anew() -> None:
    once, again = beside(), beside()
    for game in (once, again):
        assert order(game, "attack", target=handle(unit(game, 5)), once=True).ok
    for _ in range(12):
        assert order(again, "attack", target=handle(unit(again, 5)), once=True).ok
        frames(once, 1)
        assert unit(once, 0)["order"] == unit(again, 0)["order"]
        if unit(once, 0)["order"] == 0:
            return
    raise AssertionError("no attack was launched")


def test_another_order_ends_one_attack() -> None:
    game = beside(gap=500)
    target = handle(unit(game, 5))
    assert order(game, "attack", target=target, once=True).ok
    assert order(game, "attack", target=target).ok
    frames(game, 90)
    assert unit(game, 0)["order"] == 4, "attacks until another order"

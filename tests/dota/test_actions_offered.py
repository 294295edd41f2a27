"""Available actions and their valid targets."""

from typing import Any

import numpy as np
import pytest

from dota.config import GameConfig
from dota.play import InteractiveGame
from dota.spaces import MAX_AVAILABLE, NOOP, MaskClass
from dota.vec_game import Controller, VecGame
from tests.dota.playing import MIDDLE, frames, order, played
from tests.dota.playing import place as place_hero
from tests.dota.scenes.patches import read_data
from tests.dota.watching import choose, duel, enemy_slot, field, hero_unit, mask, offered, place, steps, units


def test_start_offers_the_possible_actions_noop_first() -> None:
    game = VecGame(duel(), 1, seed=1)
    names = offered(game)
    assert names[0] == "noop" and "move" in names
    assert "attack" not in names and not mask(game, MaskClass.ATTACK)  # no enemy is near
    assert "nevermore_shadowraze1" not in names                       # not learned
    assert "buyback" not in names and "shrine" not in names and "glyph" not in names
    assert len(names) == len(set(names)) <= MAX_AVAILABLE


def test_attack_is_offered_when_a_target_is_near(lane: VecGame) -> None:
    assert "attack" in offered(lane)
    assert mask(lane, MaskClass.ATTACK) == [enemy_slot(lane)]
    place(lane, hero_unit(lane, 1), 1500, 1300)  # 500 attack range + 600, and more
    lane._core.observe(0)
    assert "attack" not in offered(lane) and mask(lane, MaskClass.ATTACK) == []


@pytest.mark.parametrize("aggro_orders", [False, True])
def test_own_creep_can_be_attacked_when_it_may_be_denied(aggro_orders: bool) -> None:
    game = VecGame(duel(aggro_orders=aggro_orders), 1, seed=1)
    game.step()
    creep = units(game, "creep", 0)[0]
    place(game, hero_unit(game), creep["x"] + 200, creep["y"])
    game._core.observe(0)
    start = game.layout.groups["allied_creeps"].start
    assert (start in mask(game, MaskClass.ATTACK)) == aggro_orders
    game._core.set_hp(0, creep["slot"], creep["max_hp"] * 0.49)
    game._core.observe(0)
    assert start in mask(game, MaskClass.ATTACK)


def test_protected_buildings_cannot_be_targeted() -> None:
    game = VecGame(duel(), 1, seed=1)
    group = game.layout.groups["enemy_buildings"]
    towers = sorted((u for u in units(game, "tower", 1) if "mid" in u["name"]), key=lambda u: u["name"])
    place(game, hero_unit(game), towers[0]["x"] - 500, towers[0]["y"] - 300)
    game._core.observe(0)
    assert group.start in mask(game, MaskClass.ATTACK)       # first tower of mid
    place(game, hero_unit(game), towers[1]["x"] - 300, towers[1]["y"] - 300)
    game._core.observe(0)
    assert group.start + 1 not in mask(game, MaskClass.ATTACK)  # the second stands while the first does


def test_hostile_spell_needs_an_enemy_near() -> None:
    game = VecGame(duel(randomisation={"xp": 5.0}), 8, seed=3)
    index = next(i for i in range(8) if field(game, "abilities", "castable", index=i)[0].any())
    assert "nevermore_shadowraze1" not in offered(game, index)  # at home, alone


def test_a_talent_s_cast_range_is_in_the_mask() -> None:
    """Lion has 100 more cast range at level 10: a unit 50 beyond Hex's 500 is valid then, not before."""
    game = VecGame(duel(hero="lion"), 1, seed=1)
    far = 500 + 600 + 2 * 24 + 50  # and the walk that an action may begin with, and both hulls
    for xp, expected in ((2000, False), (8000, True)):
        game._core.give_xp(0, 0, xp)
        steps(game, 25)  # a rank each
        place(game, hero_unit(game, 0), -700, -600)
        for away, seen in ((far, expected), (far - 100, True)):
            place(game, hero_unit(game, 1), -700 - 0.7071 * away, -600 - 0.7071 * away)  # in a tower's sight
            game._core.observe(0)
            assert ("lion_voodoo" in offered(game)) is seen


def buyer_of(item: str, seconds: float, **changes: Any) -> InteractiveGame:
    """Return a duel in which hero 0 bought the item and has held it for some time."""
    game = played(courier="direct", **changes)
    game._vec._core.give_gold(0, 0, 9000.0)
    assert order(game, "buy", item=item).ok
    assert order(game, "swap", slot=6, to=5).ok  # out of the backpack
    frames(game, round(seconds * 30))
    return game


def test_midas_is_offered_on_creeps_but_ancients() -> None:
    game = buyer_of("item_hand_of_midas", 62, neutrals=True)  # the camps fill after a minute
    bodies = read_data("7.21d")["units"]["units"]
    for ancient in (False, True):
        creep = next(u for u in units(game._vec, "neutral", 2) if bool(bodies[u["name"]].get("ancient")) is ancient)
        place_hero(game, 0, creep["x"] + 100, creep["y"])
        (slot,) = np.flatnonzero(game._vec.slot_units(0, 0) == creep["slot"])
        assert (slot in mask(game._vec, MaskClass.ENEMY)) is not ancient


def test_moon_shard_is_offered_on_own_heroes_only() -> None:
    game = buyer_of("item_moon_shard", 8)
    x, y = MIDDLE
    place_hero(game, 0, x, y)
    place_hero(game, 5, x + 300, y)
    assert "item_moon_shard" in offered(game._vec)
    marked = mask(game._vec, MaskClass.ALLY)
    assert game._vec.layout.groups["allied_heroes"].start in marked and enemy_slot(game._vec) not in marked


def test_dead_hero_has_noop_and_buyback_only() -> None:
    game = VecGame(duel(kills_to_win=9), 1, seed=1)
    victim = hero_unit(game, 1)
    place(game, victim, -6300, -6300)
    for _ in range(200):
        game.step()
        if not hero_unit(game, 1)["alive"]:
            break
    assert offered(game, team=1) in (["noop"], ["noop", "buyback"])
    assert offered(game, team=1) == ["noop"]  # 40 gold do not buy back
    assert not game.obs["target_mask"][0, 1].any()


def test_no_glyph_is_observed_before_the_horn() -> None:
    game = VecGame(duel(start_seconds=-1.0), 1, seed=1)
    tower = game.layout.groups["allied_buildings"].start
    assert field(game, "units", "glyphed")[tower, 0] == field(game, "units", "glyph_timer")[tower, 0] == 0


def test_glyph_waits_for_its_time() -> None:
    game = VecGame(duel(), 1, seed=1)
    assert "glyph" not in offered(game)
    steps(game, int(180 * 7.5) + 2)
    assert "glyph" in offered(game)
    scripted = VecGame(duel(scripted_actions=["glyph"]), 1, seed=1)
    steps(scripted, int(180 * 7.5) + 2)
    assert "glyph" not in offered(scripted)
    game.step(choose(game, "glyph"))
    steps(game, 3)
    assert "glyph" not in offered(game)
    tower = game.layout.groups["allied_buildings"].start
    assert field(game, "units", "glyphed")[tower, 0] == 1
    assert 0 < field(game, "units", "glyph_timer")[tower, 0] <= 0.6
    assert field(game, "global", "glyph_cooldown")[0, 0] == pytest.approx(5, abs=0.05)


def test_every_offered_action_with_a_unit_has_a_target() -> None:
    """A softmax over no valid slot is NaN: an action with a unit target is available only with a valid unit."""
    game = VecGame(GameConfig(), 2, seed=9)
    game.controllers[:] = [[Controller.SCRIPTED, Controller.RANDOM]] * 2
    takes = {a.id: int(a.mask) for a in game.layout.actions if a.target in (2, 3, 4)}
    seen = set()
    for step in range(1500):
        game.step()
        if step % 10:
            continue
        available, masks = game.obs["available"], game.obs["target_mask"]
        assert (available[..., 0] == NOOP).all()
        for index in np.argwhere(np.isin(available, list(takes))):
            g, t, h, _ = index
            action = int(available[tuple(index)])
            seen.add(action)
            assert masks[g, t, h, takes[action]].any(), game.layout.actions[action].name
        full = available != 0
        assert (full[..., 1:] <= full[..., :-1]).all()  # no gap in the list
    assert len(seen) > 4


def test_masked_slots_hold_units() -> None:
    game = VecGame(GameConfig(), 1, seed=9)
    game.controllers[:] = Controller.SCRIPTED
    for step in range(900):
        game.step()
        if step % 30 == 0:
            for team in (0, 1):
                ids = field(game, "units", "unit", team=team)[:, 0]
                assert (ids[game.obs["target_mask"][0, team].any(axis=(0, 1))] > 0).all()

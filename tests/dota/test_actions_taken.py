"""Execution of actions: the offset of one step, delay, repeated orders."""

import math

import numpy as np
import pytest

from dota.config import MAP_SIDE, GameConfig, ObservationConfig
from dota.spaces import NOOP, ActionPart, MaskClass
from dota.vec_game import Controller, VecGame
from tests.dota.watching import choose, duel, enemy_slot, field, hero_unit, mask, offered, place, steps, units

# Acts of the core, as spectate() gives them.
ACT_WALK, ACT_ATTACK_WINDUP, ACT_CAST_WINDUP, ACT_CHANNEL = 1, 2, 4, 6


def test_action_takes_effect_one_step_later(lane: VecGame) -> None:
    """The action given in step T+1 was chosen at T; the engine meanwhile ran the frames of step T+1."""
    before = hero_unit(lane)
    lane.step(choose(lane, "move", x=0))
    now = hero_unit(lane)
    assert (now["x"], now["y"]) == (before["x"], before["y"])  # still waiting
    lane.step()
    after = hero_unit(lane)
    assert after["order"] == 3 and after["act"] == ACT_WALK


def test_actions_resolve_by_the_observed_units() -> None:
    """Slots refer to the observation from which the action was chosen, not to the one at which it takes effect."""
    game = VecGame(duel(), 1, seed=1)
    game.step()
    place(game, hero_unit(game), -700, -600)
    near, far = units(game, "creep", 1)[:2]
    place(game, near, -500, -600)
    place(game, far, -300, -600)
    game._core.observe(0)
    start = game.layout.groups["enemy_creeps"].start
    assert mask(game, MaskClass.ATTACK)[:2] == [start, start + 1]
    actions = choose(game, "attack", unit=start + 1)  # the far one
    place(game, near, -300, -600)
    place(game, far, -500, -600)  # now it takes the first slot
    game.step(actions)
    for _ in range(12):
        game.step()
    hp = {u["slot"]: u["hp"] for u in units(game, "creep", 1)}
    assert hp[near["slot"]] == near["max_hp"] and hp.get(far["slot"], 0) < far["max_hp"] - 30


@pytest.mark.parametrize("delay", [0, 1, 2, 3])
def test_delay_is_the_frame_of_the_step(delay: int) -> None:
    """Two games that differ in the delay alone differ by that many frames of walking."""
    travelled = []
    for d in (0, delay):
        game = VecGame(duel(), 1, seed=1)
        unit = hero_unit(game)
        place(game, unit, -700, -600)
        game._core.observe(0)
        # Facing the lane already, so that no frame goes into turning.
        game.step(choose(game, "move", x=8, y=8, delay=d))
        game.step()
        now = hero_unit(game)
        travelled.append(np.hypot(now["x"] + 700, now["y"] + 600))
    assert travelled[0] > 0
    frame = travelled[0] / 4
    assert travelled[0] - travelled[1] == pytest.approx(delay * frame, abs=0.4 * frame)


def test_attack_repeated_every_step_completes(lane: VecGame) -> None:
    """A policy acts every 4 frames; a windup lasts longer. Repeating the same target must not restart it."""
    hp = hero_unit(lane, 1)["hp"]
    for _ in range(20):
        if "attack" not in offered(lane):
            break
        lane.step(choose(lane, "attack", unit=enemy_slot(lane)))
    assert hero_unit(lane, 1)["hp"] < hp - 20
    again = VecGame(duel(kills_to_win=5), 1, seed=1)
    place(again, hero_unit(again, 0), -700, -600)
    place(again, hero_unit(again, 1), -400, -330)
    again._core.observe(0)
    again.step(choose(again, "attack", unit=enemy_slot(again)))
    steps(again, 19)
    # One order gives the same as an order in every step.
    assert hero_unit(again, 1)["hp"] == pytest.approx(hero_unit(lane, 1)["hp"], abs=1e-3)


def test_move_cancels_a_windup(lane: VecGame) -> None:
    lane.step(choose(lane, "attack", unit=enemy_slot(lane)))
    for _ in range(10):
        lane.step()
        if hero_unit(lane)["act"] == ACT_ATTACK_WINDUP:
            break
    assert hero_unit(lane)["act"] == ACT_ATTACK_WINDUP
    hp = hero_unit(lane, 1)["hp"]
    lane.step(choose(lane, "move", x=0, y=0))
    for _ in range(8):
        lane.step()
        assert hero_unit(lane)["act"] != ACT_ATTACK_WINDUP
    assert hero_unit(lane, 1)["hp"] >= hp


def test_noop_keeps_the_order(lane: VecGame) -> None:
    lane.step(choose(lane, "move", x=0, y=0))
    x = []
    for _ in range(6):
        lane.step()
        x.append(hero_unit(lane)["x"])
    assert x == sorted(x, reverse=True) and x[0] > x[-1]


def test_move_to_the_middle_stops(lane: VecGame) -> None:
    place(lane, hero_unit(lane, 1), 6000, 6000)
    lane.step(choose(lane, "move", x=0, y=0))
    steps(lane, 3)
    lane.step(choose(lane, "move"))
    lane.step()
    stood = hero_unit(lane)
    steps(lane, 3)
    assert (hero_unit(lane)["x"], hero_unit(lane)["y"]) == (stood["x"], stood["y"])


def test_move_goes_by_offset_cells() -> None:
    game = VecGame(duel(offset_cell=60.0), 1, seed=1)
    place(game, hero_unit(game), -700, -600)
    game._core.observe(0)
    game.step(choose(game, "move", x=7, y=2))
    steps(game, 20)
    now = hero_unit(game)
    assert (now["x"], now["y"]) == pytest.approx((-700 + 3 * 60, -600 - 2 * 60), abs=20)


def test_the_largest_offset_ends_within_reach_of_the_map() -> None:
    """A move further out would have a grid cell beyond the range of a 32-bit integer."""
    game = VecGame(duel(offset_cell=MAP_SIDE / 4), 1, seed=1)
    start = hero_unit(game)
    game.step(choose(game, "move", x=8, y=8))
    steps(game, 5)
    now = hero_unit(game)
    assert now["x"] > start["x"] + 50 and now["y"] > start["y"] + 50
    for value in (MAP_SIDE, 1e30, math.inf, math.nan):
        with pytest.raises(ValueError, match="offset_cell"):
            GameConfig(offset_cell=value)


def test_turned_offsets() -> None:
    observation = duel().observation.model_copy(update={"mirror_dire": True})
    game = VecGame(duel(observation=observation), 1, seed=1)
    place(game, hero_unit(game, 0), -700, -600)
    place(game, hero_unit(game, 1), 900, 700)
    game._core.observe(0)
    actions = choose(game, "move", team=0, x=6, y=5)
    choose(game, "move", team=1, x=6, y=5, into=actions)
    before = [hero_unit(game, t) for t in (0, 1)]
    game.step(actions)
    np.testing.assert_array_equal(field(game, "previous_action", "offsets", team=1),
                                  field(game, "previous_action", "offsets", team=0))
    steps(game, 12)
    moved = [np.array([hero_unit(game, t)["x"] - before[t]["x"], hero_unit(game, t)["y"] - before[t]["y"]])
             for t in (0, 1)]
    assert moved[0] == pytest.approx([200, 100], abs=25) and moved[1] == pytest.approx([-200, -100], abs=25)


def test_previous_action_is_observed(lane: VecGame) -> None:
    actions = choose(lane, "attack", unit=enemy_slot(lane))
    choose(lane, "move", team=1, x=1, y=8, into=actions)
    lane.step(actions)
    names = [lane.layout.actions[int(field(lane, "previous_action", "action", team=t)[0, 0])].name for t in (0, 1)]
    assert names == ["attack", "move"]
    assert field(lane, "previous_action", "target_slot")[0, 0] == enemy_slot(lane) + 1
    assert field(lane, "previous_action", "target_slot", team=1)[0, 0] == 0
    assert not field(lane, "previous_action", "offsets").any()
    offsets = field(lane, "previous_action", "offsets", team=1)[0].reshape(6, 9)
    assert offsets[2].argmax() == 1 and offsets[3].argmax() == 8 and offsets.sum() == 2  # caster head


def test_previous_action_of_bots_is_observed() -> None:
    game = VecGame(duel(), 1, seed=1)
    game.controllers[0] = [Controller.SCRIPTED, Controller.RANDOM]
    seen = set()
    for _ in range(40):
        game.step()
        for t in (0, 1):
            seen.add((t, int(field(game, "previous_action", "action", team=t)[0, 0])))
    assert (0, 0) not in seen - {(0, 0)} and len({a for t, a in seen if t == 1}) > 1
    assert any(t == 0 and a > NOOP for t, a in seen)


def test_impossible_numbers_do_nothing(lane: VecGame) -> None:
    attack, move, slot = offered(lane).index("attack"), offered(lane).index("move"), enemy_slot(lane)
    rows = [[99, 0, 0, 0, 0, 0], [-1, 0, 0, 0, 0, 0], [len(offered(lane)), 0, 0, 0, 4, 4],
            [attack, 4, slot, 0, 4, 4], [attack, -1, slot, 0, 4, 4], [attack, 0, 30000, 0, 4, 4],
            [attack, 0, -5, 0, 4, 4], [attack, 0, slot + 1, 0, 4, 4], [attack, 0, 0, 0, 4, 4],
            [move, 0, 0, 0, 9, 4], [move, 0, 0, 0, 4, -1], [-32768] * 6, [32767] * 6]
    start = lane.snapshot(0)
    lane.step()
    lane.step()
    undisturbed = hero_unit(lane)
    for row in rows:
        lane.restore(0, start)
        actions = np.zeros((1, 2, 1, len(ActionPart)), np.int16)
        actions[0, 0, 0] = row
        lane.step(actions)
        lane.step()
        assert hero_unit(lane) == undisturbed, row
    lane.restore(0, start)
    lane.step(choose(lane, "move", x=0))
    lane.step()
    assert hero_unit(lane) != undisturbed


def test_cast_repeated_every_step_completes() -> None:
    """Shadow Fiend's raze winds up for 0.55 s, more than four steps."""
    game = VecGame(duel(randomisation={"xp": 5.0}, kills_to_win=5), 8, seed=3)
    index = next(i for i in range(8) if field(game, "abilities", "levels", index=i)[0].any())
    place(game, hero_unit(game, 0, index=index), -700, -600, index)
    place(game, hero_unit(game, 1, index=index), -560, -460, index)
    game._core.observe(index)
    assert "nevermore_shadowraze1" in offered(game, index)
    mana = hero_unit(game, index=index)["mana"]
    acts = []
    for _ in range(8):
        if "nevermore_shadowraze1" not in offered(game, index):
            break
        game.step(choose(game, "nevermore_shadowraze1", index=index), which=[index])
        acts.append(hero_unit(game, index=index)["act"])
    assert ACT_CAST_WINDUP in acts
    assert hero_unit(game, index=index)["mana"] < mana - 80
    assert field(game, "abilities", "cooldown", index=index)[0, 0] > 0.1
    assert "nevermore_shadowraze1" not in offered(game, index)  # on cooldown
    assert "nevermore_shadowraze2" in offered(game, index)


def test_tango_needs_a_tree_and_eats_it() -> None:
    game = VecGame(duel(), 1, seed=1)
    place(game, hero_unit(game), -3000, -1500)
    game._core.set_hp(0, hero_unit(game)["slot"], 300.0)
    game._core.observe(0)
    assert "item_tango" in offered(game)
    charges = field(game, "items", "charges")[0, 0]
    game.step(choose(game, "item_tango"))
    for _ in range(40):
        game.step(choose(game, "noop"))
    assert field(game, "items", "charges")[0, 0] == pytest.approx(charges - 0.1, abs=1e-3)


def test_teleport_takes_a_building() -> None:
    game = VecGame(duel(), 1, seed=1)
    place(game, hero_unit(game), -6500, -6000)
    steps(game, 2)
    assert "item_tpscroll" in offered(game)
    tower = game.layout.groups["allied_buildings"].start
    slots = mask(game, MaskClass.TELEPORT)
    assert tower in slots and all(
        s in range(tower, tower + game.layout.groups["allied_buildings"].count) for s in slots)
    spot = field(game, "units", "position")[tower, :2] * 8192
    game.step(choose(game, "item_tpscroll", unit=tower, x=6, y=6))
    steps(game, 4)
    assert field(game, "heroes", "teleporting")[0, 0] == 1
    assert 1 < field(game, "heroes", "teleport_time")[0, 0] <= 3
    assert field(game, "heroes", "teleport_target")[0] * 8192 == pytest.approx(spot + 200, abs=10)
    steps(game, 26)
    now = hero_unit(game)
    assert np.hypot(now["x"] - spot[0], now["y"] - spot[1]) < 700
    assert "item_tpscroll" not in offered(game)


def test_move_ends_a_channel() -> None:
    game = VecGame(duel(), 1, seed=1)
    steps(game, 2)
    tower = game.layout.groups["allied_buildings"].start
    game.step(choose(game, "item_tpscroll", unit=tower))
    steps(game, 6)
    assert hero_unit(game)["act"] == ACT_CHANNEL
    game.step(choose(game, "move", x=8, y=8))
    steps(game, 2)
    assert hero_unit(game)["act"] == ACT_WALK


def test_follow_stays_with_the_unit() -> None:
    config = GameConfig(heroes_per_team=2, hero_pool=["sven", "lion"], start_seconds=0, roshan=False, neutrals=False,
                        observation=ObservationConfig(allied_creeps=2, neutral_creeps=0, wards=0))
    game = VecGame(config, 1, seed=3)
    place(game, hero_unit(game, 0, 0), -900, -800)
    place(game, hero_unit(game, 0, 1), -1500, -1300)
    game._core.observe(0)
    game.step(choose(game, "follow", hero=1, unit=0))
    steps(game, 30)
    a, b = hero_unit(game, 0, 0), hero_unit(game, 0, 1)
    assert np.hypot(a["x"] - b["x"], a["y"] - b["y"]) < 300


@pytest.mark.parametrize("own", [False, True])
def test_an_order_on_a_healthy_own_creep_sheds_aggro(own: bool) -> None:
    """Players click an own creep to turn away the lane creeps that strike them for attacking a hero (public wikis)."""
    game = VecGame(duel(aggro_orders=True, kills_to_win=9), 1, seed=1)
    game.step()
    ours, theirs = units(game, "creep", 0)[0], units(game, "creep", 1)[0]
    place(game, hero_unit(game, 0), -600, -600)
    place(game, hero_unit(game, 1), -300, -600)
    place(game, theirs, -600, -500)
    place(game, ours, -420, -500)
    game._core.observe(0)
    steps(game, 2, choose(game, "attack", unit=enemy_slot(game)))
    place(game, hero_unit(game, 1), 3000, 3000)
    game._core.observe(0)
    creep = game.layout.groups["allied_creeps" if own else "enemy_creeps"].start
    actions, lowest = choose(game, "attack", unit=creep), hero_unit(game, 0)["max_hp"]
    for _ in range(15):  # two seconds, two strikes of the creep
        game.step(actions)
        lowest = min(lowest, hero_unit(game, 0)["hp"])
    struck = lowest < hero_unit(game, 0)["max_hp"] - 5, units(game, "creep", 0)[0]["hp"] < ours["max_hp"] - 15
    assert struck == (not own, own)

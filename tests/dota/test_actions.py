"""Which actions are offered, and what they do when they are taken: offset of one step, delay, re-issued orders."""

from typing import Any

import numpy as np
import pytest

from dota.config import GameConfig, ObservationConfig
from dota.spaces import MAX_AVAILABLE, NOOP, ActionPart, MaskClass
from dota.vec_game import Controller, VecGame
from tests.dota.watching import choose, duel, field, hero_unit, mask, offered, place, units

# Acts of the core, as spectate() gives them.
ACT_WALK, ACT_ATTACK_WINDUP, ACT_CAST_WINDUP, ACT_CHANNEL = 1, 2, 4, 6


@pytest.fixture
def lane() -> VecGame:
    """Both heroes in the middle of mid, 400 apart, with the last creeps still at home."""
    game = VecGame(duel(kills_to_win=5), 1, seed=1)
    place(game, hero_unit(game, 0), -700, -600)
    place(game, hero_unit(game, 1), -400, -330)
    game._core.observe(0)
    return game


def enemy_slot(game: VecGame) -> int:
    return game.layout.groups["enemy_heroes"].start


def steps(game: VecGame, n: int, actions: Any = None) -> None:
    for _ in range(n):
        game.step(actions)


def test_start_offers_what_can_be_done_and_noop_first() -> None:
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


def test_own_creep_can_be_attacked_when_it_may_be_denied() -> None:
    game = VecGame(duel(), 1, seed=1)
    game.step()
    creep = units(game, "creep", 0)[0]
    place(game, hero_unit(game), creep["x"] + 200, creep["y"])
    game._core.observe(0)
    start = game.layout.groups["allied_creeps"].start
    assert start not in mask(game, MaskClass.ATTACK)
    game._core.set_hp(0, creep["slot"], creep["max_hp"] * 0.49)
    game._core.observe(0)
    assert start in mask(game, MaskClass.ATTACK)


def test_protected_buildings_are_no_targets() -> None:
    game = VecGame(duel(), 1, seed=1)
    group = game.layout.groups["enemy_buildings"]
    towers = sorted((u for u in units(game, "tower", 1) if "mid" in u["name"]), key=lambda u: u["name"])
    place(game, hero_unit(game), towers[0]["x"] - 500, towers[0]["y"] - 300)
    game._core.observe(0)
    assert group.start in mask(game, MaskClass.ATTACK)       # first tower of mid
    place(game, hero_unit(game), towers[1]["x"] - 300, towers[1]["y"] - 300)
    game._core.observe(0)
    assert group.start + 1 not in mask(game, MaskClass.ATTACK)  # the second stands while the first does


def test_action_takes_effect_one_step_later(lane: VecGame) -> None:
    """The action given in step T+1 was chosen at T; the engine meanwhile ran the frames of step T+1."""
    before = hero_unit(lane)
    lane.step(choose(lane, "move", x=0))
    now = hero_unit(lane)
    assert (now["x"], now["y"]) == (before["x"], before["y"])  # still waiting
    lane.step()
    after = hero_unit(lane)
    assert after["order"] == 3 and after["act"] == ACT_WALK


def test_actions_resolve_to_what_was_observed() -> None:
    """Slots are those of the observation an action was chosen from, not of the one in which it takes effect."""
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


def test_attack_named_again_every_step_completes(lane: VecGame) -> None:
    """A policy acts every 4 frames; a windup lasts longer. Naming the same target must not start it anew."""
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
    # Naming it once and leaving it alone gives the same as naming it every step.
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


def test_previous_action_is_shown(lane: VecGame) -> None:
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


def test_previous_action_of_bots_is_shown() -> None:
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


def test_spell_named_again_while_it_is_cast_completes() -> None:
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


def test_hostile_spell_needs_an_enemy_near() -> None:
    game = VecGame(duel(randomisation={"xp": 5.0}), 8, seed=3)
    index = next(i for i in range(8) if field(game, "abilities", "castable", index=i)[0].any())
    assert "nevermore_shadowraze1" not in offered(game, index)  # at home, alone


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


def test_every_offered_action_with_a_unit_has_a_target() -> None:
    """A softmax over no valid slot is not a number: an action that takes a unit is offered only with one."""
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

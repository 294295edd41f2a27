"""Observations against values computed by hand from the patch's data, and the effect of fog of war."""

import numpy as np
import pytest

from dota import registry
from dota.config import GameConfig, ObservationConfig
from dota.spaces import Layout
from dota.tables import load_tables
from dota.vec_game import Controller, VecGame
from tests.dota.watching import duel, field, hero_unit, place, units

HALF = 1e-3  # float16 keeps 11 bits


@pytest.fixture(scope="module")
def start() -> VecGame:
    """Shadow Fiends at the horn, with tango, faerie fire, slippers, circlet and two branches, as in the data."""
    return VecGame(duel(), 1, seed=1)


@pytest.mark.parametrize(("block", "name", "expected"), [
    ("global", "time", [0]),
    ("global", "day", [1]),
    ("global", "time_to_day_change", [5]),            # 300 s of day
    ("global", "time_to_creeps", [0.5]),              # the wave of 0:00 is out, the next one comes in 30 s
    ("global", "glyph_cooldown", [3, 3]),             # ready first at 3:00
    ("global", "roshan_dead", [1]),                   # switched off in this game
    ("heroes", "alive", [1]),
    ("heroes", "level", [1 / 25]),
    ("heroes", "gold", [40 / 2000]),                  # 600 - (90 + 70 + 150 + 150 + 2 * 50)
    ("heroes", "max_mana", [(75 + 12 * 22) / 500]),   # int 18 + 2 circlet + 2 branches
    ("heroes", "attributes", [23 / 50, 27 / 50, 22 / 50]),  # + 4 each, slippers + 3 agi
    ("heroes", "hp_regen", [(0.25 + 0.1 * 23) / 10]),
    ("heroes", "mana_regen", [0.05 * 22 / 10]),
    ("heroes", "magic_resistance", [1 - 0.75 * (1 - 0.0008 * 23)]),
    ("units", "max_hp", [(200 + 20 * 23) / 1000]),
    ("units", "hp_history", [0.66] * 16),
    ("units", "damage", [(18 + 27 + 2) / 100]),       # (15 + 21) / 2, agility, faerie fire
    ("units", "attack_speed", [1.27]),
    ("units", "physical_resistance", [0.052 * 4.32 / (0.9 + 0.048 * 4.32)]),  # armor 0.16 * 27
    ("units", "move_speed", [305 * (1 + 0.0005 * 27) / 300]),
    ("units", "mine", [1]),
    ("units", "facing", [np.cos(0.785), np.sin(0.785)]),
    ("allied_heroes", "buyback", [0, 150 / 2000, 0]),  # 100 + 650 / 13
    ("allied_heroes", "empty_slots", [0, 3 / 5]),
    ("allied_heroes", "lanes", [1, 1, 1]),
    ("items", "location", [1, 0, 0]),
    ("items", "charges", [3 / 10]),                   # tango
])
def test_start_values(start: VecGame, block: str, name: str, expected: list[float]) -> None:
    np.testing.assert_allclose(field(start, block, name)[0], expected, atol=HALF)


def test_start_ids(start: VecGame) -> None:
    tables = load_tables("7.21d")
    units = registry.load().names["unit"]
    assert units[field(start, "units", "unit")[0, 0] - 1] == "npc_dota_hero_nevermore"
    names = registry.load().names["ability"]
    abilities = [names[i - 1] for i in field(start, "abilities", "ability")[:6, 0]]
    assert abilities == ["nevermore_shadowraze1", "nevermore_shadowraze2", "nevermore_shadowraze3",
                         "nevermore_necromastery", "nevermore_dark_lord", "nevermore_requiem"]
    items = [tables.items[i - 1] for i in field(start, "items", "item")[:6, 0]]
    assert items == ["item_tango", "item_faerie_fire", "item_slippers", "item_circlet", "item_branches",
                     "item_branches"]
    assert tables.items[field(start, "items", "item")[15, 0] - 1] == "item_tpscroll"
    assert tables.items[field(start, "allied_heroes", "next_item")[0, 0] - 1] == "item_wraith_band"
    group = start.layout.groups["allied_buildings"]
    first = field(start, "units", "unit")[group.start, 0] - 1
    assert units[first] == "npc_dota_goodguys_tower1_mid"


def test_levels_learned_are_one_hot_by_rank(start: VecGame) -> None:
    levels = field(start, "abilities", "levels")[:6]
    assert levels[3].tolist() == [1, 0, 0, 0]  # necromastery is the first point
    assert levels.sum() == 1


def test_level_is_not_truncated() -> None:
    """A level's share stored as an integer would be 0."""
    config = duel(randomisation={"xp": 8.0})
    game = VecGame(config, 16, seed=2)
    levels = game.stats[:, 0, 0, 6]
    seen = np.array([field(game, "heroes", "level", index=i)[0, 0] for i in range(16)])
    np.testing.assert_allclose(seen, levels / 25, atol=HALF)
    assert len(set(levels.tolist())) > 3 and (seen > 0).all() and (levels < 25).any()


def test_history_runs_newest_first() -> None:
    game = VecGame(duel(), 1, seed=1)
    unit = hero_unit(game)
    place(game, unit, -1600, -1400)  # away from the fountain
    game.step()
    game._core.set_hp(0, unit["slot"], 500.0)
    for _ in range(3):
        game.step()
    hp = field(game, "units", "hp_history")[0] * 1000
    assert (np.abs(hp[:3] - 500) < 8).all() and (np.diff(hp[:3]) <= 0).all()  # regeneration: the newest is highest
    np.testing.assert_allclose(hp[3:], 660, atol=1)


def test_fog_hides_units_but_heroes_keep_their_last_values() -> None:
    game = VecGame(duel(), 1, seed=1)
    mine, enemy = hero_unit(game, 0), hero_unit(game, 1)
    place(game, mine, -900, -800)
    place(game, enemy, -400, -300)
    game._core.observe(0)
    enemy_slot = game.layout.groups["enemy_heroes"].start
    assert field(game, "heroes", "in_sight")[1, 0] == 1
    seen = field(game, "units", "position")[enemy_slot].copy()
    np.testing.assert_allclose(seen[:2], np.array([-400, -300]) / 8192, atol=HALF)
    assert field(game, "units", "max_hp")[enemy_slot, 0] == pytest.approx(0.66, abs=HALF)
    game._core.set_hp(0, enemy["slot"], 300.0)
    place(game, enemy, 6800, 6300)
    for _ in range(15):
        game.step()
    assert field(game, "heroes", "in_sight")[1, 0] == 0
    assert field(game, "heroes", "since_seen")[1, 0] == pytest.approx(2 / 60, abs=HALF)
    np.testing.assert_array_equal(field(game, "units", "position")[enemy_slot], seen)
    assert field(game, "units", "hp_history")[enemy_slot, 0] == pytest.approx(0.66, abs=HALF)  # not the current 0.3
    assert field(game, "heroes", "alive")[1, 0] == 1
    # No action can target it.
    assert not game.obs["target_mask"][0, 0, 0, :, enemy_slot].any()


def test_creeps_in_fog_have_no_slot() -> None:
    game = VecGame(duel(), 1, seed=1)
    for _ in range(30):
        game.step()
    group = game.layout.groups["enemy_creeps"]
    rows = slice(group.start, group.start + group.count)
    assert units(game, "creep", 1), "the enemy's wave is on its way"
    assert not field(game, "units", "unit")[rows].any() and not field(game, "units", "max_hp")[rows].any()
    creep = units(game, "creep", 1)[0]
    place(game, creep, *(c["x"] for c in [hero_unit(game)]), hero_unit(game)["y"] + 200)
    game._core.observe(0)
    assert field(game, "units", "unit")[group.start, 0] != 0
    assert field(game, "units", "mine")[group.start, 0] == 0


def test_nearest_units_stay_when_slots_run_out() -> None:
    observation = duel().observation.model_copy(update={"allied_creeps": 2})
    game = VecGame(duel(observation=observation), 1, seed=1)
    for _ in range(8):
        game.step()
    creeps = units(game, "creep", 0)
    assert len(creeps) > 2
    me = hero_unit(game)
    for i, creep in enumerate(creeps):
        place(game, creep, me["x"] + 150 + 100 * i, me["y"])
    game._core.observe(0)
    start = game.layout.groups["allied_creeps"].start
    x = field(game, "units", "vector")[start:start + 2, 0] * 2048
    np.testing.assert_allclose(x, [150, 250], atol=2)


def test_vectors_and_distances_are_relative_to_the_hero() -> None:
    config = GameConfig(heroes_per_team=2, hero_pool=["sven", "lion"], start_seconds=0, roshan=False, neutrals=False,
                        observation=ObservationConfig(allied_creeps=2, neutral_creeps=0, wards=0))
    game = VecGame(config, 1, seed=3)
    place(game, hero_unit(game, 0, 0), -5000, -5000)
    place(game, hero_unit(game, 0, 1), -4700, -4600)
    game._core.observe(0)
    np.testing.assert_allclose(field(game, "units", "vector", hero=0)[1] * 2048, [300, 400, 500], atol=2)
    np.testing.assert_allclose(field(game, "units", "vector", hero=1)[0] * 2048, [-300, -400, 500], atol=2)


def test_dead_hero_is_seen_dead() -> None:
    game = VecGame(duel(kills_to_win=5), 1, seed=1)
    enemy = hero_unit(game, 1)
    place(game, enemy, -6300, -6300)  # under the fountain
    for _ in range(200):
        game.step()
        if not hero_unit(game, 1)["alive"]:
            break
    assert not hero_unit(game, 1)["alive"]
    assert field(game, "heroes", "alive")[1, 0] == 0
    assert field(game, "heroes", "deaths")[1, 0] == pytest.approx(1 / 5, abs=HALF)
    assert 0 < field(game, "heroes", "respawn_time")[1, 0] < 1
    assert field(game, "heroes", "alive", team=1)[0, 0] == 0
    assert field(game, "units", "hp_history", team=1)[0, 0] == 0


def test_mirrored_map_looks_equal_to_both_sides() -> None:
    """Two heroes on opposite spots see the same numbers when Dire's map is turned."""
    observation = duel().observation.model_copy(update={"mirror_dire": True})
    game = VecGame(duel(observation=observation), 1, seed=1)
    place(game, hero_unit(game, 0), -1500, -1200)
    place(game, hero_unit(game, 1), 1500, 1200)
    game._core.observe(0)
    for block, name in (("units", "position"), ("units", "vector"), ("units", "hp_history")):
        np.testing.assert_allclose(field(game, block, name, team=0)[:1], field(game, block, name, team=1)[:1],
                                   atol=HALF)
    facing = field(game, "units", "facing", team=1)[0]
    np.testing.assert_allclose(facing, -np.array([np.cos(-2.356), np.sin(-2.356)]), atol=HALF)
    tower = game.layout.groups["allied_buildings"].start
    mine, theirs = (field(game, "units", "position", team=t)[tower] for t in (0, 1))
    assert np.sign(mine[0]) == np.sign(theirs[0]) == -1  # both see their own tower in the lower left half
    visible = [field(game, "minimap", "visible", team=t).reshape(10, 10) for t in (0, 1)]
    assert visible[0][:4, :4].sum() > 3 * visible[0][6:, 6:].sum()
    assert visible[1][:4, :4].sum() > 3 * visible[1][6:, 6:].sum()


def test_minimap_counts() -> None:
    game = VecGame(duel(), 1, seed=1)
    game.step()
    creeps = field(game, "minimap", "creeps")[:, 0].sum() * 5
    assert creeps == pytest.approx(len(units(game, "creep", 0)), abs=0.05)
    cells = field(game, "minimap", "cell")
    assert cells[0].tolist() == pytest.approx([-0.9, -0.9, 0], abs=HALF)
    assert cells[99].tolist() == pytest.approx([0.9, 0.9, 0.99], abs=HALF)
    assert (field(game, "minimap", "visible") <= 1).all()


def test_observation_keeps_nothing_from_the_last_step() -> None:
    """Buffers filled with a magic value beforehand contain none of it afterwards."""
    game = VecGame(duel(), 1, seed=1)
    for array in game.obs.values():
        array.view(np.uint8)[...] = 0x5A
    game.step()
    for name, array in game.obs.items():
        assert not (array.view(np.uint8) == 0x5A).all(axis=-1).any() or name == "target_mask"
        assert np.isfinite(array.astype(np.float32)).all(), name
    assert set(np.unique(game.obs["target_mask"])) <= {0, 1}
    float_magic = np.array([0x5A5A], np.uint16).view(np.float16)[0]
    assert not (game.obs["shared"] == float_magic).any() and not (game.obs["private"] == float_magic).any()


def test_ranges_hold_through_a_game() -> None:
    game = VecGame(GameConfig(), 1, seed=4)
    game.controllers[:] = Controller.SCRIPTED
    sizes = {"unit": 256, "ability": 512, "item": 256, "modifier": 1024}
    for step in range(2500):
        game.step()
        if step % 100:
            continue
        for name in ("shared", "private"):
            values = game.obs[name].astype(np.float32)
            assert np.isfinite(values).all() and np.abs(values).max() < 20, step
        for block, name in (("units", "unit"), ("abilities", "ability"), ("items", "item"),
                            ("hero_modifiers", "modifier"), ("unit_modifiers", "modifier")):
            assert field(game, block, name).max() < sizes[name]


def test_half_precision_is_the_same_with_and_without_f16c(core) -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32)
    values = np.concatenate([bits.view(np.float32), rng.standard_normal(100_000).astype(np.float32),
                             np.array([0, -0.0, 65504, 65519, 65520, 1e9, -1e9, 6e-8, 2.98e-8, 2.99e-8, 6.1e-5,
                                       np.inf, -np.inf, np.nan, 1 / 30], np.float32)])
    fast, slow = np.zeros(values.size, np.uint16), np.zeros(values.size, np.uint16)
    core.to_half(values, fast)
    core.to_half(values, slow, portable=True)
    np.testing.assert_array_equal(fast, slow)
    with np.errstate(over="ignore", invalid="ignore"):
        reference = np.clip(np.nan_to_num(values, nan=0.0, posinf=65504, neginf=-65504), -65504, 65504)
    finite = ~np.isnan(values)
    np.testing.assert_array_equal(slow.view(np.float16)[finite], reference.astype(np.float16)[finite])
    assert (slow.view(np.float16)[~finite] == 0).all()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_conversion_moves_values(core, share: float) -> None:
    """Conversion moves values including negative zeros, and leaves zeros in the source."""
    rng = np.random.default_rng(int(100 * share))
    for n in (0, 1, 7, 8, 31, 32, 33, 64, 71, 5000):
        values = np.where(rng.random(n) < share, rng.standard_normal(n), 0).astype(np.float32)
        values[: n // 2] *= -1.0  # minus zeros
        taken, converted = np.full(n, 7, np.uint16), np.zeros(n, np.uint16)
        core.to_half(values, converted, portable=True)
        core.take_half(values, taken)
        np.testing.assert_array_equal(taken, converted)
        assert not values.view(np.uint32).any()


def test_layout_and_observation_shapes_agree() -> None:
    game = VecGame(duel(), 3, seed=0)
    for name, (shape, dtype) in Layout(duel()).array_specs().items():
        assert game.obs[name].shape == (3, 2, *shape) and game.obs[name].dtype == dtype


def test_unseen_state_changes_no_number() -> None:
    """Moving and hurting all units that a team does not see leaves its observation unchanged."""
    config = GameConfig(heroes_per_team=3, start_seconds=0, observation=ObservationConfig(allied_creeps=20))
    game = VecGame(config, 1, seed=12)
    game.controllers[:] = Controller.SCRIPTED
    hidden_units = 0
    for _ in range(4):
        for _ in range(150):
            game.step()
        start = game.snapshot(0)
        game._core.observe(0)
        before = {name: array[0, 0].copy() for name, array in game.obs.items()}
        game.restore(0, start)  # each observation ages what was seen before: both are the second
        hidden = [u for u in game.spectate(0)["units"]
                  if not u["seen_by"][0] and u["alive"] and u["kind"] in ("hero", "creep", "neutral", "courier")]
        hidden_units += len(hidden)
        for unit in hidden:
            game._core.set_hp(0, unit["slot"], 0.5 * unit["hp"])
            place(game, unit, 7100, 6500)  # behind the enemy's fountain
        game._core.observe(0)
        for name, array in before.items():
            np.testing.assert_array_equal(game.obs[name][0, 0], array, err_msg=name)
        game.restore(0, start)
    assert hidden_units > 20


def test_slots_show_only_visible_units() -> None:
    game = VecGame(GameConfig(start_seconds=0), 1, seed=13)
    game.controllers[:] = Controller.SCRIPTED
    rows = 0
    for _ in range(6):
        for _ in range(100):
            game.step()
        seen = game.spectate(0)["units"]
        for team in (0, 1):
            positions = field(game, "units", "position", team=team)[:, :2].astype(np.float64) * 8192
            ids = field(game, "units", "unit", team=team)[:, 0]
            for name in ("enemy_creeps", "neutral_creeps", "enemy_wards", "enemy_courier", "enemy_buildings"):
                group = game.layout.groups[name]
                for row in range(group.start, group.start + group.count):
                    if not ids[row]:
                        continue
                    rows += 1
                    assert any(np.hypot(u["x"] - positions[row, 0], u["y"] - positions[row, 1]) < 8
                               and u["seen_by"][team] for u in seen), (name, row)
    assert rows > 50

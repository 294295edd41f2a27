"""Compiler of effect programs: accepted and refused input, and no silent omissions."""

import copy
import json
from typing import Any

import pytest

from tests.dota.scenes.actions import give
from tests.dota.scenes.patches import DATA, load_tables
from tests.dota.scenes.program import cast_hex, programmed

RULES = ("filler_ability", "backdoor_protection", "backdoor_protection_in_base")
SIX = ("nevermore", "sniper", "lion", "crystal_maiden", "sven", "viper")


def ability(*effects: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"specials": {"x": {"v": [1, 2, 3]}}, "cast_range": [500], "effects": list(effects)} | more


def test_primitive_names_match_the_data(core: Any, data: dict[str, Any]) -> None:
    assert core.primitive_names() == list(data["abilities"]["primitives"])
    assert set(core.built_primitives()) <= set(core.primitive_names())


def test_numbers_by_rank(core: Any) -> None:
    program = core.compile_effects(ability(
        {"p": "damage", "to": "target", "amount": "$x", "type": "pure"},
        {"p": "linear_wave", "len": ["@cast_range", "$x"], "w0": 1, "w1": 2, "speed": 3,
         "then": [{"p": "stun", "dur": 1}]},
    ), "test")
    damage, wave, stun = program["nodes"]
    assert damage["numbers"]["amount"] == [1, 2, 3]
    assert wave["numbers"]["len"] == [501, 502, 503]
    assert wave["then"] == [2]
    assert stun["primitive"] == "stun"
    assert stun["modifier"] == "test#2"
    assert program["roots"] == [0, 1]
    assert program["missing"] == []


@pytest.mark.parametrize(("effect", "says"), [
    ({"p": "explode"}, "primitive 'explode' is unknown"),
    ({"p": "damage", "amuont": 5}, "key 'amuont' of damage is unknown"),
    ({"p": "damage", "amount": "$y"}, "special value '\\$y' is missing"),
    ({"p": "damage", "amount": "@damage"}, "field '@damage' is missing"),
    ({"p": "damage", "amount": 1, "to": "everyone"}, "'everyone' is unknown"),
    ({"p": "damage", "amount": 1, "on": "sunrise"}, "'sunrise' is unknown"),
    ({"p": "damage", "amount": 1, "plus": "moons*$x"}, "counter 'moons' is unknown"),
    ({"p": "damage", "amount": 1, "plus": "stacks*$x"}, "names no stack"),
    ({"p": "damage", "amount": True, "shape": {"t": "square"}}, "shape 'square' is unknown"),
    ({"p": "mod", "dur": 1, "stats": 5}, "stats of mod"),
    ("damage", "an effect is not an object"),
])
def test_errors_name_the_ability_and_the_fault(core: Any, effect: Any, says: str) -> None:
    with pytest.raises(RuntimeError, match=says) as e:
        core.compile_effects(ability(effect), "test_ability")
    assert "test_ability" in str(e.value)


def test_unsupported_effects_are_reported(core: Any) -> None:
    # A part of a built primitive that is not built, at any depth.
    nested = {"p": "projectile", "to": "target", "speed": 5, "then": [{"p": "mod", "dur": 1, "reactivate": 2}]}
    assert core.compile_effects(ability(nested), "test")["missing"] == ["mod.reactivate"]
    stats = {"p": "mod", "dur": 1, "stats": {"hp_regen_up_to_prebackdoor_hp": 1}}
    assert core.compile_effects(ability(stats), "test")["missing"] == ["mod.stats.hp_regen_up_to_prebackdoor_hp"]


@pytest.mark.parametrize("version", ["7.21d", "7.19"])
def test_every_node_of_the_data_compiles(core: Any, version: str) -> None:
    folder = DATA / f"dota-{version}"
    for file, key in (("abilities", "abilities"), ("items", "items")):
        for name, node in json.loads((folder / f"{file}.json").read_text())[key].items():
            program = core.compile_effects(node, name)
            if name in RULES:  # not abilities: world/buildings.cpp does them
                continue
            assert len(program["roots"]) == len(node.get("effects") or [])


@pytest.mark.parametrize("hero", SIX)
def test_the_six_heroes_are_fully_supported(core: Any, tables: Any, data: dict[str, Any], hero: str) -> None:
    for name in data["heroes"]["heroes"]["npc_dota_hero_" + hero]["abilities"]:
        assert core.ability_program(tables, name)["missing"] == []


def test_a_hero_with_something_missing_is_refused_by_name(core: Any, data: dict[str, Any]) -> None:
    """Silence made to summon a unit of which the data have no row: such a part cannot be there."""
    changed = dict(data) | {"abilities": copy.deepcopy(data["abilities"])}
    silence = changed["abilities"]["abilities"]["death_prophet_silence"]
    silence["effects"] = [{"p": "summon", "unit": "npc_dota_choir", "dur": 3}]
    tables = load_tables(core, changed)
    assert tables.missing_primitives("npc_dota_hero_death_prophet") == ["summon.npc_dota_choir"]
    with pytest.raises(ValueError, match="npc_dota_hero_death_prophet.*ability death_prophet_silence.*not built yet"):
        core.World(tables, {}, ["death_prophet"], ["nevermore"], 1)
    core.World(tables, {}, ["lion"], ["nevermore"], 1)


def test_talents_that_are_plain_stats_have_programs(core: Any, tables: Any) -> None:
    program = core.ability_program(tables, "special_bonus_attack_speed_20")
    assert [n["primitive"] for n in program["nodes"]] == ["passive_stats"]
    assert not program["inert"]


def test_items_the_six_heroes_use_can_be_used(core: Any, tables: Any) -> None:
    items = """
        tango flask clarity magic_wand ward_observer ward_sentry tpscroll power_treads faerie_fire
        arcane_boots blink force_staff black_king_bar glimmer_cape hurricane_pike invis_sword silver_edge
        satanic mjollnir maelstrom mask_of_madness echo_sabre assault greater_crit monkey_king_bar
        stout_shield quelling_blade tranquil_boots
    """
    for item in items.split():
        assert core.ability_program(tables, "item_" + item)["missing"] == [], item


def test_every_hero_of_the_finals_can_be_played(tables: Any) -> None:
    for hero in tables.heroes:
        assert tables.missing_primitives(hero) == [], hero


def test_a_scepter_lowers_a_stat_as_much_as_it_says(core: Any) -> None:
    """A number with a scepter's variant is subtracted by a key with `_minus` with and without the scepter."""
    arena = programmed(core, {"p": "mod", "to": "target", "dur": 5, "stats": {"armor_minus": "$armor"}},
                       specials={"armor": {"v": [4]}, "armor_scepter": {"v": [9]}})
    enemy = arena.unit(5)
    before = arena.world.unit(enemy)["armor"]
    cast_hex(arena, enemy)
    assert before - arena.world.unit(enemy)["armor"] == pytest.approx(4)
    give(arena, "ultimate_scepter")
    cast_hex(arena, enemy)
    assert before - arena.world.unit(enemy)["armor"] == pytest.approx(9)

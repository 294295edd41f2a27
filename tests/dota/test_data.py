"""The loaded tables hold what the data files say."""

import copy
from typing import Any

import pytest

from tests.dota.scenes.patches import FILES, load_tables, read_data


@pytest.mark.parametrize("version", ["7.21d", "7.19"])
def test_counts_are_those_of_the_files(core: Any, version: str) -> None:
    d = read_data(version)
    t = load_tables(core, d)
    heroes, units = d["heroes"]["heroes"], d["units"]["units"]
    assert t.version == version
    assert t.heroes == list(heroes)
    assert t.items == list(d["items"]["items"])
    assert t.units == list(units) + list(heroes)
    talents = {x["id"] for h in heroes.values() for x in h["talents"]}
    usable = [n for n, i in d["items"]["items"].items() if "effects" in i]
    assert t.abilities[: len(d["abilities"]["abilities"])] == list(d["abilities"]["abilities"])
    assert t.abilities[len(d["abilities"]["abilities"]) :][: len(usable)] == usable
    runes = [f"rune_{kind}" for kind in d["rules"]["rules"]["runes"]["power"]["kinds"]]
    rest = t.abilities[len(d["abilities"]["abilities"]) + len(usable) :]
    assert set(rest[: -len(runes)]) == talents and len(rest) == len(talents) + len(runes)
    assert rest[-len(runes) :] == runes
    assert len(t.pool_finals) == 17 and len(t.pool_ti8) == 18
    assert t.pool_finals == d["heroes"]["pool_finals_2019_17"]


def test_every_number_of_every_unit_round_trips(tables: Any, data: dict[str, Any]) -> None:
    fields = (
        "level hp hp_regen mana armor magic_resist dmg_min dmg_max attack_time attack_point attack_range "
        "acquisition_range projectile_speed move_speed turn_rate gold_min gold_max xp vision_day vision_night "
        "hull_radius"
    ).split()
    for name, unit in data["units"]["units"].items():
        loaded = tables.unit(name)
        for f in fields:
            assert loaded[f] == pytest.approx(unit[f], rel=1e-6), (name, f)
        assert loaded["true_sight"] == unit.get("true_sight", 0)
        assert loaded["can_attack"] == (unit["attack_cap"] != "no_attack")


def test_every_number_of_every_hero_round_trips(tables: Any, data: dict[str, Any]) -> None:
    body = {
        "hp": "base_hp", "hp_regen": "base_hp_regen", "mana": "base_mana", "armor": "base_armor",
        "magic_resist": "base_magic_resist", "dmg_min": "base_dmg_min", "dmg_max": "base_dmg_max",
        "attack_time": "base_attack_time", "attack_point": "attack_point", "attack_range": "attack_range",
        "projectile_speed": "projectile_speed", "move_speed": "move_speed", "turn_rate": "turn_rate",
        "vision_day": "vision_day", "vision_night": "vision_night", "hull_radius": "hull_radius",
    }  # fmt: skip
    for name, hero in data["heroes"]["heroes"].items():
        unit, loaded = tables.unit(name), tables.hero(name)
        for ours, theirs in body.items():
            assert unit[ours] == pytest.approx(hero[theirs], rel=1e-6), (name, theirs)
        assert loaded["base"] == pytest.approx([hero["base_str"], hero["base_agi"], hero["base_int"]])
        assert loaded["gain"] == pytest.approx([hero["gain_str"], hero["gain_agi"], hero["gain_int"]])
        assert loaded["primary"] == ["str", "agi", "int"].index(hero["primary"])
        assert loaded["abilities"] == hero["abilities"]
        assert loaded["skill_build"] == hero["skill_build"]
        assert loaded["talents"] == [x["id"] for x in hero["talents"]]
        assert loaded["item_start"] == hero["item_build"]["start"]
        assert loaded["item_order"] == hero["item_build"]["order"]


def test_ability_numbers_round_trip(tables: Any, data: dict[str, Any]) -> None:
    for name, ability in data["abilities"]["abilities"].items():
        loaded = tables.ability(name)
        for f in ("cast_range", "cast_point", "channel_time", "cooldown", "mana_cost"):
            assert loaded[f] == pytest.approx(ability.get(f, []), rel=1e-6), (name, f)
        assert loaded["max_level"] == ability["max_level"]
        assert loaded["required_level"] == ability["required_level"]
        assert loaded["passive"] == ("passive" in ability["behavior"])


@pytest.mark.parametrize(
    ("ability", "target"),
    [
        ("sniper_shrapnel", "unit_offset"), ("crystal_maiden_crystal_nova", "unit_offset"),
        ("viper_nethertoxin", "unit_offset"), ("lion_impale", "unit"), ("sven_storm_bolt", "unit"),
        ("queenofpain_blink", "point"), ("earthshaker_fissure", "point"), ("nevermore_shadowraze2", "none"),
        ("tidehunter_ravage", "none"), ("item_tpscroll", "teleport"), ("item_travel_boots", "teleport"),
        ("item_ward_observer", "ward"), ("item_ward_sentry", "ward"), ("item_tango", "point"),
        ("item_magic_wand", "none"), ("item_flask", "unit"), ("item_blink", "point"),
    ],
)  # fmt: skip
def test_target_types_of_actions(tables: Any, ability: str, target: str) -> None:
    assert tables.ability(ability)["target"] == target


def test_razes_copy_the_rank_of_the_first(tables: Any) -> None:
    assert tables.ability("nevermore_shadowraze1")["copies_rank_of"] is None
    for n in (2, 3):
        assert tables.ability(f"nevermore_shadowraze{n}")["copies_rank_of"] == "nevermore_shadowraze1"


def test_recipes_add_up(tables: Any, data: dict[str, Any]) -> None:
    items = data["items"]["items"]
    for name, item in items.items():
        loaded = tables.item(name)
        assert loaded["cost"] == item["cost"]
        if name == "item_ward_dispenser":  # wards are free to combine, whatever they cost
            continue
        for parts in loaded["recipes"]:
            assert loaded["recipe_cost"] + sum(items[p]["cost"] for p in parts) == item["cost"], name
            assert name not in parts
    treads = tables.item("item_power_treads")["recipes"]
    assert [r[-1] for r in treads] == ["item_belt_of_strength", "item_robe", "item_boots_of_elves"]
    assert tables.item("item_dagon_3")["recipe_cost"] == data["items"]["recipe_costs"]["item_recipe_dagon"]


def test_item_stats_take_the_rank_sold(tables: Any) -> None:
    one, five = dict(tables.item("item_dagon")["stats"]), dict(tables.item("item_dagon_5")["stats"])
    assert sorted(one.values()) == [5, 13] and sorted(five.values()) == [5, 25]
    assert tables.ability("item_dagon")["cooldown"] == [35] and tables.ability("item_dagon_5")["cooldown"] == [15]


def test_speed_of_boots_is_a_stat_of_its_own(core: Any, tables: Any) -> None:
    (boots,) = dict(tables.item("item_boots")["stats"])
    old = read_data("7.19")
    yasha = dict(load_tables(core, old).item("item_yasha")["stats"])
    assert boots not in yasha  # Yasha's 8 % stacks with boots


def test_camp_sets(tables: Any, data: dict[str, Any]) -> None:
    sets = data["units"]["neutral_camp_sets"]
    assert tables.camp_sets == [sets[t] for t in ("small", "medium", "large", "ancient")]


def broken(data: dict[str, Any], file: str, change: Any) -> list[Any]:
    d = {f: copy.deepcopy(v) if f == file else v for f, v in data.items()}
    change(d[file])
    return [d[f] for f in FILES]


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        ("units", lambda f: f["units"]["npc_dota_roshan"].pop("armor"), ["units.json", "npc_dota_roshan", "armor"]),
        ("heroes", lambda f: f["heroes"]["npc_dota_hero_axe"].pop("base_str"), ["heroes.json", "axe", "base_str"]),
        ("heroes", lambda f: f["heroes"]["npc_dota_hero_axe"]["abilities"].append("nope"), ["heroes.json", "nope"]),
        ("items", lambda f: f["items"]["item_boots"].pop("cost"), ["items.json", "item_boots", "cost"]),
        ("items", lambda f: f["items"]["item_boots"]["stats"].update(charm=3), ["items.json", "item_boots", "charm"]),
        ("abilities", lambda f: f["abilities"]["axe_battle_hunger"].pop("max_level"),
         ["abilities.json", "axe_battle_hunger", "max_level"]),
        ("rules", lambda f: f["rules"]["trees"].pop("regrow_s"), ["rules.json", "trees", "regrow_s"]),
        ("rules", lambda f: f["rules"].pop("armor"), ["rules.json", "armor"]),
        ("map", lambda f: f["grids"]["elevation"].append(1), ["map.json", "elevation"]),
        ("map", lambda f: f["lanes"]["dire"].pop("mid"), ["map.json", "dire mid", "mid"]),
        ("units", lambda f: f.update(version="7.19"), ["units.json", "7.19", "7.21d"]),
    ],
)  # fmt: skip
def test_a_wrong_file_is_named_with_its_key(
    core: Any, data: dict[str, Any], file: str, change: Any, told: list[str]
) -> None:
    with pytest.raises(ValueError) as error:
        core.load_tables(*broken(data, file, change))
    for word in told:
        assert word in str(error.value)


def test_values_outside_json_are_refused(core: Any, data: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="JSON"):
        core.load_tables({"version": object()}, *(data[f] for f in FILES[1:]))


def test_unknown_names_are_key_errors(tables: Any) -> None:
    for ask in (tables.unit, tables.ability, tables.item, tables.hero, tables.missing_primitives):
        with pytest.raises(KeyError, match="nobody"):
            ask("nobody")


def test_heroes_of_the_first_cut_have_every_primitive(tables: Any) -> None:
    for hero in ("nevermore", "sniper", "lion", "crystal_maiden", "sven", "viper"):
        assert tables.missing_primitives(f"npc_dota_hero_{hero}") == []

"""Invalid data are refused at load, with file, key and reason."""

import copy
from typing import Any

import pytest

from tests.dota.scenes.patches import FILES, load_tables, read_data


def talent_of(heroes: dict[str, Any], hero: str, name: str) -> dict[str, Any]:
    talents = heroes["heroes"]["npc_dota_hero_" + hero]["talents"]
    talent: dict[str, Any] = next(t for t in talents if t["id"] == "special_bonus_unique_" + name)
    return talent


def effects_of(abilities: dict[str, Any], ability: str) -> list[dict[str, Any]]:
    effects: list[dict[str, Any]] = abilities["abilities"][ability]["effects"]
    return effects


def put(node: dict[str, Any], path: str, value: object) -> None:
    """Set the value at a dotted path."""
    *way, last = path.split(".")
    for key in way:
        node = node[key]
    node[last] = value


def shorten(grid: list[int], cells: int) -> None:
    """Remove cells from the end of a grid's last run."""
    grid[-1] -= cells


CASES: list[tuple[str, str, Any, list[str]]] = [
    ("a special that is missing", "abilities",
     lambda f: f["abilities"]["lion_voodoo"]["specials"].pop("duration"),
     ["abilities.json", "lion_voodoo", "'dur'", "special value '$duration' is missing"]),
    ("a field that is missing", "abilities",
     lambda f: f["abilities"]["lion_impale"].pop("damage"),
     ["abilities.json", "lion_impale", "'amount'", "field '@damage' is missing"]),
    ("an unknown primitive", "abilities",
     lambda f: effects_of(f, "lion_voodoo")[0].update(p="frog"),
     ["abilities.json", "lion_voodoo", "primitive 'frog' is unknown"]),
    ("a trigger that the primitive does not have", "abilities",
     lambda f: effects_of(f, "sven_great_cleave")[0].update(on="death"),
     ["abilities.json", "sven_great_cleave", "'on' of cleave", "nothing runs it on 'death'", "it has:"]),
    ("an unknown trigger", "abilities",
     lambda f: effects_of(f, "sven_great_cleave")[0].update(on="sunrise"),
     ["abilities.json", "sven_great_cleave", "'on' of cleave: 'sunrise' is unknown"]),
    ("an unknown key", "abilities",
     lambda f: effects_of(f, "sven_warcry")[0].update(colour=3),
     ["abilities.json", "sven_warcry", "key 'colour' of mod is unknown"]),
    ("an unknown condition", "abilities",
     lambda f: effects_of(f, "axe_culling_blade")[1].update({"if": "raining"}),
     ["abilities.json", "axe_culling_blade", "'if' of mod: 'raining' is unknown"]),
    ("a recipe in a circle", "items",
     lambda f: f["items"]["item_boots"].update(recipe={"cost": 0, "needs": [["item_travel_boots"]]}),
     ["items.json", "key 'recipe' goes in a circle", "item_boots needs item_travel_boots needs item_boots"]),
    ("an item of itself", "items",
     lambda f: f["items"]["item_sange"].update(recipe={"cost": 0, "needs": [["item_yasha"]]})
     or f["items"]["item_yasha"].update(recipe={"cost": 0, "needs": [["item_sange"]]}),
     ["items.json", "key 'recipe' goes in a circle", "item_sange", "item_yasha"]),
    ("a talent that affects one word", "heroes",
     lambda f: talent_of(f, "lion", "lion_4").update(affects=[["lion_voodoo"]]),
     ["heroes.json", "npc_dota_hero_lion", "special_bonus_unique_lion_4", "not a list of [ability, special] pairs"]),
    ("more talents than eight", "heroes",
     lambda f: f["heroes"]["npc_dota_hero_lion"]["talents"].append(talent_of(f, "lion", "lion_4")),
     ["heroes.json", "npc_dota_hero_lion", "more than 8 talents"]),
    ("an enemy's cast range without a number", "items",
     lambda f: next(i for i in f["items"].values() if "cast_range_enemy" in i.get("specials", {}))["specials"][
         "cast_range_enemy"].update(v=[]), ["items.json", "special 'cast_range_enemy' has no values"]),
    ("a kill streak that is missing", "rules", lambda f: f["rules"]["gold"]["streak_bonus"].pop("3"),
     ["rules.json", "key '3' is missing"]),
    ("gold of kills for one hero only", "rules",
     lambda f: f["rules"]["gold"]["hero_kill_area"].update(by_n=[[126, 4.5]]), ["rules.json", "'by_n' has not 5"]),
    ("a number of creeps in words", "rules",
     lambda f: f["rules"]["lane_creeps"].update(melee_per_wave=[[0, "three"]]),
     ["rules.json", "key 'melee_per_wave' lacks a number at place 1"]),
    ("experience for one hero only", "rules",
     lambda f: f["rules"]["experience"].update(hero_kill_c1=[20], hero_kill_c2=[0.2]),
     ["rules.json", "key 'hero_kill_c1' lacks a number at place 1"]),
    ("a tree without a level", "map", lambda f: f["trees"][0].pop(),
     ["map.json", "key 'trees': a tree is not a list of x, y and ground level"]),
    ("a tower of another tier", "map",
     lambda f: next(b for b in f["buildings"] if b["kind"] == "tower").update(tier=7),
     ["map.json", "key 'tier' is 7, towers have 1 to 4"]),
    ("barracks of no lane", "map",
     lambda f: next(b for b in f["buildings"] if b["kind"] == "barracks").update(lane="middle"),
     ["map.json", "key 'lane' is not top, mid or bot"]),
    ("a map without fountains", "map",
     lambda f: f.update(buildings=[b for b in f["buildings"] if b["kind"] != "fountain"]),
     ["map.json", "no fountain stands near open ground"]),
    *[(f"a grid with {value}", "map", lambda f, at=at, value=value: f["grids"]["elevation"].__setitem__(at, value),
       ["map.json", "grid 'elevation' has " + told]) for at, value, told in [
        (0, float("nan"), "a value that is not"), (0, 300, "a value that is not"), (1, float("nan"), "more cells")]],
    ("more sets of a camp than a number holds", "units",
     lambda f: f["neutral_camp_sets"].update(small=f["neutral_camp_sets"]["small"] * 128),
     ["units.json", "'small' has more than 127 sets"]),
    ("a camp outside the map", "map", lambda f: f["camps"][0].update(x=90000),
     ["map.json", "camp", "key 'x, y'", "outside the map"]),
    ("a camp's box outside the map", "map", lambda f: f["camps"][0].update(box=[-9000, 0, 100, 100]),
     ["map.json", "key 'box'", "outside the map"]),
    ("a talent that nothing names", "abilities",
     lambda f: f["abilities"]["lion_voodoo"]["specials"]["radius"].pop("talent")
     and [e.pop("talent", None) or e.pop("unless_talent", None) for e in effects_of(f, "lion_voodoo")],
     ["heroes.json", "npc_dota_hero_lion", "special_bonus_unique_lion_4", "abilities.json does not name the talent"]),
    ("a talent that changes nothing", "heroes",
     lambda f: f["heroes"]["npc_dota_hero_lich"]["talents"][7].pop("effects"),
     ["heroes.json", "npc_dota_hero_lich", "special_bonus_unique_lich_2", "changes nothing"]),
    ("a talent on a number that no effect reads", "abilities",
     lambda f: f["abilities"]["sniper_assassinate"].pop("fields"),
     ["heroes.json", "npc_dota_hero_sniper", "special_bonus_unique_sniper_4", "does not name the talent"]),
    ("a talent's affects", "heroes",
     lambda f: talent_of(f, "lion", "lion_2").update(affects=[["lion_impale", "width"]]),
     ["heroes.json", "npc_dota_hero_lion", "special_bonus_unique_lion_2", "[lion_impale, width]"]),
    ("a field that no talent can change", "abilities",
     lambda f: f["abilities"]["sven_storm_bolt"]["fields"].update(damage={"talent": "special_bonus_unique_sven"}),
     ["abilities.json", "sven_storm_bolt", "fields: 'damage' is not a field"]),
    ("an unknown way to change a field", "abilities",
     lambda f: f["abilities"]["sven_storm_bolt"]["fields"]["cooldown"].update(talent_op="double"),
     ["abilities.json", "sven_storm_bolt", "talent_op 'double'"]),
    ("another ability that is not there", "abilities",
     lambda f: effects_of(f, "crystal_maiden_freezing_field")[-1]["then"][0].update(ability="crystal_maiden_thaw"),
     ["abilities.json", "crystal_maiden_freezing_field", "'crystal_maiden_thaw' is not in the data"]),
    ("a component that is not there", "items",
     lambda f: f["items"]["item_sange"].update(recipe={"cost": 0, "needs": [["item_ogre_club"]]}),
     ["items.json", "item_sange", "item 'item_ogre_club' is not in the data"]),
    ("three talents on one number", "abilities",
     lambda f: effects_of(f, "lion_voodoo")[0].update(dur=["$first", "$second", "$third"])
     or f["abilities"]["lion_voodoo"]["specials"].update({
         name: {"v": [1], "talent": talent} for name, talent in zip(
             ("first", "second", "third"), ("special_bonus_unique_lion_2", "special_bonus_unique_lion_3",
                                            "special_bonus_unique_lion_4"), strict=True)}),
     ["abilities.json", "lion_voodoo", "more than two talents change one number"]),
    ("a seventh ability", "heroes",
     lambda f: f["heroes"]["npc_dota_hero_lion"].update(abilities=["lion_voodoo"] * 7),
     ["heroes.json", "npc_dota_hero_lion", "more than 6 abilities"]),
    ("an unknown attribute", "heroes", lambda f: f["heroes"]["npc_dota_hero_lion"].update(primary="luck"),
     ["heroes.json", "npc_dota_hero_lion", "primary 'luck' is not str, agi or int"]),
    *[("an unknown " + key, "units", lambda f, key=key: f["units"]["npc_dota_roshan"].update({key: "frog"}),
       ["units.json", "npc_dota_roshan", f"{key} 'frog' is not known"])
      for key in ("class", "attack_class", "defend_class", "move_cap")],
    ("a tier of camps without a set", "units", lambda f: f["neutral_camp_sets"].update(large=[]),
     ["units.json", "neutral_camp_sets: 'large' is empty"]),
    ("a set of a camp without a creep", "units", lambda f: f["neutral_camp_sets"]["large"].append([]),
     ["units.json", "neutral_camp_sets: a set of 'large' is empty"]),
    ("a rune that is not built", "rules", lambda f: f["rules"]["runes"]["power"]["kinds"].append("illusion"),
     ["rules.json", "runes", "'power.kinds'", "double_damage"]),
    ("a rune without its effect", "rules", lambda f: f["rules"]["runes"]["effects"].pop("haste"),
     ["rules.json", "haste"]),
    ("a grid's value without a count", "map", lambda f: f["grids"]["elevation"].pop(),
     ["map.json", "grid 'elevation' has a value without a count"]),
    ("a grid with fewer cells", "map", lambda f: shorten(f["grids"]["elevation"], 1),
     ["map.json", "grid 'elevation' has fewer cells than the map"]),
    ("a grid with more cells", "map", lambda f: shorten(f["grids"]["elevation"], -1),
     ["map.json", "grid 'elevation' has more cells than the map"]),
    ("a building outside the map", "map", lambda f: f["buildings"][0].update(y=-9000),
     ["map.json", "bad_", "key 'x, y'", "outside the map"]),
    ("a tree outside the map", "map", lambda f: f["trees"][0].__setitem__(0, 9000),
     ["map.json", "key 'trees'", "outside the map"]),
    ("a shop outside the map", "map", lambda f: f["shops"][0].update(x=8321),
     ["map.json", "shops", "key 'x, y'", "outside the map"]),
    ("an unknown shop", "map", lambda f: f["shops"][0].update(kind="pawn"),
     ["map.json", "shops", "kind 'pawn' is not home, side or secret"]),
    *[(f"a {kind} rune outside the map", "map", lambda f, kind=kind: f["runes"][kind].__setitem__(0, [0, 9000]),
       ["map.json", "runes", f"key '{kind}'", "outside the map"]) for kind in ("bounty", "power")],
    ("a place of runes too few", "map", lambda f: f["runes"]["power"].pop(),
     ["map.json", "runes", "there are not 4 places of bounty runes and 2 of the others"]),
    ("a waypoint outside the map", "map",
     lambda f: f["lanes"]["dire"]["top"]["waypoints"].__setitem__(2, [-9000, 0]),
     ["map.json", "lanes, dire top", "key 'waypoints'", "outside the map"]),
    ("a malformed waypoint", "map", lambda f: f["lanes"]["dire"]["top"]["waypoints"].__setitem__(2, [1]),
     ["map.json", "lanes, dire top", "key 'waypoints'", "not a list of two numbers"]),
    ("a spawner outside the map", "map", lambda f: f["lanes"]["radiant"]["bot"].update(spawn=[0, -8400]),
     ["map.json", "lanes, radiant bot", "key 'spawn'", "outside the map"]),
    ("Roshan outside the map", "map", lambda f: f["roshan"].update(x=9000),
     ["map.json", "roshan", "key 'x, y'", "outside the map"]),
    ("a pit outside the map", "map", lambda f: f["roshan"].update(pit_box=[-2944, 1344, 9000, 2304]),
     ["map.json", "roshan", "key 'pit_box'", "outside the map"]),
    ("heroes outside the map", "map", lambda f: f["hero_spawn"].update(dire=[9000, 9000]),
     ["map.json", "key 'hero_spawn'", "outside the map"]),
    ("another version", "units", lambda f: f.update(version="7.19"),
     ["units.json is of version '7.19' but heroes.json of '7.21d'"]),
    ("an unknown stat of an item", "items", lambda f: f["items"]["item_sange"]["stats"].update(luck=3),
     ["items.json", "item_sange", "stat 'luck' is not known"]),
    ("a build with an unknown item", "heroes",
     lambda f: f["heroes"]["npc_dota_hero_lion"]["item_build"]["order"].append("item_frog"),
     ["heroes.json", "npc_dota_hero_lion", "item 'item_frog' is not in the data"]),
    ("a skill that is not there", "heroes",
     lambda f: f["heroes"]["npc_dota_hero_lion"]["skill_build"].__setitem__(0, "lion_leap"),
     ["heroes.json", "npc_dota_hero_lion", "ability 'lion_leap' is not in the data"]),
    ("a creep of a camp that is not there", "units", lambda f: f["neutral_camp_sets"]["small"][0].append("frog"),
     ["units.json", "unit 'frog' is not in the data"]),
    ("a level too few", "rules", lambda f: f["rules"]["respawn"]["by_level"].pop(),
     ["rules.json, respawn", "key 'by_level' has 24 numbers, not 25"]),
    ("a rule that is missing", "rules", lambda f: f["rules"]["armor"].pop("b"),
     ["rules.json, armor", "key 'b' is missing"]),
    ("a rule without a number", "rules", lambda f: f["rules"]["armor"].update(b="much"),
     ["rules.json, armor", "key 'b' is not a number"]),
    ("a formula without a coefficient", "rules", lambda f: f["rules"]["buyback"]["cost"].pop("networth_divisor"),
     ["rules.json", "key 'networth_divisor' is missing"]),
    ("a divisor of zero", "rules", lambda f: f["rules"]["buyback"]["cost"].update(networth_divisor=0),
     ["rules.json", "buyback.cost.networth_divisor"]),
    ("columns in another order", "rules", lambda f: f["rules"]["attack_class_table"]["cols"].reverse(),
     ["rules.json, attack_class_table", "key 'cols' is not [basic, structure, hero]"]),
    ("a drop that is not there", "rules", lambda f: f["rules"]["roshan"]["drops"]["1"].append("item_frog"),
     ["rules.json", "items.json: 'item_frog' is missing"]),
    ("a grid of another size", "map", lambda f: f["world"].update(w=128),
     ["map.json", "key 'world' does not describe 260 x 260 cells"]),
    ("malformed bounds", "map", lambda f: f["world"].update(playable_bounds=[0, 0, 1]),
     ["map.json", "key 'playable_bounds' has not 4 numbers"]),
    ("trees that the grid does not count", "map", lambda f: f["trees"].pop(),
     ["map.json", "key 'tree_count' does not agree with 'trees'"]),
    ("an unknown building", "map", lambda f: f["buildings"][0].update(kind="tent"),
     ["map.json", "bad_", "building kind 'tent' is not known"]),
    ("a building of no team", "map", lambda f: f["buildings"][0].update(team="red"),
     ["map.json", "bad_", "team 'red' is not radiant or dire"]),
    ("a building without its row", "map", lambda f: f["buildings"][0].update(unit="npc_dota_tent"),
     ["map.json", "bad_", "unit 'npc_dota_tent' is not in the data"]),
    ("too many buildings", "map", lambda f: f["buildings"].extend(f["buildings"][:10]),
     ["map.json", "key 'buildings' has more than 64 entries"]),
    ("a lane without a way", "map", lambda f: f["lanes"]["dire"]["mid"].update(waypoints=[]),
     ["map.json", "lanes, dire mid", "no waypoints"]),
    ("an unknown tier of camps", "map", lambda f: f["camps"][0].update(tier="huge"),
     ["map.json", "tier 'huge' is not known"]),
    ("a camp's box of three numbers", "map", lambda f: f["camps"][0].update(box=[0, 0, 1]),
     ["map.json", "key 'box' has not 4 numbers"]),
    ("too many camps", "map", lambda f: f["camps"].extend(f["camps"]),
     ["map.json", "key 'camps' is too long"]),
    *[(name, "abilities", lambda f, value=value: effects_of(f, "lion_voodoo")[0].update(value),
       ["abilities.json", "lion_voodoo", *told]) for name, value, told in [
        ("an unknown status", {"status": ["dizzy"]}, ["status 'dizzy' is unknown"]),
        ("an unknown shape", {"shape": {"t": "star", "r": 1}}, ["shape 'star' is unknown"]),
        ("an unknown part of a shape", {"shape": {"t": "circle", "colour": 1}}, ["shape key 'colour' is unknown"]),
        ("a sum of nothing", {"dur": []}, ["'dur' is an empty list"]),
        ("a malformed number", {"dur": {}}, ["'dur' is neither a number, a name nor a list"]),
        ("a malformed name", {"dur": "duration"}, ["'dur'", "'duration' is neither $special nor @field"]),
        ("an unknown counter", {"dur": "moons*$duration"}, ["'dur'", "counter 'moons' is unknown"]),
    ]],
    ("malformed stats", "abilities", lambda f: effects_of(f, "sven_warcry")[0].update(stats=[1]),
     ["abilities.json", "sven_warcry", "stats of mod are not an object"]),
    ("malformed effects", "abilities", lambda f: f["abilities"]["lion_voodoo"].update(effects={}),
     ["abilities.json", "lion_voodoo", "'effects' is not a list"]),
    ("a malformed effect", "abilities", lambda f: effects_of(f, "lion_voodoo").append("frog"),
     ["abilities.json", "lion_voodoo", "an effect is not an object"]),
    ("an unknown way to dispel", "abilities", lambda f: f["abilities"]["lion_voodoo"].update(dispellable="perhaps"),
     ["abilities.json", "lion_voodoo", "dispellable 'perhaps' is unknown"]),
    *[(name, "abilities", lambda f, v=v: f["abilities"]["lion_voodoo"]["specials"]["duration"].update(v=v),
       ["abilities.json", "lion_voodoo", "'$duration' " + told]) for name, v, told in [
        ("more ranks than seven", [1] * 8, "has more than 7 ranks"),
        ("a special without values", [], "has no values"),
        ("a special of words", ["long"], "holds something other than numbers")]],
    *[(f"{name} of {value}", file, lambda f, file=file, entry=entry, key=key, value=value:
       f[file][entry].update({key: value}), [file + ".json", entry, f"key '{key}' is {value}", told])
      for name, file, entry, key, value, told in [
        ("a turn rate", "units", "npc_dota_roshan", "turn_rate", -0.5, "not from 0 to 10"),
        ("a hero's turn rate", "heroes", "npc_dota_hero_axe", "turn_rate", -0.5, "not from 0 to 10"),
        ("hit points", "units", "npc_dota_roshan", "hp", 0, "from 1 to 1e+06"),
        ("a hero's hit points", "heroes", "npc_dota_hero_axe", "base_hp", -1, "from 1 to 1e+06"),
        ("a level", "units", "npc_dota_roshan", "level", 31, "from 0 to 30"),
        ("an attack time", "heroes", "npc_dota_hero_axe", "base_attack_time", 0, "from 0.1 to"),
        ("a sight", "units", "npc_dota_roshan", "vision_day", 200001, "from 0 to 100000"),
        ("a magic resistance", "units", "npc_dota_roshan", "magic_resist", 101, "from -1000 to 100"),
        ("least damage", "units", "npc_dota_roshan", "dmg_min", 5000, "more than 'dmg_max'"),
        ("least gold", "units", "npc_dota_roshan", "gold_min", 5000, "more than 'gold_max'"),
        ("a role", "heroes", "npc_dota_hero_axe", "role_position", 6, "from 1 to 5"),
        ("a rank", "abilities", "lion_impale", "max_level", 8, "from 0 to 7"),
        ("a cast range", "abilities", "lion_impale", "cast_range", -1, "from 0 to 100000"),
        ("the level of an item", "items", "item_dagon", "base_level", 0, "from 1 to 7"),
        ("a price", "items", "item_boots", "cost", -500, "from 0 to 1e+06"),
        ("charges", "items", "item_tango", "initial_charges", 300, "from 0 to 100")]],
    ("one cooldown of several", "abilities", lambda f: f["abilities"]["lion_impale"].update(cooldown=[12, -12, 12, 12]),
     ["abilities.json", "lion_impale", "key 'cooldown' is -12", "from 0 to 100000"]),
    *[("a rule's " + key.replace(".", " "), "rules", lambda f, key=key, value=value: put(f["rules"], key, value),
       ["rules.json", f"key '{key}' is {told}"]) for key, value, told in [
        *((key, 0, "0, not from") for key in (
            "gold.passive.every_s", "time.day_length_s", "lane_creeps.interval_s", "lane_creeps.siege_every_nth_wave",
            "runes.power.every_s", "neutrals.every_s", "gold.death_loss.nw_divisor")),
        ("experience.max_level", 26, "26, not from 1 to 25"),
        ("ability_points.levels_without_point", [40], "40, not from 0 to 30"),
        ("lane_creeps.melee_per_wave", [[0, 1e6]], "1e+06, not from"),
        ("combat.move_speed_min", 5000, "5000, more than 'combat.move_speed_max'")]],
    *[(f"an effect's {key} of {value}", "abilities",
       lambda f, ability=ability, at=at, key=key, value=value: effects_of(f, ability)[at].update({key: value}),
       ["abilities.json", ability, f"'{key}' of ", "1,000 times a second"]) for ability, at, key, value in [
        ("axe_battle_hunger", 0, "interval", 0), ("axe_battle_hunger", 0, "interval", 1e-6),
        ("gyrocopter_rocket_barrage", 0, "rate", 1e6), ("slark_dark_pact", 0, "pulse_interval", 0),
        ("death_prophet_exorcism", 0, "spawn_interval", -1)]],
]  # fmt: skip


@pytest.mark.parametrize(("file", "change", "told"), [c[1:] for c in CASES],
                         ids=[c[0].replace(" ", "_") for c in CASES])
def test_it_is_refused_with_file_key_and_reason(core: Any, data: dict[str, Any], file: str, change: Any,
                                                told: list[str]) -> None:
    changed = {f: copy.deepcopy(v) if f == file else v for f, v in data.items()}
    change(changed[file])
    with pytest.raises(ValueError) as error:
        load_tables(core, changed)
    for words in told:
        assert words in str(error.value), str(error.value)


@pytest.mark.parametrize("patch", ["7.21d", "7.19"])
def test_an_inert_talent_of_either_patch(core: Any, patch: str) -> None:
    """Each talent that is more than a stat, renamed to one that nothing refers to, is refused by name."""
    data = read_data(patch)
    for hero, body in data["heroes"]["heroes"].items():
        for i, talent in enumerate(body["talents"]):
            if "effects" not in talent:
                continue
            heroes = copy.deepcopy(data["heroes"])
            del heroes["heroes"][hero]["talents"][i]["effects"]
            with pytest.raises(ValueError, match=f"heroes.json, {hero}.*{talent['id']}.*changes nothing"):
                core.load_tables(*(heroes if f == "heroes" else data[f] for f in FILES))

"""Bad data are refused when they are loaded, with file, key and reason."""

import copy
from typing import Any

import pytest

from tests.dota.conftest import FILES, read_data


def talent_of(heroes: dict[str, Any], hero: str, name: str) -> dict[str, Any]:
    talents = heroes["heroes"]["npc_dota_hero_" + hero]["talents"]
    talent: dict[str, Any] = next(t for t in talents if t["id"] == "special_bonus_unique_" + name)
    return talent


def effects_of(abilities: dict[str, Any], ability: str) -> list[dict[str, Any]]:
    effects: list[dict[str, Any]] = abilities["abilities"][ability]["effects"]
    return effects


def shorten(grid: list[int], cells: int) -> None:
    """Takes cells off the end of a grid's last run."""
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
    ("what a talent is said to affect", "heroes",
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
    ("a waypoint that is none", "map", lambda f: f["lanes"]["dire"]["top"]["waypoints"].__setitem__(2, [1]),
     ["map.json", "lanes, dire top", "key 'waypoints'", "not a list of two numbers"]),
    ("a spawner outside the map", "map", lambda f: f["lanes"]["radiant"]["bot"].update(spawn=[0, -8400]),
     ["map.json", "lanes, radiant bot", "key 'spawn'", "outside the map"]),
    ("Roshan outside the map", "map", lambda f: f["roshan"].update(x=9000),
     ["map.json", "roshan", "key 'x, y'", "outside the map"]),
    ("a pit outside the map", "map", lambda f: f["roshan"].update(pit_box=[-2944, 1344, 9000, 2304]),
     ["map.json", "roshan", "key 'pit_box'", "outside the map"]),
    ("heroes outside the map", "map", lambda f: f["hero_spawn"].update(dire=[9000, 9000]),
     ["map.json", "key 'hero_spawn'", "outside the map"]),
]  # fmt: skip


@pytest.mark.parametrize(("file", "change", "told"), [c[1:] for c in CASES],
                         ids=[c[0].replace(" ", "_") for c in CASES])
def test_it_is_refused_with_file_key_and_reason(core: Any, data: dict[str, Any], file: str, change: Any,
                                                told: list[str]) -> None:
    changed = {f: copy.deepcopy(v) if f == file else v for f, v in data.items()}
    change(changed[file])
    with pytest.raises(ValueError) as error:
        core.load_tables(*(changed[f] for f in FILES))
    for words in told:
        assert words in str(error.value), str(error.value)


@pytest.mark.parametrize("patch", ["7.21d", "7.19"])
def test_an_inert_talent_of_either_patch(core: Any, patch: str) -> None:
    """Each talent that stands for more than a stat, made one that nothing names, is refused by name."""
    data = read_data(patch)
    for hero, body in data["heroes"]["heroes"].items():
        for i, talent in enumerate(body["talents"]):
            if "effects" not in talent:
                continue
            heroes = copy.deepcopy(data["heroes"])
            del heroes["heroes"][hero]["talents"][i]["effects"]
            with pytest.raises(ValueError, match=f"heroes.json, {hero}.*{talent['id']}.*changes nothing"):
                core.load_tables(*(heroes if f == "heroes" else data[f] for f in FILES))

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

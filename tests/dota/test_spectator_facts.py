"""Game data in a recording's header: everything that a HUD shows, and nothing that the data lack."""

import json
from pathlib import Path

import pytest

from dota.config import GameConfig
from dota.spaces import DATA
from dota.spectator.camera import Camera
from dota.spectator.facts import play_facts
from dota.spectator.header import pack_header, read_header
from dota.tables import HERO_PREFIX, load_tables

POOL = ["sniper", "lion", "nevermore", "sven", "viper", "crystal_maiden"]
CONFIG = GameConfig(hero_pool=POOL)


def data(name: str, patch: str = "7.21d") -> dict[str, dict[str, dict[str, object]]]:
    path = Path(DATA) / f"dota-{patch}" / f"{name}.json"
    found: dict[str, dict[str, dict[str, object]]] = json.loads(path.read_text())
    return found


@pytest.mark.parametrize("patch", ["7.21d", "7.19"])
def test_facts_cover_all_abilities_and_items_of_the_pool(patch: str) -> None:
    facts, tables = play_facts(GameConfig(patch=patch, hero_pool=POOL)), load_tables(patch)
    assert sorted(facts["heroes"]) == sorted(HERO_PREFIX + name for name in POOL)
    assert set(facts["abilities"]) <= set(tables.abilities) and len(facts["abilities"]) == 4 * 5 + 6
    assert set(facts["items"]) <= set(tables.items) and len(facts["items"]) > 130
    for hero in facts["heroes"].values():
        assert set(hero["start"]) | set(hero["build"]) <= set(facts["items"])
        assert [talent[0] for talent in hero["talents"]] == [10, 10, 15, 15, 20, 20, 25, 25]
        assert all(talent[2] for talent in hero["talents"])
    for item in facts["items"].values():
        assert set(item["parts"]) <= set(facts["items"]) and item["cost"] > 0 and item["shops"]


def test_costs_and_ranges_are_those_of_the_data() -> None:
    facts, abilities, items = play_facts(CONFIG), data("abilities")["abilities"], data("items")["items"]
    shrapnel = facts["abilities"]["sniper_shrapnel"]
    assert shrapnel["aim"] == ["point"] and not shrapnel["passive"]
    assert shrapnel["range"] == abilities["sniper_shrapnel"]["cast_range"]
    assert shrapnel["area"] == abilities["sniper_shrapnel"]["specials"]["radius"]["v"]  # type: ignore[index]
    assert shrapnel["mana"] == abilities["sniper_shrapnel"]["mana_cost"]
    assert facts["abilities"]["sniper_headshot"]["aim"] == [] and facts["abilities"]["sniper_headshot"]["passive"]
    assert facts["abilities"]["lion_finger_of_death"]["ultimate"]
    assert facts["abilities"]["viper_poison_attack"]["autocast"]
    assert not facts["abilities"]["nevermore_shadowraze2"]["learned"]
    assert facts["items"]["item_mekansm"]["cost"] == items["item_mekansm"]["cost"]
    assert facts["items"]["item_blink"]["range"] == items["item_blink"]["specials"]["blink_range"]["v"]  # type: ignore[index]
    assert facts["items"]["item_reaver"]["shops"] == ["secret"]
    assert facts["items"]["item_bottle"]["shops"] == ["home", "secret"]
    parts = facts["items"]["item_mekansm"]["parts"]
    assert sum(facts["items"][part]["cost"] for part in parts) + facts["items"]["item_mekansm"]["recipe"] == \
        facts["items"]["item_mekansm"]["cost"]
    assert "item_aegis" not in facts["items"] and "item_manta" not in facts["items"]


def test_levels_shops_and_buyback_come_from_the_rules() -> None:
    facts, rules = play_facts(CONFIG), data("rules")["rules"]
    assert facts["xp"] == rules["experience"]["total_for_level"] and len(facts["xp"]) == 25
    assert facts["no_point"] == [17, 19, 21, 22, 23, 24]
    assert [shop[0] for shop in facts["shops"]].count("secret") == 2
    assert [building[1] for building in facts["buildings"] if building[0] == "tower"].count("dire") == 11
    assert list(rules["buyback"]["cost"].values()) == facts["buyback"]


def test_header_carries_facts_and_may_lack_them() -> None:
    header = Camera(CONFIG, {}, lambda chunk, facts: None).header
    assert read_header(pack_header(header))[0]["play"] == json.loads(json.dumps(play_facts(CONFIG)))
    old = {name: value for name, value in header.items() if name != "play"}
    assert read_header(pack_header(old))[0] == old

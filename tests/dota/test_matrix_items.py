"""Every item against its data in items.json: stats while held, cost and cooldown of its use, and durations."""

import math
from typing import Any

import pytest

from tests.dota import effect_nodes
from tests.dota.fight import DATA, ITEMS
from tests.dota.scenes.arena import CENTRE, STEP, Arena

ATTRIBUTES = DATA["rules"]["rules"]["attributes"]
USABLE = [n for n, i in ITEMS.items() if {"no_target", "unit_target", "point"} & set(i.get("behavior", []))
          and "effects" in i]

def arena(new_world: Any, radiant: tuple[str, ...] = ("sven", "lion")) -> Arena:
    made = Arena(new_world(radiant, ("axe",)), DATA)
    made.place(made.unit(0), 0, 0, 0)
    made.place(made.unit(1), -150, 150)
    made.place(made.unit(5), 200, 0, math.pi)
    for i in (0, 1, 5):
        made.world.set_unit(made.unit(i), extra_hp=4000)
        made.world.set_unit(made.unit(i), hp=3000)
    return made


HELD = [n for n, i in ITEMS.items() if i.get("stats")]


@pytest.mark.parametrize("item", HELD)
def test_effects_of_held_items(new_world: Any, item: str) -> None:
    """Attributes and derived stats, armor, damage, attack speed, health, mana, regeneration, resistance."""
    a = arena(new_world)
    a.world.set_unit(a.unit(0), extra_hp_regen=0, extra_mana_regen=0)
    a.world.step(2)
    before = a.world.unit(a.unit(0))
    assert a.world.give_item(0, item, max(ITEMS[item].get("initial_charges", 0), 0))
    a.world.step(2)
    after = a.world.unit(a.unit(0))
    rank = ITEMS[item].get("base_level", 1)
    stats = {k: effect_nodes.at(v, rank) for k, v in ITEMS[item]["stats"].items()}
    passive: dict[str, float] = {}
    for n in effect_nodes.nodes(ITEMS[item]):
        held = n.node.get("on", "passive") in ("passive", "toggle_include_creeps")
        if n.way or not held or n.primitive not in ("passive_stats", "aura"):
            continue
        hostile = n.node.get("to") in ("enemies", "enemies_and_buildings")
        for key in ("self_stats", "ally_stats") if hostile else ("stats", "self_stats", "ally_stats"):
            for k, v in n.node.get(key, {}).items():
                try:
                    passive[k] = passive.get(k, 0) + effect_nodes.number(ITEMS[item], v, rank)
                except KeyError:
                    return
        for k, v in n.node.get("per_charge", {}).items():
            charges = ITEMS[item].get("initial_charges", 0)
            passive[k] = passive.get(k, 0) + charges * effect_nodes.number(ITEMS[item], v, rank)
    if n_toggle := [n for n in effect_nodes.nodes(ITEMS[item]) if n.primitive == "toggle_stat"]:
        stats["str"] = stats.get("str", 0) + effect_nodes.number(ITEMS[item], n_toggle[0].node["amount"], rank)

    def of(name: str) -> float:
        return stats.get(name, 0) + passive.get(name, 0)

    strength, agility, mind = (of(k) + of("all") for k in ("str", "agi", "int"))
    assert after["str"] - before["str"] == pytest.approx(strength, abs=1e-2)
    assert after["agi"] - before["agi"] == pytest.approx(agility, abs=1e-2)
    assert after["int"] - before["int"] == pytest.approx(mind, abs=1e-2)
    armor = of("armor") + agility * ATTRIBUTES["armor_per_agi"]
    assert after["armor"] - before["armor"] == pytest.approx(armor, abs=0.02)
    assert after["attack_speed"] - before["attack_speed"] == pytest.approx(of("as") + agility, abs=0.1)
    health, mana = of("hp") + strength * ATTRIBUTES["hp_per_str"], of("mana") + mind * ATTRIBUTES["mana_per_int"]
    assert after["max_hp"] - before["max_hp"] == pytest.approx(health, abs=0.6)
    assert after["max_mana"] - before["max_mana"] == pytest.approx(mana, abs=0.6)
    damage = after["dmg_bonus"] - before["dmg_bonus"]
    assert damage == pytest.approx(of("dmg") + of("dmg_melee"), abs=0.02)
    if not {"hp_regen_amp_pct", "hp_regen_pct_max"} & (set(stats) | set(passive)):
        regen = after["hp_regen"] - before["hp_regen"]
        assert regen == pytest.approx(of("hp_regen") + strength * ATTRIBUTES["hp_regen_per_str"], abs=0.02)
    if not {"mana_regen_amp_pct"} & set(stats):
        regen = after["mana_regen"] - before["mana_regen"]
        assert regen == pytest.approx(of("mana_regen") + mind * ATTRIBUTES["mana_regen_per_int"], abs=0.02)
    if "mr_pct" in stats and "mr_pct" not in passive:
        own = 1 - before["magic_resist"]
        strength_share = (1 - after["str"] * ATTRIBUTES["magic_resist_pct_per_str"] / 100) / (
            1 - before["str"] * ATTRIBUTES["magic_resist_pct_per_str"] / 100)
        assert 1 - after["magic_resist"] == pytest.approx(own * (1 - of("mr_pct") / 100) * strength_share, abs=2e-3)
    if "spell_amp_pct" in stats:
        assert after["spell_amp"] - before["spell_amp"] == pytest.approx(
            of("spell_amp_pct") / 100 + mind * ATTRIBUTES["spell_amp_pct_per_int"] / 100, abs=1e-3)


def target_of(a: Arena, item: dict[str, Any]) -> int:
    team = set(item.get("target_team", []))
    if "enemy" in team and "friendly" not in team:
        return a.unit(5)
    if "creep" in item.get("target_type", []) and "hero" not in item.get("target_type", []):
        return a.unit(5)
    return a.unit(0) if "enemy" not in team and team else a.unit(5)


def use(a: Arena, name: str) -> tuple[float, float]:
    """Use the item by its own target type; return the mana spent and the game time before."""
    item = ITEMS[name]
    assert a.world.give_item(0, name, max(item.get("initial_charges", 0), 1))
    a.seconds(0.2)
    a.still(a.unit(0))
    a.world.set_unit(a.unit(0), mana=5000)
    slot = a.world.ability(0, name)["slot"]
    begun = a.world.time
    behavior = item["behavior"]
    if "unit_target" in behavior:
        target = target_of(a, item)
        if name in ("item_hand_of_midas",):
            target = a.dummy(150, 0)
        a.world.order(a.unit(0), "cast_unit", target=target, slot=slot)
    elif "point" in behavior:
        a.world.order(a.unit(0), "cast_point", x=CENTRE[0] + 150, y=CENTRE[1], slot=slot)
    else:
        a.world.order(a.unit(0), "cast", slot=slot)
    return 5000 - a.world.unit(a.unit(0))["mana"], begun


# Modifiers with a stated duration.
TIMED = {"mod", "stun", "silence", "root", "hex", "disarm", "ethereal", "mute", "break", "spell_immune", "invis", "hot",
         "mana_over_time", "phase", "cyclone", "damage_return", "spell_reflect"}

# Used in a way of its own, and where that is tested.
OTHERWISE = {
    "item_tango": "eaten from a tree: tests/dota/test_effects_items.py",
    "item_tango_single": "eaten from a tree: tests/dota/test_effects_items.py",
    "item_quelling_blade": "fells a tree", "item_bfury": "fells a tree",
    "item_tpscroll": "tests/dota/test_world_rules.py", "item_travel_boots": "tests/dota/test_world_rules.py",
    "item_travel_boots_2": "as its first rank", "item_ward_dispenser": "not built: docs/game.md",
    "item_power_treads": "changes its attribute: tests/dota/test_effects_items.py",
    "item_ring_of_basilius": "chooses whether creeps share it",
    "item_vladmir": "no use", "item_armlet": "a switch: tests/dota/test_tooltips_items_magic.py",
    "item_radiance": "a switch", "item_branches": "a tree: tests/dota/test_effects_whole.py",
    "item_courier": "a courier is there from the start", "item_hand_of_midas": "tests/dota/test_effects_items.py",
    "item_soul_ring": "its mana is the use", "item_refresher": "its own cooldown is kept",
    "item_refresher_shard": "used up",
}


@pytest.mark.parametrize("item", [n for n in USABLE if n not in OTHERWISE])
def test_mana_cooldown_and_durations(new_world: Any, item: str) -> None:
    definition = ITEMS[item]
    rank = definition.get("base_level", 1)
    a = arena(new_world)
    spent, begun = use(a, item)
    first: dict[int, float] = {}
    slot_gone = False
    ready = None
    for _ in range(30):
        for unit in (a.unit(0), a.unit(1), a.unit(5)):
            for m in a.modifiers(unit, item + "#"):
                if m["left"] < 1e6:
                    first.setdefault(int(m["name"].split("#")[1]), m["left"])
        try:
            state = a.world.ability(0, item)
        except KeyError:
            slot_gone = True
        else:
            if ready is None and state["ready"] > begun:
                ready = state["ready"] - a.world.time
        spent = max(spent, 5000 - a.world.unit(a.unit(0))["mana"])
        a.world.step(1)
    cost = effect_nodes.at(definition.get("mana_cost"), rank)
    gives_mana = {"mana_gain", "mana_over_time", "heal"} & {n.primitive for n in effect_nodes.nodes(definition)}
    if cost and not gives_mana:
        assert spent == pytest.approx(cost, abs=1)
    whole = effect_nodes.at(definition.get("cooldown"), rank)
    if whole and not definition.get("consumable") and not slot_gone and not definition.get("free_on_self"):
        assert ready is not None and whole - 2 * STEP <= ready <= whole + 1e-3
    if definition.get("consumable") and definition.get("initial_charges", 0) == 1:
        assert slot_gone
    for n in effect_nodes.nodes(definition):
        plain = n.trigger == "cast" and n.primitive in TIMED
        if not plain or not isinstance(n.node.get("dur"), int | float | str) or n.node["dur"] == "until_action":
            continue
        if n.node.get("if") or {"proc", "attack_modifier"} & set(n.way):
            continue
        if n.index not in first:
            assert item in ELSEWHERE, (item, n.primitive)
            continue
        lasts = [effect_nodes.number(definition, n.node[k], rank)
                 for k in ("dur", "dur_ranged", "dur_creep", "dur_vs_ranged") if k in n.node]
        assert any(x - 2 * STEP <= first[n.index] <= x + 1e-3 for x in lasts), (n.primitive, first[n.index], lasts)


# Effects that need more than one use on the target at hand.
ELSEWHERE = {
    "item_urn_of_shadows": "on an ally and on an enemy: tests/dota/test_tooltips_items_support.py",
    "item_spirit_vessel": "on an ally and on an enemy: tests/dota/test_tooltips_items_support.py",
    "item_solar_crest": "on an ally and on an enemy: tests/dota/test_tooltips_items_7_19.py",
    "item_medallion_of_courage": "on an ally and on an enemy: tests/dota/test_tooltips_items_support.py",
    "item_ethereal_blade": "flies: tests/dota/test_tooltips_items_magic.py",
    "item_rod_of_atos": "flies: tests/dota/test_tooltips_items_magic.py",
    "item_nullifier": "flies: tests/dota/test_effects_whole.py",
    "item_meteor_hammer": "after its channel: tests/dota/test_effects_items.py",
    "item_hurricane_pike": "on an enemy: tests/dota/test_effects_items.py",
    "item_phase_boots": "its time for the ranged is another",
    "item_dust": "on the invisible: tests/dota/test_tooltips_items_consumables.py",
    "item_diffusal_blade": "its root is for creeps",
    "item_glimmer_cape": "fades in", "item_shadow_amulet": "fades in: tests/dota/test_effects_whole.py",
}


@pytest.mark.parametrize("item", ["item_flask", "item_clarity", "item_ward_observer",
                                  "item_smoke_of_deceit", "item_enchanted_mango", "item_faerie_fire",
                                  "item_tome_of_knowledge"])
def test_consumables_are_used_up(new_world: Any, item: str) -> None:
    a = arena(new_world)
    use(a, item)
    a.seconds(1.5)
    assert not [i for i in a.world.hero(0)["items"] if i and i[0] == item]


def test_every_item_is_here_or_states_nothing_to_test() -> None:
    """Held, usable, with effects of its own that have a test elsewhere, or nothing but a component."""
    with_effects = {n for n, i in ITEMS.items() if i.get("effects")}
    passive_only = with_effects - set(USABLE)
    assert not (set(OTHERWISE) | set(ELSEWHERE)) - set(DATA["items"]["items"])
    rest = set(ITEMS) - set(HELD) - set(USABLE) - passive_only
    assert all(not ITEMS[n].get("stats") and not ITEMS[n].get("effects") for n in rest)

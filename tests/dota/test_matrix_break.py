"""Break, over every passive of the data: it disables all effects of a hero's passive abilities and none of items.

Two fights with the same seed are compared: with and without the passive (or item), with every event that passives
respond to. Under break the two are equal to the last bit.
"""

from typing import Any

import pytest

from tests.dota import effect_nodes
from tests.dota.fight import (
    ABILITIES,
    ENEMY,
    ITEMS,
    MATE,
    OWNERS,
    SECOND,
    SEEN_HERO,
    Fight,
    definition,
    helpers,
    rank_of,
)
from tests.dota.scenes.arena import STEP
from tests.dota.scenes.statuses import BROKEN, INVISIBLE, STUNNED

AROUND = {"t": "circle", "r": 9000}
HELD = {"passive_stats", "aura", "proc", "cleave", "damage_block", "dispel_on_damage", "invis", "backstab",
        "on_hit_stat_steal", "stack_gain", "random_target_hits", "periodic_strike", "crit", "bash",
        "attack_stacks"}
PARTLY = {"phantom_assassin_blur", "sniper_take_aim"}  # passive and cast
PASSIVE = [a for a in OWNERS if "passive" in ABILITIES[a]["behavior"] or a in PARTLY]
# Items whose passive part answers to nothing that happens in this fight.
QUIET = {"item_gem", "item_rapier", "item_aegis", "item_ultimate_scepter", "item_magic_stick", "item_octarine_core",
         "item_sphere", "item_infused_raindrop", "item_power_treads", "item_ring_of_basilius", "item_heart",
         "item_urn_of_shadows", "item_spirit_vessel", "item_magic_wand"}
CARRIED = [i for i, d in ITEMS.items() if "passive" in d.get("behavior", ["passive"]) and d.get("effects")
           and i not in QUIET]
# Spells that passives answer to, by hero.
SPELLS = {"earthshaker": "earthshaker_enchant_totem", "lina": "lina_light_strike_array", "zuus": "zuus_lightning_bolt"}
SEEN = ("hp", "mana", "armor", "magic_resist", "move_speed", "attack_speed", "attack_range", "dmg_min", "dmg_max",
        "dmg_bonus", "hp_regen", "mana_regen", "str", "agi", "int", "evasion")


@pytest.fixture(scope="module")
def breaking(core: Any) -> dict[str, Any]:
    """Tables in which the first helper's ability breaks and weakens the enemy, and the second only weakens."""
    weak = {"p": "mod", "to": "enemies", "shape": AROUND, "dur": 100, "stats": {"armor": -1}}
    broken = {"p": "break", "to": "enemies", "shape": AROUND, "dur": 100}
    return helpers(core, [weak, broken], [weak])


def record_states(core: Any, tables: dict[str, Any], subject: str, knows: bool,
                  broken: bool) -> list[tuple[float, ...]]:
    """Return the state of all units step by step during every event that a passive may respond to."""
    fight = Fight(core, tables, subject)
    world, hero, enemy = fight.world, fight.unit(SEEN_HERO), fight.unit(ENEMY)
    fight.healthy(SEEN_HERO)
    beside = fight.dummy(120, 60, hp=20000)  # for what strikes around
    if knows and subject in ITEMS:
        assert world.give_item(SEEN_HERO, subject)
    elif knows:
        world.teach(SEEN_HERO, subject, rank_of(subject))
    for unit in (hero, enemy, fight.unit(MATE), fight.unit(SECOND)):
        world.set_unit(unit, mana=300)
    assert fight.help(SECOND, 0 if broken else 1)
    out = []

    def look(seconds: float) -> None:
        for _ in range(round(seconds / STEP)):
            world.step(1)
            for unit in (hero, enemy, fight.unit(MATE), fight.unit(SECOND), beside):
                u = world.unit(unit)
                out.append((*(u[k] for k in SEEN), u["status"] & (INVISIBLE | STUNNED), *bearings(fight, unit)))

    look(4)
    assert bool(world.unit(hero)["status"] & BROKEN) == broken
    if fight.hero in SPELLS:
        slot, u = fight.teach(SEEN_HERO, SPELLS[fight.hero], 1), world.unit(enemy)
        aimed = "point" in definition(SPELLS[fight.hero])["behavior"]
        world.order(hero, "cast_point" if aimed else "cast", x=u["x"], y=u["y"], slot=slot)
        look(2)
    world.damage(enemy, hero, 700, "pure")
    for kind in ("npc_dota_neutral_kobold", "npc_dota_neutral_kobold"):
        world.kill(fight.dummy(-600, 0, kind=kind), hero)
    look(0.5)
    fight.strike()
    look(8)
    return out


def bearings(fight: Fight, unit: int) -> tuple[int]:
    """Return the number of enemies' modifiers on the unit."""
    return (sum(1 for m in fight.world.modifiers(unit) if m["flags"] & 4),)


@pytest.mark.parametrize("ability", PASSIVE)
def test_break_switches_a_passive_off(core: Any, breaking: dict[str, Any], ability: str) -> None:
    if not definition(ability)["effects"]:
        pytest.skip("a part of another ability")
    without = record_states(core, breaking, ability, knows=False, broken=False)
    assert record_states(core, breaking, ability, knows=True, broken=False) != without, "the fight shows nothing of it"
    without = record_states(core, breaking, ability, knows=False, broken=True)
    assert record_states(core, breaking, ability, knows=True, broken=True) == without


@pytest.mark.parametrize("item", CARRIED)
def test_break_leaves_items_alone(core: Any, breaking: dict[str, Any], item: str) -> None:
    """A fight with the item is the same with and without break, except for the breaking modifier."""
    whole, broken = (record_states(core, breaking, item, knows=True, broken=b) for b in (False, True))
    assert [row[:-1] for row in whole] == [row[:-1] for row in broken]
    without = record_states(core, breaking, item, knows=False, broken=True)
    assert without != broken, "the fight shows nothing of it"


def test_every_passive_primitive_is_tried() -> None:
    """Covers the effects of learned abilities without a cast."""
    passive = {n.primitive for a in PASSIVE for n in effect_nodes.nodes(definition(a))
               if not n.way and not effect_nodes.is_active(definition(a))}
    assert passive <= HELD

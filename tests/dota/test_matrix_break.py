"""Break, over every passive of the data: it switches off all that a hero's passive abilities do, to the hero and to
others, and nothing that items do.

Two fights from one seed are compared: in one the hero knows the passive (or holds the item), in the other not, and
everything that passives answer to happens in both. Broken, the two are the same to the last number."""

from typing import Any

import pytest

from tests.dota import stated
from tests.dota.arena import STEP
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

BROKEN = 1 << 12
AROUND = {"t": "circle", "r": 9000}
HELD = {"passive_stats", "aura", "proc", "cleave", "damage_block", "dispel_on_damage", "invis", "backstab",
        "on_hit_stat_steal", "stack_gain", "random_target_hits"}
PASSIVE = [a for a in OWNERS if "passive" in ABILITIES[a]["behavior"] or a == "sniper_take_aim"]
# Items whose passive part answers to nothing that happens in this fight.
QUIET = {"item_gem", "item_rapier", "item_aegis", "item_ultimate_scepter", "item_magic_stick", "item_octarine_core",
         "item_sphere", "item_infused_raindrop", "item_power_treads", "item_ring_of_basilius", "item_heart",
         "item_urn_of_shadows", "item_spirit_vessel", "item_magic_wand"}
CARRIED = [i for i, d in ITEMS.items() if "passive" in d.get("behavior", ["passive"]) and d.get("effects")
           and i not in QUIET]
SEEN = ("hp", "mana", "armor", "magic_resist", "move_speed", "attack_speed", "attack_range", "dmg_min", "dmg_max",
        "dmg_bonus", "hp_regen", "mana_regen", "str", "agi", "int", "evasion")
INVISIBLE, STUNNED = 1 << 6, 1


@pytest.fixture(scope="module")
def breaking(core: Any) -> dict[str, Any]:
    """The first helper's ability breaks the enemy and weakens him, the second only weakens: something to shake off."""
    weak = {"p": "mod", "to": "enemies", "shape": AROUND, "dur": 100, "stats": {"armor": -1}}
    broken = {"p": "break", "to": "enemies", "shape": AROUND, "dur": 100}
    return helpers(core, [weak, broken], [weak])


def told(core: Any, tables: dict[str, Any], subject: str, knows: bool, broken: bool) -> list[tuple[float, ...]]:
    """What is seen of all who are there, step by step, while everything happens that a passive may answer to."""
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
    if fight.hero == "earthshaker":
        slot = fight.teach(SEEN_HERO, "earthshaker_enchant_totem", 1)
        world.order(hero, "cast", slot=slot)
        look(2)
    world.damage(enemy, hero, 700, "pure")
    for kind in ("npc_dota_neutral_kobold", "npc_dota_neutral_kobold"):
        world.kill(fight.dummy(-600, 0, kind=kind), hero)
    look(0.5)
    fight.strike()
    look(8)
    return out


def bearings(fight: Fight, unit: int) -> tuple[int]:
    """How many effects of enemies the unit bears."""
    return (sum(1 for m in fight.world.modifiers(unit) if m["flags"] & 4),)


@pytest.mark.parametrize("ability", PASSIVE)
def test_break_switches_a_passive_off(core: Any, breaking: dict[str, Any], ability: str) -> None:
    if not definition(ability)["effects"]:
        pytest.skip("a part of another ability")
    without = told(core, breaking, ability, knows=False, broken=False)
    assert told(core, breaking, ability, knows=True, broken=False) != without, "the fight shows nothing of it"
    without = told(core, breaking, ability, knows=False, broken=True)
    assert told(core, breaking, ability, knows=True, broken=True) == without


@pytest.mark.parametrize("item", CARRIED)
def test_break_leaves_items_alone(core: Any, breaking: dict[str, Any], item: str) -> None:
    """Broken or not, a fight with the item is the same but for the effect that breaks."""
    whole, broken = (told(core, breaking, item, knows=True, broken=b) for b in (False, True))
    assert [row[:-1] for row in whole] == [row[:-1] for row in broken]
    without = told(core, breaking, item, knows=False, broken=True)
    assert without != broken, "the fight shows nothing of it"


def test_every_passive_primitive_is_tried() -> None:
    """What abilities do while they are learned, apart from being cast."""
    passive = {n.primitive for a in PASSIVE for n in stated.nodes(definition(a))
               if not n.way and not stated.is_active(definition(a))}
    assert passive <= HELD

"""A dead unit's slot is reused in the next frame: references to the dead unit do not apply to the new one. One scene
for each loop of a frame that holds units across frames.

``test_world_units.py`` checks that no unit spawns into a slot freed in the same frame.
"""

import math
from typing import Any

import pytest

from dota.events import Event, EventKind, events_of
from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.program import HEX, programmed

NONE, HOLD, ATTACK, CAST_UNIT = 0, 2, 4, 8  # orders
KOBOLD = "npc_dota_neutral_kobold"


def replaced(arena: Arena, unit: int, x: float, y: float, kind: str = KOBOLD, team: int = 2) -> int:
    """Kill the unit and spawn another in its slot as soon as possible, at this offset from the arena's centre."""
    arena.world.kill(unit)
    arena.world.run_frames(1)
    born: int = arena.world.spawn(kind, team, CENTRE[0] + x, CENTRE[1] + y)
    assert born == unit
    return born


def whole(arena: Arena, unit: int) -> bool:
    u = arena.world.unit(unit)
    return bool(u["alive"] and u["hp"] == u["max_hp"])


@pytest.mark.parametrize("kind", ["attack", "cast_unit"])
def test_orders(core: Any, kind: str) -> None:
    """A unit walking to the dead one does not turn to the new one."""
    arena = programmed(core, {"p": "stun", "dur": 1}, cast_range=[150])
    hero, victim = arena.unit(0), arena.dummy(850, 0)
    arena.world.step(1)
    slot = arena.world.ability(0, HEX)["slot"] if kind == "cast_unit" else -1
    arena.world.order(hero, kind, target=victim, slot=slot)
    arena.world.run_frames(10)
    u = arena.world.unit(hero)
    assert u["order"] == (CAST_UNIT if slot >= 0 else ATTACK) and u["x"] > CENTRE[0]
    born = replaced(arena, victim, -1200, 0)
    stood = arena.world.unit(hero)["x"]
    arena.world.run_frames(60)
    u = arena.world.unit(hero)
    assert u["order"] in (NONE, HOLD) and u["attack_target"] != born and abs(u["x"] - stood) < 20
    assert not arena.world.unit(born)["status"] and whole(arena, born)


def test_areas(new_world: Any, data: dict[str, Any]) -> None:
    """Ravage, waves and bounces hit each unit once: a unit in the slot of one already hit is a different unit, and is
    hit too."""
    arena = Arena(new_world(("tidehunter",)), data)
    arena.place(arena.unit(0), 0, 0)
    slot = arena.teach(0, "tidehunter_ravage", 1)
    victim = arena.dummy(250, 0)
    arena.world.order(arena.unit(0), "cast", slot=slot)
    for _ in range(40):
        arena.world.run_frames(1)
        if not whole(arena, victim):
            break
    assert not whole(arena, victim)
    born = replaced(arena, victim, 1000, 0, "npc_dota_neutral_centaur_khan")
    assert whole(arena, born) and not arena.world.unit(born)["status"]
    arena.world.run_frames(45)
    assert not whole(arena, born)


def test_auras(new_world: Any, data: dict[str, Any]) -> None:
    """The new unit neither has a dead unit's aura effect nor carries its aura."""
    arena = Arena(new_world(), data)
    arena.place(arena.unit(5), 2500, 0)
    arena.teach(5, "nevermore_dark_lord", 1)
    under = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, CENTRE[0] + 2300, CENTRE[1])
    bearer = arena.world.spawn("npc_dota_neutral_kobold_taskmaster", 2, CENTRE[0] - 900, CENTRE[1] + 900)
    mate = arena.world.spawn(KOBOLD, 2, CENTRE[0] - 800, CENTRE[1] + 900)
    arena.world.step(4)
    speed = arena.world.unit(mate)["move_speed"]
    assert arena.modifiers(under, "nevermore_dark_lord") and arena.modifiers(mate, "kobold_taskmaster")
    born = replaced(arena, under, -1500, -900)
    assert not arena.world.modifiers(born)
    replaced(arena, bearer, -900, 900)
    arena.world.step(15)
    assert not arena.world.modifiers(born) and not arena.modifiers(mate, "kobold_taskmaster")
    assert arena.world.unit(mate)["move_speed"] < speed


def test_projectiles_towards_the_dead(core: Any) -> None:
    arena = programmed(core, {"p": "stun", "dur": 1})
    shooter, victim = arena.unit(1), arena.dummy(200, 0)
    arena.world.set_unit(shooter, attack_ready=0)
    arena.world.order(shooter, "attack", target=victim)
    for _ in range(60):
        arena.world.run_frames(1)
        if arena.world.projectiles():
            break
    assert arena.world.projectiles() == 1 and whole(arena, victim)
    arena.world.set_unit(shooter, attack_ready=1e9)
    born = replaced(arena, victim, 200, 0)
    arena.world.run_frames(60)
    assert not arena.world.projectiles() and whole(arena, born)


def test_projectiles_of_the_dead(new_world: Any, data: dict[str, Any]) -> None:
    """A creep's projectile kills after the creep's death: the unit in its slot gets no kill."""
    arena = Arena(new_world(), data)
    shooter = arena.world.spawn("npc_dota_creep_badguys_ranged", 1, CENTRE[0], CENTRE[1] + 600)
    victim = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, CENTRE[0] + 450, CENTRE[1] + 600)
    arena.world.set_unit(victim, hp=1, attack_ready=1e9, extra_hp_regen=-100)
    arena.world.order(shooter, "attack", target=victim)
    for _ in range(60):
        arena.world.run_frames(1)
        if arena.world.projectiles():
            break
    assert arena.world.projectiles() == 1
    born = replaced(arena, shooter, 0, 600, "npc_dota_creep_badguys_melee", 1)
    told: list[Event] = []
    for _ in range(15):
        arena.world.step(1)
        told += events_of(arena.world.events())
    died = [event for event in told if event.kind == EventKind.UNIT_DEATH and event.unit == victim]
    assert len(died) == 1 and died[0].other == -1
    assert arena.world.unit(born)["attack_target"] in (-1, victim)


def test_delayed_effects(new_world: Any, data: dict[str, Any]) -> None:
    """Finger of Death strikes a quarter of a second after it is cast."""
    arena = Arena(new_world(("lion",)), data)
    arena.place(arena.unit(0), 0, 0)
    slot = arena.teach(0, "lion_finger_of_death", 1)
    cases = [False, True]
    for dies in cases:  # without a death it strikes: the scene can tell
        arena.world.step(1)
        victim = arena.dummy(400, 0)
        arena.world.set_unit(arena.unit(0), mana=5000)
        arena.world.order(arena.unit(0), "cast_unit", target=victim, slot=slot)
        for _ in range(60):
            arena.world.run_frames(1)
            if arena.world.ability(0, "lion_finger_of_death")["ready"] > arena.world.time:
                break
        assert whole(arena, victim)
        born = replaced(arena, victim, 400, 0) if dies else victim
        arena.world.run_frames(15)
        assert whole(arena, born) == dies
        arena.world.set_time(arena.world.time + 400)


def test_towers(new_world: Any, data: dict[str, Any]) -> None:
    """A tower's target becomes one of its own side, at the same place."""
    arena = Arena(new_world(), data)
    tower = next(u for u in arena.world.units("tower") if u["building"] == "dota_badguys_tower1_mid")
    x, y = tower["x"] - CENTRE[0] - 350, tower["y"] - CENTRE[1] - 350
    victim = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, CENTRE[0] + x, CENTRE[1] + y)
    for _ in range(15):
        arena.world.step(1)
        if arena.world.unit(tower["index"])["attack_target"] == victim:
            break
    assert arena.world.unit(tower["index"])["attack_target"] == victim
    born = replaced(arena, victim, x, y, "npc_dota_creep_badguys_melee", 1)
    for _ in range(20):
        arena.world.step(1)
        assert arena.world.unit(tower["index"])["attack_target"] != born
    assert whole(arena, born)


def test_camps(new_world: Any, data: dict[str, Any]) -> None:
    """A camp's aggro on the dead unit does not apply to the new one, and a unit in the slot of a camp creep is not part
    of the camp."""
    world = new_world(neutrals=True, start_s=59.0)
    world.step(12)
    arena = Arena(world, data)
    angry, other, *_ = (u for u in world.units("neutral") if u["camp"] == 0)
    creep = world.spawn("npc_dota_creep_goodguys_melee", 0, angry["x"] + 200, angry["y"])
    world.damage(creep, angry["index"], 1)
    world.step(2)
    assert world.unit(angry["index"])["attack_target"] == creep
    born = replaced(arena, creep, 0, 0, "npc_dota_creep_goodguys_melee", 0)
    for _ in range(60):
        world.step(1)
        assert all(u["attack_target"] != born for u in world.units("neutral"))
    camp = data["map"]["camps"][0]
    back = world.unit(angry["index"])
    assert math.dist((back["x"], back["y"]), (camp["x"], camp["y"])) < 400
    born = replaced(arena, other["index"], 0, 0, "npc_dota_creep_goodguys_melee", 0)
    assert world.unit(born)["camp"] == -1


def test_summons(new_world: Any, data: dict[str, Any]) -> None:
    """A hero's channel ends after its ward died: the unit in the ward's slot stays, and belongs to nobody."""
    arena = Arena(new_world(("witch_doctor",)), data)
    hero = arena.unit(0)
    arena.place(hero, 0, 0)
    slot = arena.teach(0, "witch_doctor_death_ward", 1)
    arena.world.order(hero, "cast_point", x=CENTRE[0] + 100, y=CENTRE[1], slot=slot)
    arena.seconds(0.6)
    (ward,) = arena.world.units("summon")
    assert arena.world.unit(hero)["act"] == "channel"
    born = replaced(arena, ward["index"], 300, 0, "npc_dota_creep_badguys_melee", 1)
    prey = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, CENTRE[0] + 350, CENTRE[1])
    gold = arena.world.hero(0)["gold"], arena.world.hero(5)["gold"]
    arena.world.kill(prey, born)
    assert (arena.world.hero(0)["gold"], arena.world.hero(5)["gold"]) == gold
    arena.world.order(hero, "stop")
    arena.world.run_frames(10)
    assert arena.world.unit(hero)["act"] != "channel" and whole(arena, born)


def test_modifiers_on_the_dead(core: Any) -> None:
    arena = programmed(core, {"p": "dot", "dps": 10, "interval": 0.5, "dur": 20, "type": "pure"})
    victim = arena.dummy(300, 0)
    arena.world.order(arena.unit(0), "cast_unit", target=victim, slot=arena.world.ability(0, HEX)["slot"])
    arena.world.run_frames(40)
    assert arena.modifiers(victim, HEX) and not whole(arena, victim)
    born = replaced(arena, victim, 300, 0)
    assert not arena.world.modifiers(born)
    arena.world.run_frames(60)
    assert whole(arena, born)

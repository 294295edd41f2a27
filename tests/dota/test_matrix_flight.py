"""Projectile speed of all abilities, items and ranged heroes: the difference in arrival time at two distances is the
distance between them over the stated speed."""

import math
from typing import Any

import pytest

from tests.dota import effect_nodes
from tests.dota.fight import ENEMY, HEROES, SECOND, SEEN_HERO, Fight, case, definition, ranged, rank_of, ways
from tests.dota.scenes.arena import FRAME

NEAR, FAR = 220, 900
OF_AURA = 16  # among a modifier's flags
FLIES = {"projectile", "bounce", "linear_wave", "expanding_ring", "ring_projectiles", "projectile_point",
         "radial_lines"}
# Other kinds, and their tests.
ELSEWHERE = {
    "missile_unit": "speeds up: tests/dota/test_abilities_axe_to_necrolyte.py",
    "spirits": "fly to and fro: tests/dota/test_abilities_axe_to_necrolyte.py",
    "leap": "tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
}


def speeds(subject: str) -> list[effect_nodes.EffectNode]:
    return [n for n in effect_nodes.nodes(definition(subject))
            if "speed" in n.node and not n.upgrade() and n.primitive not in ELSEWHERE]


SUBJECTS = [(s, w) for s, w in ways() if w == "enemy" and speeds(s)]
CASES = [case(*s) for s in SUBJECTS]


def reach(subject: str, n: effect_nodes.EffectNode) -> float:
    """Return the largest usable distance: within the cast's range and the effect's."""
    d, rank = definition(subject), rank_of(subject)
    far: list[float] = [FAR]
    if {"unit_target", "point"} & set(d["behavior"]):
        far.append(effect_nodes.at(d.get("cast_range"), rank) or FAR)
    for value in (n.node.get("r"), n.node.get("len"), n.node.get("shape", {}).get("r")):
        if value is not None:
            far.append(effect_nodes.number(d, value, rank))
    return min(far) - 30


def arrival(core: Any, plain: dict[str, Any], subject: str, away: float) -> float:
    """Return the seconds from the order to the first effect on an enemy at that distance."""
    fight = Fight(core, plain, subject, away=away)
    enemy = fight.unit(ENEMY)
    fight.stand(SECOND, 3500, 0)
    (n,) = speeds(subject)
    slot = fight.prepare()
    fight.stand(ENEMY, away, 0, 3 * math.pi / 4)
    fight.seconds(0.7)
    hp, begun = fight.hp(enemy), fight.world.time
    fight.cast(slot)
    for _ in range(round(6 / FRAME)):
        fight.world.run_frames(1)
        # An assassin reveals whom he aims at: what flies puts that on by itself.
        if fight.hp(enemy) < hp or any(m["name"] != f"{subject}#{n.index}" and not m["flags"] & OF_AURA
                                       for m in fight.modifiers(enemy, subject + "#")):
            seen: float = fight.world.time - begun
            return seen
    raise AssertionError(f"{subject} did not arrive")


@pytest.mark.parametrize(("subject", "way"), CASES)
def test_it_flies_at_its_speed(core: Any, plain: dict[str, Any], subject: str, way: str) -> None:
    del way
    (n,) = speeds(subject)
    assert n.primitive in FLIES or n.primitive in ELSEWHERE
    d, rank = definition(subject), rank_of(subject)
    far, speed = reach(subject, n), effect_nodes.number(d, n.node["speed"], rank)
    if "w1" in n.node:  # it reaches ahead of itself, farther the wider it grows
        grows = (effect_nodes.number(d, n.node["w1"], rank) - effect_nodes.number(d, n.node["w0"], rank))
        speed *= 1 + grows / effect_nodes.number(d, n.node["len"], rank)
    near = NEAR
    if "w0" in n.node:  # whom it does not reach at once
        near = max(near, effect_nodes.number(d, n.node["w0"], rank) + 30)
    later = arrival(core, plain, subject, far) - arrival(core, plain, subject, near)
    ground = n.primitive == "projectile_point"  # ground areas are evaluated once a timestep
    assert later == pytest.approx((far - near) / speed, abs=(4.7 if ground else 1.7) * FRAME)


SHOOTERS = sorted(h for h in HEROES if ranged(h))


@pytest.mark.parametrize("hero", SHOOTERS)
def test_an_attack_flies_at_the_heros_speed(core: Any, plain: dict[str, Any], hero: str) -> None:
    fight = Fight(core, plain, HEROES[hero]["abilities"][0])
    attacker, enemy = fight.unit(SEEN_HERO), fight.unit(ENEMY)
    range_, speed = HEROES[hero]["attack_range"], HEROES[hero]["projectile_speed"]
    flown = []
    for away in (NEAR, range_):
        fight.stand(ENEMY, away, 0, 0)
        fight.seconds(0.2)
        hp = fight.hp(enemy)
        fight.world.set_unit(attacker, attack_ready=0)
        fight.world.order(attacker, "attack", enemy)
        for _ in range(90):
            fight.world.run_frames(1)
            if fight.hp(enemy) < hp:
                break
        assert fight.hp(enemy) < hp
        flown.append(fight.world.time - fight.world.unit(attacker)["last_attack"])
        fight.world.set_unit(attacker, attack_ready=1e9)
        fight.world.order(attacker, "hold")
    assert flown[1] - flown[0] == pytest.approx((range_ - NEAR) / speed, abs=1.7 * FRAME)

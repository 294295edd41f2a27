"""Every effect radius of an ability or item: units slightly within it are affected, units slightly beyond it are not.
"""

from typing import Any

import pytest

from tests.dota import effect_nodes
from tests.dota.fight import ENEMY, MATE, SECOND, SEEN_HERO, Fight, case, definition, rank_of, ways
from tests.dota.scenes.arena import FRAME

EDGE = 12  # units within or beyond; a frame's walk is less
RAZES = {"nevermore_shadowraze1": 200, "nevermore_shadowraze2": 450, "nevermore_shadowraze3": 700}
SIGHT = {"vision", "true_sight", "place_ward"}
# Other units nearby would pass it on or end it.
ALONE = {"earthshaker_echo_slam", "item_smoke_of_deceit"}
# Circles whose centre or pick is not the caster's or the target's, and the tests of them.
ELSEWHERE = {
    "crystal_maiden_freezing_field": "explosions by chance: tests/dota/test_abilities_crystal_maiden.py",
    "axe_culling_blade": "after a kill: tests/dota/test_tooltips_axe.py",
    "slark_pounce": "where he leaps: tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
    "death_prophet_exorcism": "where spirits go: tests/dota/test_abilities_axe_to_necrolyte.py",
    "death_prophet_spirit_siphon": "a link's length: tests/dota/test_abilities_axe_to_necrolyte.py",
    "lion_mana_drain": "for its talent: tests/dota/test_talents.py",
    "witch_doctor_death_ward": "an attack's reach: tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
    "riki_tricks_of_the_trade": "heroes before others: tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
    "zuus_lightning_bolt": "on the ground: tests/dota/test_abilities_zuus.py",
    "zuus_cloud": "a cloud that casts: tests/dota/test_abilities_zuus_cloud.py",
    "item_mjollnir": "jumps: tests/dota/test_effects_held.py",
    "item_dust": "on the invisible: below",
}


def circles(subject: str) -> list[tuple[effect_nodes.EffectNode, float]]:
    """Return the subject's circles with their radius at the tested rank."""
    d, rank, out = definition(subject), rank_of(subject), []
    for n in effect_nodes.nodes(d):
        if n.upgrade() or n.primitive in SIGHT:
            continue
        r = n.node.get("shape", {}).get("r") or (n.node.get("r") if n.primitive in ("aura", "expanding_ring") else None)
        if r is not None and r != "global":
            out.append((n, effect_nodes.number(d, r, rank)))
    return out


SUBJECTS = [(s, w) for s, w in ways() if s not in ELSEWHERE and w != "ranged" and circles(s)]
CASES = [case(*s) for s in SUBJECTS]


def reached(core: Any, plain: dict[str, Any], subject: str, way: str, n: effect_nodes.EffectNode,
            offset: float) -> bool:
    """Return whether the effect reaches an ally or the second enemy at `offset` from the circle's centre."""
    fight = Fight(core, plain, subject, way, RAZES.get(subject, 140))
    d = definition(subject)
    ours = str(n.node.get("to", "enemies")).startswith("all")
    slot = fight.prepare()
    who = MATE if ours else SECOND
    at_target = n.node.get("at") in ("point", "target") or {"projectile", "projectile_point"} & set(n.way)
    along, across = 0.0, 0.0
    if way == "mate":
        fight.stand(MATE, 0, 150)
        across = 150.0
    elif (at_target and "no_target" not in d["behavior"]) or subject in RAZES:
        along = RAZES.get(subject, 140)
    # Down the river: across it there are towers.
    watched, place = fight.unit(who), (along + offset, across)
    fight.stand(who, *place)
    for other in (ENEMY, SECOND) if subject in ALONE else (SECOND,) if who == MATE else ():
        if other != who:
            fight.stand(other, 3500, 0)
    fight.world.set_unit(watched, hp=9000, mana=100)
    fight.seconds(0.7)  # modifiers left by an aura run out
    fight.still(watched)
    fight.world.set_unit(watched, hp=9000, mana=100)
    bare = fight.world.unit(watched)
    if slot >= 0:
        fight.cast(slot)
    if n.primitive == "multi_attack":  # strikes only units that its team sees
        fight.world.spawn("npc_dota_observer_wards", 0, bare["x"] + 60, bare["y"] - 60)
        fight.world.step(1)
    if n.trigger == "attacked" or n.primitive == "multi_attack":
        fight.strike()
    elif n.trigger == "own_ability_cast":
        fight.world.order(fight.unit(SEEN_HERO), "cast",
                          slot=fight.teach(SEEN_HERO, "earthshaker_enchant_totem", 1))
    for _ in range(round((8 if n.trigger in ("attacked", "interval") else 5) / FRAME)):
        fight.stand(who, *place, 0)
        fight.world.run_frames(1)
        marks = [m["name"] for m in fight.world.modifiers(watched)]
        if n.primitive != "multi_attack" and f"{subject}#{n.index}" in marks:
            return True
        u = fight.world.unit(watched)
        if abs(u["hp"] - 9000) > 5 or abs(u["mana"] - bare["mana"]) > 5:
            return True
    return False


@pytest.mark.parametrize(("subject", "way"), CASES)
def test_effect_ends_at_its_radius(core: Any, plain: dict[str, Any], subject: str, way: str) -> None:
    for n, r in {(n.node.get("to"), r): (n, r) for n, r in circles(subject)}.values():
        within, beyond = (reached(core, plain, subject, way, n, r + o) for o in (-EDGE, EDGE))
        assert (within, beyond) == (True, False), (n.primitive, n.index, r)


@pytest.mark.parametrize("offset", [-EDGE, EDGE])
def test_dust_shows_the_invisible_around(core: Any, plain: dict[str, Any], offset: int) -> None:
    """Within its radius it reveals and slows invisible units for its duration; none beyond. Visible units are not
    slowed, but seen should they fade."""
    fight = Fight(core, plain, "item_dust")
    specials = definition("item_dust")["specials"]
    radius, lasts, slow = (specials[k]["v"][0] for k in ("radius", "duration", "movespeed"))
    hidden, plain = fight.unit(SECOND), fight.unit(ENEMY)
    slot = fight.prepare()
    fight.stand(SECOND, radius + offset, 0)
    fight.world.rune(hidden, INVISIBILITY)
    fight.seconds(2.5)
    assert not fight.world.visible(0, hidden)
    speed = fight.world.unit(hidden)["move_speed"]
    fight.cast(slot)
    fight.seconds(0.2)
    within = offset < 0
    assert fight.world.visible(0, hidden) == within
    assert bool(fight.modifiers(hidden, "item_dust#")) == within
    slowed = speed + slow / 100 * fight.base_speed(fight.helper) if within else speed
    assert fight.world.unit(hidden)["move_speed"] == pytest.approx(slowed, rel=1e-3)
    assert [m["name"] for m in fight.modifiers(plain, "item_dust#")] == ["item_dust#0"]
    fight.seconds(lasts)
    assert not fight.world.visible(0, hidden)


INVISIBILITY = 3  # among the runes

"""Spell immunity, over every ability and item: Black King Bar blocks exactly what the data do not let through, and
allies' effects still reach its bearer."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.dota import effect_nodes
from tests.dota.fight import ENEMY, MATE, SECOND, SEEN_HERO, Fight, case, definition, name_of, ways
from tests.dota.scenes.arena import FRAME
from tests.dota.scenes.statuses import SPELL_IMMUNE

DEBUFF = 4  # among a modifier's flags
CASES = [case(*way) for way in ways() if way[0] != "item_tome_of_knowledge"]  # which teaches other abilities
# From where a raze strikes.
AWAY = {"nevermore_shadowraze2": 450, "nevermore_shadowraze3": 700}
# Abilities whose piercing this fight does not show, and their tests.
ELSEWHERE = {
    "axe_culling_blade": "its kill pierces, its damage is magical: tests/dota/test_tooltips_axe.py",
    "item_hand_of_midas": "of creeps, which are never immune here: tests/dota/test_effects_items.py",
    "phantom_assassin_coup_de_grace": "part of an attack: tests/dota/test_abilities_phantom_assassin.py",
    "phantom_assassin_phantom_strike": "it moves its caster: tests/dota/test_abilities_phantom_assassin.py",
    "omniknight_guardian_angel": "for allies: tests/dota/test_abilities_omniknight.py",
    "zuus_cloud": "a cloud that casts: tests/dota/test_abilities_zuus_cloud.py",
    "zuus_static_field": "part of other abilities: tests/dota/test_abilities_zuus.py",
    "riki_blink_strike": "its damage is magical: tests/dota/test_tooltips_riki.py",
    "riki_permanent_invisibility": "part of an attack: tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
    "sniper_assassinate": "its stun reaches who becomes immune in its flight: tests/dota/test_tooltips_sniper.py",
    "ursa_enrage": "it reaches its caster alone: tests/dota/test_abilities_ursa.py",
}


def shield(fight: Fight, hero: int) -> None:
    """Use Black King Bar: ten seconds of immunity."""
    fight.world.set_unit(fight.unit(hero), mana=400)
    fight.world.order(fight.unit(hero), "cast", slot=fight.world.ability(hero, "item_black_king_bar")["slot"])
    fight.world.run_frames(1)
    assert fight.world.unit(fight.unit(hero))["status"] & SPELL_IMMUNE


def reached(fight: Fight, immune: bool) -> bool:
    """Return whether it puts a modifier on the two enemies, or hurts them other than by their attacks on each other."""
    for hero in (ENEMY, SECOND):
        assert fight.world.give_item(hero, "item_black_king_bar")
    fight.seconds(0.2)
    slot = fight.prepare()
    if immune:
        for hero in (ENEMY, SECOND):
            shield(fight, hero)
        fight.seconds(0.6)  # modifiers left by an aura run out
    touched = False
    hp = {hero: fight.hp(fight.unit(hero)) for hero in (ENEMY, SECOND)}

    def look(seconds: float, *bystanders: int) -> None:
        nonlocal touched
        for _ in range(round(seconds / FRAME)):
            fight.world.run_frames(1)
            touched = touched or any(m["flags"] & DEBUFF for hero in hp
                                     for m in fight.modifiers(fight.unit(hero), fight.subject + "#"))
            touched = touched or any(fight.hp(fight.unit(hero)) < hp[hero] - 1e-3 for hero in bystanders)

    if slot >= 0:
        fight.cast(slot)
        look(5.2, ENEMY, SECOND)
    if fight.subject == "earthshaker_aftershock":
        fight.world.order(fight.unit(SEEN_HERO), "cast",
                          slot=fight.teach(SEEN_HERO, "earthshaker_enchant_totem", 1))
        look(1.1, SECOND)
    fight.strike()
    if slot >= 0 and "attack" in definition(fight.subject).get("behavior", []):
        fight.cast(slot)
    look(3, SECOND)
    assert not immune or fight.world.unit(fight.unit(ENEMY))["status"] & SPELL_IMMUNE
    return touched


@pytest.mark.parametrize(("subject", "way"), CASES)
def test_it_reaches_the_immune_if_the_data_say_so(core: Any, plain: dict[str, Any], subject: str, way: str) -> None:
    """Relevant keys: `spell_immunity` of the ability or item, `magic_immune_enemies` of its targets, `pierces_immunity`
    of an effect. Without these keys it does not reach immune units."""
    if subject in ELSEWHERE:
        return
    d = definition(subject)
    pierces = (d.get("spell_immunity") == "enemies_yes" or "magic_immune_enemies" in d.get("target_flags", [])
               or any("pierces_immunity" in n.node for n in effect_nodes.nodes(d)))
    plain, immune = (reached(Fight(core, plain, subject, way, AWAY.get(subject, 140)), i) for i in (False, True))
    if states_it(subject) and way == "enemy":
        assert plain, "the fight shows nothing of it"
    assert immune == (plain and pierces)


FRIENDLY = [(s, w) for s, w in ways() if w == "mate" and "unit_target" in definition(s)["behavior"]
            and any("dur" in n.node and n.trigger == "cast" and n.node.get("if") != "enemy" and not n.upgrade()
                    and n.node["dur"] != "until_action" for n in effect_nodes.nodes(definition(s)))
            and "tango" not in s]


@pytest.mark.parametrize(("subject", "way"), [case(*f) for f in FRIENDLY])
def test_it_reaches_ones_own_immune(core: Any, plain: dict[str, Any], subject: str, way: str) -> None:
    """Effects for allies reach immune allies unless the data exclude them."""
    fight = Fight(core, plain, subject, way)
    assert fight.world.give_item(MATE, "item_black_king_bar")
    fight.seconds(0.2)
    slot = fight.prepare()
    shield(fight, MATE)
    fight.cast(slot)
    seen: dict[tuple[int, int], Any] = {}
    fight.seen(60, seen)
    refused = "not_magic_immune_allies" in definition(subject).get("target_flags", [])
    assert bool([hero for _, hero in seen if hero == MATE]) != refused


def states_it(subject: str) -> bool:
    """Return whether the data define its behaviour against immunity."""
    d = definition(subject)
    says = d.get("spell_immunity") or any("immune" in f for f in d.get("target_flags", []))
    return subject not in ELSEWHERE and bool(says or any("pierces_immunity" in n.node for n in effect_nodes.nodes(d)))


def test_cases_of_other_tests_exist() -> None:
    for ability, where in ELSEWHERE.items():
        (file,) = re.findall(r"tests/dota/\w+\.py", where)
        text = (Path(__file__).parents[2] / file).read_text()
        assert f'"{name_of(ability)}"' in text, ability

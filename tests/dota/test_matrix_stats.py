"""Every temporary stat of an ability or item against the bearer's fields when the modifier first appears: speed, armor,
resistance, attack speed, damage, regeneration, attributes, evasion."""

from typing import Any

import pytest

from tests.dota import effect_nodes
from tests.dota.fight import (
    ENEMY,
    HASTE,
    HEROES,
    MATE,
    SEEN_HERO,
    Fight,
    Sight,
    case,
    definition,
    ranged,
    rank_of,
    ways,
)
from tests.dota.scenes.arena import FRAME
from tests.dota.scenes.patches import read_data

GIVES = {"mod", "aura", "ground_area", "ethereal", "hex", "invis", "smoke", "orb_corruption"}
RULES = read_data("7.21d")["rules"]["rules"]
# A unit's number by the stat that is added to it; others are shares, below.
ADDED = {"armor": "armor", "as": "attack_speed", "dmg": "dmg_bonus", "range": "attack_range", "hp_regen": "hp_regen",
         "mana_regen": "mana_regen", "mana_regen_plain": "mana_regen"}
SHARES = {"ms_pct", "ms_flat", "ms_set", "mr_pct", "base_dmg_pct", "str"}
# Stats without a field, with the tests of their effect.
BY_EFFECT = {
    "miss_pct": "attacks that miss: below",
    "attack_taken_pct": "blows: tests/dota/test_tooltips_heroes.py",
    "block": "blows: tests/dota/test_matrix_stacking.py",
    "status_res_pct": "durations: tests/dota/test_abilities_ursa.py, test_abilities_omniknight.py",
    "heal_amp_pct": "heals: tests/dota/test_abilities_axe_to_necrolyte.py",
    "lifesteal_pct": "tests/dota/test_effects_held.py",
    "dmg_dealt_pct": "blows: tests/dota/test_effects_held.py",
    "dmg_taken_pct": "blows: tests/dota/test_abilities_ursa.py",
    "hp_regen_amp_pct": "tests/dota/test_effects_whole.py",
    "hp_regen_pct": "tests/dota/test_effects_whole.py",
    "turn_rate_set": "tests/dota/test_tooltips_items_boots.py",
    "mana_cost_red_pct": "of a talent: tests/dota/test_talents.py",
}

# Where this fight does not show it, and the test that does.
UNSEEN = {
    "axe_culling_blade": "after a kill: tests/dota/test_tooltips_axe.py",
    "lina_fiery_soul": "after a spell: tests/dota/test_abilities_lina.py",
    "razor_plasma_field": "by distance: tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
    "item_dust": "on the invisible: tests/dota/test_matrix_radius.py",
    "item_armlet": "switched on: tests/dota/test_tooltips_items_magic.py",
}
PASSIVE, OF_AURA, BANISHED = 8, 16, 1 << 9  # a modifier's flags, a unit's status


def gives(n: effect_nodes.EffectNode, ranged_bearer: bool, ranged_caster: bool, ally: bool) -> dict[str, Any]:
    """Return the node's stats for such a bearer by name, with values as in the data."""
    out = dict(n.node.get("stats", {}))
    out |= n.node.get("ally_stats" if ally else "enemy_stats", {})
    if ranged_bearer if n.primitive == "aura" else ranged_caster:
        out |= n.node.get("ranged_stats", {})
    if n.primitive == "ethereal":
        out["mr_pct"] = n.node["mr_pct"]
    if n.primitive == "hex":
        out["ms_set"] = n.node["ms_set"]
    if n.primitive == "orb_corruption":
        out["armor"] = n.node["armor"]
    return out


def changes(subject: str) -> bool:
    return any(n.primitive in GIVES and any(k.endswith("stats") or k in ("mr_pct", "ms_set", "armor") for k in n.node)
               and not n.upgrade() for n in effect_nodes.nodes(definition(subject)))


SUBJECTS = [(s, w) for s, w in ways() if changes(s) and s not in UNSEEN]
CASES = [case(*s) for s in SUBJECTS]


def expected(before: dict[str, float], hero: str, sums: dict[str, float], passes: float,
             sight: Sight) -> dict[str, float]:
    """Return a bearer's fields with these stats added, and magic resistances multiplied."""
    out = {ADDED[k]: before[ADDED[k]] + v for k, v in sums.items() if k in ADDED}
    if sight.struck and sight.bearer in (SEEN_HERO, ENEMY):
        out["attack_speed"] = before["attack_speed"] + sums.get("as", 0) + HASTE
    if "attack_speed" in out:
        low, high = RULES["combat"]["attack_speed_min"], RULES["combat"]["attack_speed_max"]
        out["attack_speed"] = min(max(out["attack_speed"], low), high)
    if "ms_pct" in sums:
        speed = before["move_speed"] + HEROES[hero]["move_speed"] * sums["ms_pct"] / 100
        out["move_speed"] = min(max(speed, RULES["combat"]["move_speed_min"]), RULES["combat"]["move_speed_max"])
    if "ms_flat" in sums:
        out["move_speed"] = out.get("move_speed", before["move_speed"]) + sums["ms_flat"]
    if "ms_set" in sums:
        out["move_speed"] = sums["ms_set"]
    if passes != 1:
        out["magic_resist"] = 1 - (1 - before["magic_resist"]) * passes
    if "str" in sums:
        out["str"] = before["str"] + sums["str"]
        if "hp_regen" in out:
            out["hp_regen"] += sums["str"] * RULES["attributes"]["hp_regen_per_str"]
    elif "base_dmg_pct" in sums:
        for end in ("dmg_min", "dmg_max"):
            out[end] = before[end] * (1 + sums["base_dmg_pct"] / 100)
    return out


def added(subject: str, n: effect_nodes.EffectNode, fight: Fight, bearer: int) -> dict[str, float]:
    """Return the node's signed stats on this bearer, without those visible only through their effect."""
    d, rank, out = definition(subject), rank_of(subject), {}
    ours = bearer in (SEEN_HERO, MATE)
    for name, value in gives(n, ranged(fight.names[bearer]), ranged(fight.hero), ours).items():
        stem = name.removesuffix("_minus")
        stem = {"hp_regen_pct": "hp_regen_amp_pct"}.get(stem, stem)
        assert stem in ADDED or stem in SHARES or stem in BY_EFFECT, stem
        if not isinstance(value, list) and value != "unlimited_on_target" and stem not in BY_EFFECT:
            out[stem] = effect_nodes.number(d, value, rank) * (-1 if name.endswith("_minus") else 1)
    return out


@pytest.mark.parametrize(("subject", "way"), CASES)
def test_it_changes_the_stated_stats(core: Any, plain: dict[str, Any], subject: str, way: str) -> None:
    nodes = effect_nodes.nodes(definition(subject))
    fight = Fight(core, plain, subject, way)
    healthy = {hero: fight.world.unit(fight.unit(hero)) for hero in fight.names}
    seen = fight.everything(keep=True)
    holding = Fight(core, plain, subject, way)
    holding.prepare()
    own = holding.world.unit(holding.unit(SEEN_HERO))
    checked = 0
    for sight in seen.values():
        if nodes[sight.index].primitive not in GIVES or sight.flags & PASSIVE:
            continue
        fight.world.restore(sight.snapshot)
        unit, passes = fight.unit(sight.bearer), 1.0
        sums: dict[str, float] = {}
        aura_of_own = sight.bearer == SEEN_HERO and any(
            n.primitive == "aura" and not n.upgrade() for n in nodes)
        if aura_of_own or fight.world.unit(unit)["status"] & BANISHED:
            continue
        fade = nodes[sight.index].node.get("fade", 0)
        fight.world.run_frames(1 + round(effect_nodes.number(definition(subject), fade, rank_of(subject)) / FRAME))
        for m in fight.modifiers(unit, subject + "#"):
            n = nodes[int(m["name"].split("#")[1])]
            carrier = n.primitive == "aura" and not m["flags"] & OF_AURA
            waits = n.primitive == "invis" and not m["status"]
            if n.primitive not in GIVES or carrier or m["flags"] & PASSIVE or waits:
                continue
            for stem, value in added(subject, n, fight, sight.bearer).items():
                if stem == "mr_pct":
                    passes *= 1 - value / 100
                else:
                    sums[stem] = sums.get(stem, 0) + value
        before = own if sight.bearer == SEEN_HERO else healthy[sight.bearer]
        after = fight.world.unit(unit)
        for name, value in expected(before, fight.names[sight.bearer], sums, passes, sight).items():
            assert after[name] == pytest.approx(value, rel=0.012, abs=0.05), (nodes[sight.index].primitive, name, sums)
            checked += 1
    if way == "enemy":
        by_effect = all({k.removesuffix("_minus") for k in n.node.get("stats", {})} <= set(BY_EFFECT) for n in nodes)
        assert checked or by_effect, "the fight shows nothing of it"


BLINDING = [(s, n) for s, w in ways() for n in effect_nodes.nodes(definition(s))
            if w == "enemy" and "miss_pct" in n.node.get("stats", {})]


@pytest.mark.parametrize(("subject", "node"), BLINDING, ids=[s for s, _ in BLINDING])
def test_the_blind_miss(core: Any, plain: dict[str, Any], subject: str, node: effect_nodes.EffectNode) -> None:
    """Checks the share of attacks that miss for units in the area."""
    fight = Fight(core, plain, subject)
    slot, enemy = fight.prepare(), fight.unit(ENEMY)
    swings = landed = 0
    while swings < 150:
        fight.healthy(SEEN_HERO)
        fight.world.set_unit(fight.unit(SEEN_HERO), mana=9000)
        if not swings or "toggle" not in definition(subject)["behavior"]:
            fight.cast(slot)
            fight.seconds(0.7)
        fight.world.set_unit(enemy, attack_ready=0, extra_as=HASTE)
        fight.world.order(enemy, "attack", fight.unit(SEEN_HERO))
        last, hp = fight.world.unit(enemy)["last_attack"], fight.hp(fight.unit(SEEN_HERO))
        for _ in range(round(5 / FRAME)):
            fight.world.run_frames(1)
            now, left = fight.world.unit(enemy)["last_attack"], fight.hp(fight.unit(SEEN_HERO))
            swings += now != last
            landed += left < hp - 1
            last, hp = now, left
        fight.world.set_unit(enemy, attack_ready=1e9)
        fight.world.order(enemy, "hold")
        fight.seconds(12)
    share = effect_nodes.number(definition(subject), node.node["stats"]["miss_pct"], rank_of(subject)) / 100
    assert 1 - landed / swings == pytest.approx(share, abs=0.1)

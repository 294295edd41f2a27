"""Damage of every ability against the health that an enemy hero loses in a small scene: amounts and times of
abilities.json, the caster's spell amplification, the enemy's resistance and armor of rules.json."""

import math
from pathlib import Path
from typing import Any

import pytest

from tests.dota import effect_nodes
from tests.dota.fight import DATA, definition
from tests.dota.scenes.arena import Arena
from tests.dota.test_matrix_abilities import ALL, Scene

# Abilities with damage by chance, attacks, distance or other units, and the tests of their numbers.
ELSEWHERE = {
    "axe_counter_helix": "tests/dota/test_abilities_axe_to_necrolyte.py",
    "crystal_maiden_freezing_field": "tests/dota/test_abilities_crystal_maiden.py",
    "death_prophet_exorcism": "tests/dota/test_abilities_axe_to_necrolyte.py",
    "death_prophet_spirit_siphon": "tests/dota/test_abilities_axe_to_necrolyte.py",
    "earthshaker_aftershock": "tests/dota/test_abilities_axe_to_necrolyte.py",
    "gyrocopter_rocket_barrage": "tests/dota/test_tooltips_gyrocopter.py",
    "gyrocopter_homing_missile": "tests/dota/test_abilities_axe_to_necrolyte.py",
    "gyrocopter_flak_cannon": "tests/dota/test_abilities_axe_to_necrolyte.py",
    "necrolyte_heartstopper_aura": "tests/dota/test_abilities_axe_to_necrolyte.py",
    "necrolyte_reapers_scythe": "tests/dota/test_abilities_axe_to_necrolyte.py",
    "nevermore_requiem": "tests/dota/test_abilities_nevermore.py",
    "omniknight_purification": "tests/dota/test_abilities_omniknight.py",
    "razor_plasma_field": "tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
    "razor_unstable_current": "tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
    "razor_eye_of_the_storm": "tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
    "riki_blink_strike": "tests/dota/test_tooltips_riki.py",
    "slark_dark_pact": "tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
    "sniper_headshot": "tests/dota/test_abilities_sniper.py",
    "tidehunter_anchor_smash": "tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
    "viper_corrosive_skin": "tests/dota/test_abilities_viper.py",
    "earthshaker_echo_slam": "tests/dota/test_abilities_axe_to_necrolyte.py",
    "viper_poison_attack": "tests/dota/test_abilities_viper.py",
    "witch_doctor_maledict": "tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
    "lich_frost_shield": "tests/dota/test_tooltips_lich.py",
    "leshrac_pulse_nova": "tests/dota/test_abilities_leshrac.py",
}
DEALS = {"damage", "dot", "ground_area", "execute"}


def deals_damage(ability: str) -> bool:
    return any(n.primitive in DEALS and ({"amount", "dps", "per_tick", "total", "else_damage"} & set(n.node))
               and not n.upgrade() for n in effect_nodes.nodes(definition(ability)))


def whole_damage(ability: str, rank: int) -> dict[str, float]:
    """Return the damage before reductions, by type, to an enemy hero hit once by everything who stays in place."""
    d = definition(ability)
    out: dict[str, float] = {}
    for n in effect_nodes.nodes(d):
        node = n.node
        if n.upgrade() or n.trigger not in ("cast", "channel") or node.get("if") == "ally":
            continue
        amount = 0.0
        if n.primitive == "damage":
            amount = effect_nodes.number(d, node["amount"], rank)
        elif n.primitive == "execute":
            amount = effect_nodes.number(d, node["else_damage"], rank)
        elif n.primitive == "dot":
            lasts = effect_nodes.number(d, node["dur"], rank)
            every = effect_nodes.number(d, node.get("interval", 1), rank)
            ticks = math.floor(lasts / every + 1e-6)
            if "total" in node:
                amount += effect_nodes.number(d, node["total"], rank)
            if "dps" in node:
                amount += effect_nodes.number(d, node["dps"], rank) * every * ticks
            if "per_tick" in node:
                amount += effect_nodes.number(d, node["per_tick"], rank) * ticks
        elif n.primitive == "ground_area" and "dps" in node:
            amount = effect_nodes.number(d, node["dps"], rank) * effect_nodes.number(d, node["dur"], rank)
        if amount:
            kind = node.get("type", "magical")
            out[kind] = out.get(kind, 0) + amount
    return out


DEALERS = [(h, a) for h, a in ALL if deals_damage(a) and a not in ELSEWHERE and effect_nodes.is_active(definition(a))]


def through(scene: Arena, kind: str, caster: int, target: int) -> float:
    """Return the share of a spell's damage of that type that passes (rules.json attributes, armor)."""
    u = scene.world.unit(target)
    if kind == "physical":
        r = DATA["rules"]["rules"]["armor"]
        return float(1 - r["a"] * u["armor"] / (r["b"] + r["c"] * abs(u["armor"])))
    amp = scene.amp(caster)
    return amp * (scene.magic(target) if kind == "magical" else 1.0)


def test_all_that_states_damage_is_here_or_has_its_own_test() -> None:
    stating = {a for _, a in ALL if deals_damage(a)}
    assert stating <= {a for _, a in DEALERS} | set(ELSEWHERE)
    assert set(ELSEWHERE) <= {a for _, a in ALL}
    for ability, file in ELSEWHERE.items():
        assert f'"{ability}"' in (Path(__file__).parents[2] / file).read_text(), ability


@pytest.mark.parametrize(("hero", "ability"), DEALERS, ids=[a for _, a in DEALERS])
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_damage(new_world: Any, hero: str, ability: str, last: bool) -> None:
    d = definition(ability)
    rank = d["max_level"] if last else 1
    razes = {"nevermore_shadowraze1": 200, "nevermore_shadowraze2": 450, "nevermore_shadowraze3": 700}
    scene = Scene(new_world, hero, away=razes.get(ability, 140 if ability == "axe_culling_blade" else 250))
    enemy, caster = scene.unit(5), scene.unit(0)
    hp = scene.hp(enemy)
    resist = {kind: through(scene, kind, caster, enemy) for kind in ("physical", "magical", "pure")}
    scene.order(ability, rank)
    longest = max([effect_nodes.number(d, n.node[k], rank) for n in effect_nodes.nodes(d) for k in ("dur", "delay")
                   if k in n.node and not n.upgrade()], default=0)
    scene.seconds(min(longest, 16) + 3)
    lost = hp - scene.hp(enemy)
    expected = sum(amount * resist[kind] for kind, amount in whole_damage(ability, rank).items())
    # Ground that lowers resistance, and damage that waits for a second wave, differ by their first tick.
    assert lost == pytest.approx(expected, rel=0.012 if ability not in LOOSE else LOOSE[ability]), (lost, expected)


# Effects that change the resistance they are reduced by, or that start with half a tick; by how much.
LOOSE = {"viper_nethertoxin": 0.35, "sniper_shrapnel": 0.12, "lich_chain_frost": 0.02}

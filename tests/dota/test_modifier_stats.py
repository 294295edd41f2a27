"""Temporary stats of abilities: the fields of caster, ally and enemy match abilities.json by the stacking rules at the
first and last rank while each modifier lasts, and return to their old values afterwards."""

import math
from typing import Any

import pytest

from tests.dota import effect_nodes, unit_model
from tests.dota.scenes.actions import give
from tests.dota.scenes.arena import STEP
from tests.dota.test_matrix_abilities import ALL, DATA, Scene, definition
from tests.repository import ROOT

RANKS = pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
AURA = 16  # flag of what an aura puts on its bearers


def given(ability: str, n: effect_nodes.EffectNode, rank: int, share: float = 0) -> dict[str, float]:
    """Return the stats that a node gives its bearer."""
    d, node = definition(ability), n.node
    if n.primitive == "hex":
        return {"ms_base": effect_nodes.number(d, node["ms_set"], rank)}
    if n.primitive == "ethereal":
        return {"mr_pct": effect_nodes.number(d, node["mr_pct"], rank)}
    if n.primitive == "stat_drain":
        return {node["stat"]: effect_nodes.number(d, node["amount"], rank)}
    return unit_model.read(d, node.get("stats", {}), rank, share)


def gives(n: effect_nodes.EffectNode) -> bool:
    by_itself = n.primitive in ("hex", "ethereal") or (n.primitive == "stat_drain" and "amount" in n.node)
    return "stats" in n.node or by_itself


def timed(ability: str) -> list[effect_nodes.EffectNode]:
    """Return a cast's nodes with temporary stats."""
    return [n for n in effect_nodes.nodes(definition(ability)) if gives(n) and not n.upgrade()
            and n.primitive not in ("passive_stats", "summon") and n.trigger in ("cast", "channel")
            and not {"proc", "attack_modifier"} & set(n.way) and effect_nodes.is_active(definition(ability))]


TIMED = [(h, a) for h, a in ALL if timed(a)]
# Stats that grow with each tick of a link or come from attacks; tested below or in the named file.
ELSEWHERE = {
    "razor_static_link": "tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
    "crystal_maiden_brilliance_aura": "tests/dota/test_abilities_crystal_maiden.py",
    "nevermore_necromastery": "tests/dota/test_abilities_nevermore.py",
    "nevermore_dark_lord": "tests/dota/test_abilities_nevermore.py",
    "slark_essence_shift": "tests/dota/test_tooltips_heroes.py",
    "necrolyte_heartstopper_aura": "tests/dota/test_modifier_stats.py",
    "slark_shadow_dance": "tests/dota/test_modifier_stats.py",
    "sniper_headshot": "tests/dota/test_modifier_stats.py",
    "viper_poison_attack": "tests/dota/test_modifier_stats.py",
    "viper_corrosive_skin": "tests/dota/test_modifier_stats.py",
    "razor_unstable_current": "tests/dota/test_abilities_queenofpain_to_witch_doctor.py",
    "lina_fiery_soul": "tests/dota/test_abilities_lina.py",
    "omniknight_degen_aura": "tests/dota/test_abilities_omniknight.py",
    "phantom_assassin_blur": "tests/dota/test_abilities_phantom_assassin.py",
    "witch_doctor_death_ward": "tests/dota/test_talents.py",
}


def test_every_ability_with_stats_is_tested() -> None:
    stating = {a for _, a in ALL if any(
        (gives(n) or {"per_stack", "self_gains", "stat"} & set(n.node)) and not n.upgrade()
        for n in effect_nodes.nodes(definition(a)))}
    assert stating - {a for _, a in TIMED} <= set(ELSEWHERE)
    assert set(ELSEWHERE) <= stating
    for ability, file in ELSEWHERE.items():
        others = (ROOT / file).read_text().partition("ELSEWHERE = {")
        assert f'"{ability}"' in others[0] + others[2].partition("\n}")[2], ability


def of_bearers(scene: Scene, ability: str, rank: int, unit: int, share: float) -> list[dict[str, float]]:
    """Return the stated stats of the ability's current modifiers on the unit."""
    nodes = {n.index: n for n in effect_nodes.nodes(definition(ability))}
    out = []
    for m in scene.modifiers(unit, ability + "#"):
        n = nodes[int(m["name"].split("#")[1])]
        around = n.primitive == "aura" and not m["flags"] & AURA
        if around or n.primitive == "passive_stats" or not gives(n):
            continue
        stats = given(ability, n, rank, share)
        if n.primitive == "stat_drain" and unit != scene.unit(0):
            stats = {k: -v for k, v in stats.items()}
        times = m["stacks"] if n.node.get("stack") == 1 else 1
        whole = effect_nodes.number(definition(ability), n.node["dur"], rank) if "dur" in n.node else math.inf
        seconds = {"linear_to_zero": m["left"], "each_second": math.ceil(m["left"])}.get(n.node.get("decay", ""), whole)
        fading = seconds / whole if "decay" in n.node else 1
        out.append({k: v * times * fading for k, v in stats.items()})
    return out


# The enemy's position, if it is not in melee range.
AWAY = {"nevermore_requiem": 400, "razor_plasma_field": 250}


def lasts(ability: str, rank: int) -> float:
    """Return the latest end of all modifiers of a cast."""
    d = definition(ability)
    plain = [n for n in effect_nodes.nodes(d) if not n.upgrade()]
    times = {k: [effect_nodes.number(d, n.node[k], rank) for n in plain if k in n.node]
             for k in ("dur", "delay", "linger", "expires")}
    return sum(max(t, default=0) for t in times.values()) + effect_nodes.at(d.get("channel_time"), rank) + 5


@pytest.mark.parametrize(("hero", "ability"), TIMED, ids=[a for _, a in TIMED])
@RANKS
def test_fields_are_as_stated(new_world: Any, hero: str, ability: str, last: bool) -> None:
    d = definition(ability)
    rank = d["max_level"] if last else 1
    away = AWAY.get(ability, 140)
    scene = Scene(new_world, hero, away=away)
    units = {"caster": scene.unit(0), "ally": scene.unit(1), "enemy": scene.unit(5)}
    share = away / effect_nodes.number(d, "$radius", rank) if ability == "razor_plasma_field" else 0
    slot = scene.prepare(ability, rank)
    if ability == "axe_culling_blade":  # its speed is for a kill, by which nobody is to gain a level
        for i in (0, 1):
            scene.world.give_xp(i, 1e6)
            for talent in DATA["heroes"]["heroes"][scene.world.hero(i)["name"]]["talents"]:
                scene.world.teach(i, talent["id"], 0)
            scene.still(scene.unit(i))
        scene.world.set_unit(scene.unit(5), hp=50)
    scene.world.step(2)
    before = {name: scene.world.unit(u) for name, u in units.items()}
    scene.world.set_unit(scene.unit(0), mana=5000)
    scene.send(ability, slot)
    seen: dict[str, float] = {}
    # Fading strength is looked at once a timestep, and how far a wave had come is known to a frame.
    loose = 0.05 if share or any(n.node.get("decay") for n in timed(ability)) else 1e-4
    for _ in range(math.ceil(min(lasts(ability, rank), 40) / STEP)):
        scene.world.step(1)
        there = {name: of_bearers(scene, ability, rank, u, share) for name, u in units.items()}
        scene.world.run_frames(1)  # stats follow modifiers with a delay of one frame
        for name, u in units.items():
            unit = scene.world.unit(u)
            if not unit["alive"] or len(there[name]) != len(of_bearers(scene, ability, rank, u, share)):
                continue
            stats = unit_model.add(*there[name])
            seen |= stats
            wrong = unit_model.differing(unit, unit_model.after(DATA, before[name], stats), rel=loose)
            assert not wrong, (name, stats, wrong)
    for n in timed(ability):
        if n.node.get("from_rank", 1) > rank:
            continue
        assert set(given(ability, n, rank)) <= set(seen), f"{n.node} was not seen"
    if lasts(ability, rank) <= 40 and ability != "sniper_take_aim":  # until the next attack
        assert [of_bearers(scene, ability, rank, u, share) for u in units.values()] == [[], [], []]


def of(scene: Scene, unit: int) -> dict[str, Any]:
    """Return the unit's fields after its stats are updated."""
    scene.world.run_frames(1)
    found: dict[str, Any] = scene.world.unit(unit)
    return found


@RANKS
def test_heartstopper_gives_regeneration_by_kills(new_world: Any, last: bool) -> None:
    """"necrolyte_heartstopper_aura": a creep counts one, each gain renews the time of all."""
    ability = "necrolyte_heartstopper_aura"
    d, rank = definition(ability), 4 if last else 1
    scene = Scene(new_world, "necrolyte")
    scene.teach(0, ability, rank)
    before = of(scene, scene.unit(0))
    node = next(n.node for n in effect_nodes.nodes(d) if n.primitive == "stack_gain")
    per = unit_model.read(d, node["per_stack"], rank)
    for kills in (1, 2):
        scene.world.kill(scene.dummy(-1500, 0), scene.unit(0))
        after = of(scene, scene.unit(0))
        stats = {k: v * kills for k, v in per.items()}
        assert not unit_model.differing(after, unit_model.after(DATA, before, stats))
    scene.seconds(effect_nodes.number(d, node["dur"], rank) - 0.4)
    assert not unit_model.differing(of(scene, scene.unit(0)), unit_model.after(DATA, before, stats))
    scene.seconds(0.6)
    assert not unit_model.differing(of(scene, scene.unit(0)), unit_model.after(DATA, before, {}))


@RANKS
def test_shadow_dance_gives_speed_and_regeneration_unseen(new_world: Any, last: bool) -> None:
    """"slark_shadow_dance": half a second after no enemy sees him, during the dance or away from all enemies."""
    ability = "slark_shadow_dance"
    d, rank = definition(ability), 3 if last else 1
    scene = Scene(new_world, "slark")
    slot = scene.teach(0, ability, rank)
    scene.world.step(4)
    assert scene.world.visible(1, scene.unit(0))
    before = of(scene, scene.unit(0))
    (node,) = (n.node for n in effect_nodes.nodes(d) if n.primitive == "passive_stats")
    stats = unit_model.read(d, node["stats"], rank)
    scene.world.set_unit(scene.unit(0), mana=5000)
    scene.send(ability, slot)
    scene.seconds(effect_nodes.number(d, "$activation_delay", rank) - STEP)
    assert not unit_model.differing(of(scene, scene.unit(0)), unit_model.after(DATA, before, {}))
    scene.seconds(0.5)
    assert not unit_model.differing(of(scene, scene.unit(0)), unit_model.after(DATA, before, stats))
    scene.seconds(effect_nodes.number(d, "$duration", rank) - 1.5)
    assert not unit_model.differing(of(scene, scene.unit(0)), unit_model.after(DATA, before, stats))
    scene.seconds(1.5)
    assert not unit_model.differing(of(scene, scene.unit(0)), unit_model.after(DATA, before, {}))


STRUCK = [("sniper", "sniper_headshot", 0), ("viper", "viper_poison_attack", 0), ("viper", "viper_corrosive_skin", 5)]


@pytest.mark.parametrize(("hero", "ability", "attacker"), STRUCK, ids=[a for _, a, _ in STRUCK])
@RANKS
def test_modifiers_applied_by_attacks(new_world: Any, hero: str, ability: str, attacker: int, last: bool) -> None:
    """"sniper_headshot" and "viper_poison_attack" slow the target, "viper_corrosive_skin" slows the attacker."""
    d = definition(ability)
    rank = d["max_level"] if last else 1
    scene = Scene(new_world, hero)
    scene.teach(0, ability, rank)
    scene.world.set_autocast(0, ability, True)
    enemy = scene.unit(5)
    before = of(scene, enemy)
    (n,) = (n for n in effect_nodes.nodes(d) if n.primitive == "mod" and "stats" in n.node)
    scene.world.set_unit(scene.unit(attacker), attack_ready=0)
    scene.world.order(scene.unit(attacker), "attack", target=scene.unit(5 - attacker))
    for _ in range(600):
        scene.world.run_frames(1)
        if scene.modifiers(enemy, f"{ability}#{n.index}"):
            break
        if scene.world.frame % 30 == 0:
            scene.world.step(1)
    (m,) = scene.modifiers(enemy, f"{ability}#{n.index}")
    assert m["left"] == pytest.approx(effect_nodes.number(d, n.node["dur"], rank), abs=0.04)
    scene.world.set_unit(scene.unit(attacker), attack_ready=1e9)
    scene.world.order(scene.unit(attacker), "hold")
    assert not unit_model.differing(of(scene, enemy), unit_model.after(DATA, before, given(ability, n, rank)))
    scene.seconds(effect_nodes.number(d, n.node["dur"], rank) + 0.2)
    assert not unit_model.differing(of(scene, enemy), unit_model.after(DATA, before, {}))


def test_the_diffusal_blade_lets_go_in_steps(new_world: Any) -> None:
    """A 100 % slow at first, a fifth less with each fifth of the duration."""
    item = DATA["items"]["items"]["item_diffusal_blade"]
    lasts, steps = (item["specials"][k]["v"][0] for k in ("purge_slow_duration", "purge_rate"))
    scene = Scene(new_world, "sven")
    slot = give(scene, "diffusal_blade")
    enemy = scene.unit(5)
    before = of(scene, enemy)
    scene.world.order(scene.unit(0), "cast_unit", target=enemy, slot=slot)
    while not scene.modifiers(enemy, "item_diffusal_blade"):
        scene.world.run_frames(1)
    begun = scene.world.time
    seen = set[int]()
    while scene.world.time - begun < lasts - 0.1:
        scene.world.run_frames(5)
        part = (scene.world.time - begun) / lasts * steps
        if abs(part - round(part)) < 0.25:
            continue  # near a step, of which a timestep decides
        seen.add(math.floor(part))
        stats = {"ms_pct": -100 * (1 - math.floor(part) / steps)}
        assert not unit_model.differing(scene.world.unit(enemy), unit_model.after(DATA, before, stats)), part
    assert len(seen) == steps
    scene.seconds(0.4)
    assert not unit_model.differing(of(scene, enemy), unit_model.after(DATA, before, {}))

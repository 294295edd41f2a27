"""Every ability of neutral creeps and Roshan against its data in abilities.json, in a small scene: costs, cast time,
range, casting by AI in a fight, auras, area damage. test_creatures_cast.py covers unique abilities and attack effects.
"""

import math
from typing import Any

import pytest

from tests.dota import effect_nodes, unit_model
from tests.dota.fight import DATA, definition
from tests.dota.scenes.arena import CENTRE, STEP, Arena
from tests.dota.scenes.statuses import STUNNED

NOT_PLAYED = {"enraged_wildkin_tornado", "dark_troll_warlord_raise_dead"}  # docs/game.md, simplifications
ALL = [(u, a) for u, a in effect_nodes.creature_abilities(DATA) if a not in NOT_PLAYED and "courier" not in u]
KOBOLD = "npc_dota_neutral_kobold"


def ids(cases: Any) -> list[str]:
    return [f"{c[0].removeprefix('npc_dota_').removeprefix('neutral_')}-{c[1]}" for c in cases]


class Den(Arena):
    """A creature at the centre; Sven `away` from it down the river, where the ground is level, Lion and Axe far away.
    Nobody regenerates or attacks; the creature's AI runs only on request."""

    def __init__(self, new_world: Any, creature: str, away: float = 140, *, thinks: bool = False,
                 team: int = 2) -> None:
        super().__init__(new_world(("sven", "lion"), ("axe",), neutrals=thinks, keep_tango=0), DATA)
        self.place(self.unit(0), *self.down(away), 3 * math.pi / 4)
        self.place(self.unit(1), *self.down(2600))
        self.place(self.unit(5), *self.down(2900))
        for i in (0, 1, 5):
            self.world.set_unit(self.unit(i), extra_hp=6000)
            self.world.set_unit(self.unit(i), hp=6000)
        self.creature = self.spawn(creature, 0, team)
        self.world.set_unit(self.creature, facing=-math.pi / 4)
        self.seconds(0.2)

    @staticmethod
    def down(away: float, aside: float = 0) -> tuple[float, float]:
        """Return a position down the river; `aside` is the offset to the left."""
        half = math.sqrt(0.5)
        return (away + aside) * half, (aside - away) * half

    def spawn(self, kind: str, away: float, team: int = 2, hp: float = 4000, aside: float = 0) -> int:
        x, y = self.down(away, aside)
        unit: int = self.world.spawn(kind, team, CENTRE[0] + x, CENTRE[1] + y)
        self.world.set_unit(unit, x=CENTRE[0] + x, y=CENTRE[1] + y, extra_hp=hp - self.world.unit(unit)["max_hp"])
        self.world.set_unit(unit, hp=hp)
        self.still(unit)
        return unit

    def slot(self, ability: str) -> int:
        found: int = self.world.unit_ability(self.creature, ability)["slot"]
        return found

    def send(self, ability: str, target: int) -> None:
        """Order the creature to cast, at or on the target."""
        behavior, slot = definition(ability)["behavior"], self.slot(ability)
        if "unit_target" in behavior:
            self.world.order(self.creature, "cast_unit", target=target, slot=slot)
        elif "point" in behavior:
            at = self.world.unit(target)
            self.world.order(self.creature, "cast_point", x=at["x"], y=at["y"], slot=slot)
        else:
            self.world.order(self.creature, "cast", slot=slot)

    def cast(self, ability: str, target: int) -> None:
        """Play until its cooldown runs."""
        self.send(ability, target)
        for _ in range(90):
            if self.world.unit_ability(self.creature, ability)["ready"] > self.world.time:
                return
            self.world.run_frames(1)
        raise AssertionError(f"{ability} was not cast")

    def through(self, unit: int, kind: str) -> float:
        """Return the share of such damage that the unit takes."""
        if kind == "magical":
            return self.magic(unit)
        armor, r = self.world.unit(unit)["armor"], DATA["rules"]["rules"]["armor"]
        return float(1 - r["a"] * armor / (r["b"] + r["c"] * abs(armor)))


ACTIVE = [(u, a) for u, a in ALL if effect_nodes.is_active(definition(a)) and "attack" not in definition(a)["behavior"]]
FRIENDLY = [(u, a) for u, a in ACTIVE if definition(a).get("target_team") == ["friendly"]]


def target_of(den: Den, ability: str, away: float = 120) -> int:
    """Return Sven, or for helpful abilities a kobold on the creature's side."""
    return den.spawn(KOBOLD, away) if definition(ability).get("target_team") == ["friendly"] else den.unit(0)


@pytest.mark.parametrize(("creature", "ability"), ACTIVE, ids=ids(ACTIVE))
def test_mana_cast_point_and_cooldown(new_world: Any, creature: str, ability: str) -> None:
    d = definition(ability)
    den = Den(new_world, creature)
    target = target_of(den, ability)
    mana, begun = den.world.unit(den.creature)["mana"], den.world.time
    assert den.world.unit_ability(den.creature, ability)["castable"]
    den.cast(ability, target)
    assert mana - den.world.unit(den.creature)["mana"] == pytest.approx(effect_nodes.at(d["mana_cost"], 1), abs=0.01)
    assert den.world.time - begun == pytest.approx(effect_nodes.at(d["cast_point"], 1), abs=STEP)
    left = den.world.unit_ability(den.creature, ability)["ready"] - den.world.time
    assert left == pytest.approx(effect_nodes.at(d["cooldown"], 1), abs=0.04)
    assert not den.world.unit_ability(den.creature, ability)["castable"]
    den.seconds(left - 0.2)
    assert not den.world.unit_ability(den.creature, ability)["castable"]
    den.seconds(0.4)
    assert den.world.unit_ability(den.creature, ability)["castable"]


RANGED = [(u, a) for u, a in ACTIVE if effect_nodes.at(definition(a).get("cast_range"), 1) > 0]


@pytest.mark.parametrize(("creature", "ability"), RANGED, ids=ids(RANGED))
def test_cast_range(new_world: Any, creature: str, ability: str) -> None:
    """Slightly within the range it casts without walking; slightly beyond it walks first."""
    d = definition(ability)
    reach = effect_nodes.at(d["cast_range"], 1) + (2 * 24 if "unit_target" in d["behavior"] else 0)  # between hulls
    for beyond in (False, True):
        away = reach + (40 if beyond else -40)
        den = Den(new_world, creature, away)
        den.send(ability, target_of(den, ability, away))
        before = den.world.unit(den.creature)
        den.world.step(2)
        after = den.world.unit(den.creature)
        assert (math.hypot(after["x"] - before["x"], after["y"] - before["y"]) > 1) == beyond


@pytest.mark.parametrize(("creature", "ability"), [c for c in ACTIVE if c[1] != "roshan_slam"],
                         ids=ids([c for c in ACTIVE if c[1] != "roshan_slam"]))
def test_it_is_cast_in_a_fight(new_world: Any, creature: str, ability: str) -> None:
    """The creature casts it on an attacker within seconds; a buff goes to an ally, and is repeated only after it ended.
    test_creatures_cast.py covers Roshan's fight."""
    den = Den(new_world, creature, thinks=True)
    ally = den.spawn(KOBOLD, 60, aside=-90)
    den.world.set_unit(ally, hp=2000)
    den.world.set_unit(den.creature, hp=den.world.unit(den.creature)["max_hp"])
    den.seconds(0.3)
    den.world.damage(den.unit(0), den.creature, 1, "pure")
    began = den.world.time
    for _ in range(int(6 / STEP)):
        if den.world.unit_ability(den.creature, ability)["ready"] > began:
            break
        den.world.step(1)
    assert den.world.unit_ability(den.creature, ability)["ready"] > began, "it never was"
    assert den.world.unit_ability(den.creature, ability)["ready"] - den.world.time <= effect_nodes.at(
        definition(ability)["cooldown"], 1) + 1e-3


@pytest.mark.parametrize(("creature", "ability"), [c for c in ACTIVE if c not in FRIENDLY and c[1] != "roshan_slam"],
                         ids=ids([c for c in ACTIVE if c not in FRIENDLY and c[1] != "roshan_slam"]))
def test_it_is_not_cast_out_of_range(new_world: Any, creature: str, ability: str) -> None:
    d = definition(ability)
    around = [effect_nodes.number(d, n.node["shape"]["r"], 1) for n in effect_nodes.nodes(d) if "shape" in n.node]
    reach = effect_nodes.at(d["cast_range"], 1) if (creature, ability) in RANGED else max(around)
    den = Den(new_world, creature, reach + 400, thinks=True)
    den.world.damage(den.unit(0), den.creature, 1, "pure")
    den.world.step(3)
    assert den.world.unit_ability(den.creature, ability)["ready"] <= 0
    assert den.world.unit(den.creature)["act"] == "walk"


AURAS = [(u, a) for u, a in ALL if definition(a)["effects"][0]["p"] == "aura"]


@pytest.mark.parametrize(("creature", "ability"), AURAS, ids=ids(AURAS))
@pytest.mark.parametrize("bearer", ["creep", "hero"])
def test_aura(new_world: Any, creature: str, ability: str, bearer: str) -> None:
    """Allies slightly within the radius and the creature itself have the stated effect; allies slightly beyond it and
    enemies do not; after its death nobody has. An aura on a hero's side serves that hero."""
    d = definition(ability)
    (node,) = d["effects"]
    r = effect_nodes.number(d, node["r"], 1)
    team = 0 if bearer == "hero" else 2
    den = Den(new_world, KOBOLD, 200)
    if bearer == "hero":
        near, far, enemy = den.unit(0), den.unit(1), den.spawn(KOBOLD, 300)
    else:
        near, far, enemy = den.spawn(KOBOLD, r), den.spawn(KOBOLD, r), den.unit(0)
    for unit, away in ((near, r - 15), (far, r + 15)):
        den.place(unit, *den.down(away))
    den.seconds(0.3)
    before = {u: den.world.unit(u) for u in (near, far, enemy)}
    carrier = den.spawn(creature, 0, team)
    den.world.run_frames(8)
    stats = unit_model.read(d, node["stats"], 1)
    if bearer == "creep":
        stats |= unit_model.read(d, node.get("creep_stats", {}), 1)
    assert stats
    assert not unit_model.differing(den.world.unit(near), unit_model.after(DATA, before[near], stats))
    for unit in (far, enemy):
        assert not unit_model.differing(den.world.unit(unit), unit_model.after(DATA, before[unit], {}))
    assert [m for m in den.modifiers(carrier, ability + "#") if m["flags"] & 16]
    den.world.kill(carrier)
    den.seconds(0.8)
    assert not unit_model.differing(den.world.unit(near), unit_model.after(DATA, before[near], {}))


AROUND = [(u, a) for u, a in ACTIVE if any(
    n.node.get("shape", {}).get("t") == "circle" and n.node.get("to") == "enemies" and n.primitive == "damage"
    for n in effect_nodes.nodes(definition(a)))]


@pytest.mark.parametrize(("creature", "ability"), AROUND, ids=ids(AROUND))
def test_spells_that_strike_all_around(new_world: Any, creature: str, ability: str) -> None:
    """Checks, for a hero and a creep slightly within the radius: damage after resistance, modifier durations and stats.
    Slightly beyond it: nothing."""
    d = definition(ability)
    nodes = effect_nodes.nodes(d)
    (blow,) = (n.node for n in nodes if n.primitive == "damage")
    (mark,) = (n for n in nodes if n.primitive != "damage")
    r = effect_nodes.number(d, blow["shape"]["r"], 1)
    den = Den(new_world, creature, r - 15)
    hero, outside = den.unit(0), den.unit(1)
    creep = den.spawn(KOBOLD, 0, 0, aside=r - 15)
    den.place(outside, *den.down(0, -r - 15))
    den.seconds(0.2)
    before = {u: den.world.unit(u) for u in (hero, creep, outside)}
    den.cast(ability, hero)
    amount = effect_nodes.number(d, blow["amount"], 1)
    assert blow["type"] == "magical"
    for unit, role in ((hero, "dur"), (creep, "dur_creep" if "dur_creep" in mark.node else "dur")):
        lost = before[unit]["hp"] - den.hp(unit)
        assert lost == pytest.approx(amount * (1 - before[unit]["magic_resist"]), abs=0.05)
        (m,) = den.modifiers(unit, f"{ability}#{mark.index}")
        assert m["left"] == pytest.approx(effect_nodes.number(d, mark.node[role], 1), abs=0.04)
        assert bool(den.world.unit(unit)["status"] & STUNNED) == (mark.primitive == "stun")
    den.world.run_frames(1)
    stats = unit_model.read(d, mark.node.get("stats", {}), 1)
    for unit in (hero, creep):
        assert not unit_model.differing(den.world.unit(unit), unit_model.after(DATA, before[unit], stats))
    assert den.hp(outside) == before[outside]["hp"] and not den.modifiers(outside, ability)
    den.seconds(effect_nodes.number(d, mark.node["dur"], 1))
    assert not unit_model.differing(den.world.unit(hero), unit_model.after(DATA, before[hero], {}))


GIVEN = [(u, a) for u, a in FRIENDLY if definition(a)["effects"][0]["p"] == "mod"]


@pytest.mark.parametrize(("creature", "ability"), GIVEN, ids=ids(GIVEN))
def test_spells_cast_on_allies(new_world: Any, creature: str, ability: str) -> None:
    d = definition(ability)
    node = d["effects"][0]
    den = Den(new_world, creature)
    ally = den.spawn(KOBOLD, 120)
    den.seconds(0.2)
    before = den.world.unit(ally)
    den.cast(ability, ally)
    den.world.run_frames(1)
    (m,) = den.modifiers(ally, ability + "#0")
    assert m["left"] == pytest.approx(effect_nodes.number(d, node["dur"], 1), abs=0.08)
    expected = unit_model.after(DATA, before, unit_model.read(d, node["stats"], 1))
    assert not unit_model.differing(den.world.unit(ally), expected)
    den.seconds(m["left"] + 0.2)
    assert not unit_model.differing(den.world.unit(ally), unit_model.after(DATA, before, {}))

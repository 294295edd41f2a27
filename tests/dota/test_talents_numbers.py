"""Talents' `affects` in heroes.json against the compiled programs: with a talent each number that reads the special
value or the field increases by exactly the talent's value, at every rank and in both patches, and no other number of
the hero's abilities changes. test_talents.py and test_talents_in_games.py test the use of the numbers."""

from typing import Any

import pytest

from tests.dota import effect_nodes
from tests.dota.scenes.patches import PATCHES, quiet_world, read_data

DATA = {patch: read_data(patch) for patch in PATCHES}
FIELDS = ("cast_range", "cast_point", "channel_time", "cooldown", "mana_cost")
UNLIMITED = 30000.0
AFFECTS = [(patch, hero.removeprefix("npc_dota_hero_"), t["id"], t["affects"])
           for patch, data in DATA.items() for hero, body in data["heroes"]["heroes"].items()
           for t in body["talents"] if t.get("affects")]


@pytest.fixture(scope="module")
def worlds(core: Any) -> Any:
    """Create worlds of one hero a side, of either patch."""
    return lambda patch, hero: quiet_world(core, patch, [hero], ["axe" if hero != "axe" else "sven"])


def all_numbers(core: Any, world: Any, abilities: list[str]) -> dict[tuple[str, int], dict[str, Any]]:
    return {(a, rank): core.ability_numbers(world, 0, a, rank) for a in abilities for rank in range(1, 5)}


def names(v: Any, text: str) -> bool:
    """Return whether a node's value refers to a special or field by name."""
    if isinstance(v, list):
        return any(names(x, text) for x in v)
    return isinstance(v, str) and v.replace("/", "*").split("*")[-1] == text


def readers(node: dict[str, Any], text: str) -> tuple[int, list[float]]:
    """Return how many of a node's own numbers read it, and with which sign each of its stats does (0: not)."""
    own, signs = 0, []
    for key, v in node.items():
        if key in effect_nodes.CHILDREN and isinstance(v, list):
            continue
        if isinstance(v, dict) and key != "shape":
            for stat, x in v.items():
                sign = (-1.0 if stat.endswith("_minus") else 1.0) * names(x, text)
                pair = isinstance(x, list)
                signs += [(-1.0 if stat.endswith("_minus") else 1.0) * names(y, text) for y in x] if pair else [sign]
        elif isinstance(v, dict):
            own += sum(names(x, text) for x in v.values())
        else:
            own += names(v, text)
    return own, signs


def expected(data: dict[str, Any], talent: str, affects: list[list[str]], values: dict[str, float],
             ability: str) -> tuple[dict[str, float], dict[int, tuple[int, list[float], float]], set[int]]:
    """Return the expected changes of an ability's fields; by node how many of its own numbers change, the changes of
    its stats and of those numbers; and the nodes to appear or disappear."""
    d = data["abilities"]["abilities"][ability]
    fields: dict[str, float] = {}
    nodes: dict[int, tuple[int, list[float], float]] = {}
    switched: set[int] = set()
    for name, what in affects:
        if name != ability:
            continue
        switched |= {n.index for n in effect_nodes.nodes(d)
                     if talent in (n.node.get("talent"), n.node.get("unless_talent"))}
        if what == "effects":
            continue
        special = what in d.get("specials", {})
        change = d["specials"][what] if special else d["fields"][what]
        assert change["talent"] == talent
        op = change.get("talent_op", "add")
        each = (-1.0 if op == "subtract" else 1.0) * values[change.get("talent_field", "value")]
        if not special:
            fields[what] = UNLIMITED if op == "unlimited" else each
        for n in effect_nodes.nodes(d):
            own, signs = readers(n.node, ("$" if special else "@") + what)
            if own or any(signs):
                before = nodes.get(n.index, (0, [0.0] * len(signs), 0.0))
                bonus = [b + s * each for b, s in zip(before[1], signs, strict=True)]
                nodes[n.index] = (own + before[0], bonus, each if own else before[2])
    return fields, nodes, switched


@pytest.mark.parametrize(("patch", "hero", "talent", "affects"), AFFECTS,
                         ids=[f"{p}-{t.removeprefix('special_bonus_unique_')}" for p, _, t, _ in AFFECTS])
def test_it_changes_only_the_stated_values(core: Any, worlds: Any, patch: str, hero: str, talent: str,
                                           affects: list[list[str]]) -> None:
    data = DATA[patch]
    body = data["heroes"]["heroes"]["npc_dota_hero_" + hero]
    values = next(t["values"] for t in body["talents"] if t["id"] == talent)
    world = worlds(patch, hero)
    without = all_numbers(core, world, body["abilities"])
    world.teach(0, talent, 1)
    taken = all_numbers(core, world, body["abilities"])
    seen: set[tuple[str, str]] = set()
    for (ability, rank), now in taken.items():
        fields, nodes, switched = expected(data, talent, affects, values, ability)
        before = without[ability, rank]
        for field in FIELDS:
            change = fields.get(field, 0.0)
            wanted = UNLIMITED if change == UNLIMITED else max(0.0, before[field] + change)
            assert now[field] == pytest.approx(wanted, abs=1e-5), field
        for i, (old, new) in enumerate(zip(before["nodes"], now["nodes"], strict=True)):
            assert (old["there"] != new["there"]) == (i in switched)
            own, stats, each = nodes.get(i, (0, [], 0.0))
            changes = {k: new["numbers"][k] - old["numbers"][k] for k in old["numbers"]}
            moved = {k: v for k, v in changes.items() if abs(v) > 1e-6}
            program = effect_nodes.nodes(data["abilities"]["abilities"][ability])
            inherits = program[i].primitive == "proc" and set(moved) == {"dur"}  # from the node before it
            assert len(moved) == own or inherits, (ability, i, moved)
            assert all(v == pytest.approx(each, abs=1e-4) for v in moved.values()) or inherits
            bonus = [b - a for a, b in zip(old["stats"], new["stats"], strict=True)]
            assert bonus == pytest.approx(stats or [0.0] * len(bonus), abs=1e-4)
        seen |= {(ability, f) for f in fields} | {(ability, "effects") for _ in switched}
        seen |= {(ability, w) for a, w in affects if a == ability and nodes}
    for ability, what in affects:
        scepter = what.endswith("_scepter")
        assert (ability, what) in seen or scepter, f"nothing reads {what} of {ability}"


SCEPTERS = [(p, h, t, a, w) for p, h, t, affects in AFFECTS for a, w in affects if w.endswith("_scepter")]


@pytest.mark.parametrize(("patch", "hero", "talent", "ability", "what"), SCEPTERS,
                         ids=[f"{p}-{w}" for p, _, _, _, w in SCEPTERS])
def test_it_adds_to_the_scepters_bonus(core: Any, worlds: Any, patch: str, hero: str, talent: str, ability: str,
                                       what: str) -> None:
    data = DATA[patch]
    d = data["abilities"]["abilities"][ability]
    body = data["heroes"]["heroes"]["npc_dota_hero_" + hero]
    by = next(t["values"]["value"] for t in body["talents"] if t["id"] == talent)
    world = worlds(patch, hero)
    world.clear_items(0)
    assert world.give_item(0, "item_ultimate_scepter")
    world.step(2)
    world.teach(0, talent, 1)
    (index, key) = next((n.index, k) for n in effect_nodes.nodes(d) for k, v in n.node.items()
                        if v == "$" + what.removesuffix("_scepter"))
    for rank in range(1, d["max_level"] + 1):
        number = core.ability_numbers(world, 0, ability, rank)["nodes"][index]["numbers"][key]
        assert number == pytest.approx(d["specials"][what]["v"][rank - 1] + by)

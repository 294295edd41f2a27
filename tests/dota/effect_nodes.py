"""Effect data of an ability or item, parsed without the core: the nodes of its program with their numbers at a rank.
Tests compare them with the behaviour in a small scene."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CHILDREN = ("then", "enemies", "allies")


@dataclass(frozen=True)
class EffectNode:
    """Effect node: `index` is its position in the compiled program, `way` the primitives from the root to it."""

    index: int
    node: dict[str, Any]
    way: tuple[str, ...]
    parents: tuple[dict[str, Any], ...]

    @property
    def primitive(self) -> str:
        name: str = self.node["p"]
        return name

    @property
    def trigger(self) -> str:
        """Return the trigger of the node's root."""
        root = self.parents[0] if self.parents else self.node
        on: str = root.get("on", "cast")
        return on

    def upgrade(self) -> bool:
        """Return whether the node needs a talent or Aghanim's Scepter."""
        return any("talent" in n or n.get("scepter") == 1 for n in (*self.parents, self.node))


def nodes(ability: dict[str, Any]) -> list[EffectNode]:
    """Return all nodes in the order of the compiled program: a list of siblings, then the children of the first, ..."""
    out: list[EffectNode] = []

    def lay(siblings: list[dict[str, Any]], parents: tuple[dict[str, Any], ...]) -> None:
        first = len(out)
        out.extend(EffectNode(first + i, n, tuple(p["p"] for p in parents), parents) for i, n in enumerate(siblings))
        for n in siblings:
            for key in CHILDREN:
                if isinstance(n.get(key), list):
                    lay(n[key], (*parents, n))

    lay(ability.get("effects", []), ())
    return out


def number(ability: dict[str, Any], value: Any, rank: int) -> float:
    """Evaluate `$special`, `@field`, a sum of these, or a plain number at a rank (1 is the first). Raises KeyError for
    formulas."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, list):
        return sum(number(ability, v, rank) for v in value)
    if "*" in value or "/" in value:
        raise KeyError(value)
    if value.startswith("$"):
        values = ability["specials"][value[1:]]["v"]
    elif value.startswith("@"):
        values = ability[value[1:]]
    else:
        raise KeyError(value)
    return float(values[min(rank, len(values)) - 1])


def at(values: list[float] | float | None, rank: int) -> float:
    """Return a list entry for a rank: one value a rank, or one for all; 0 for an empty list."""
    if values is None or values == []:
        return 0.0
    if isinstance(values, int | float):
        return float(values)
    return float(values[min(rank, len(values)) - 1])


def hero_abilities(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return (hero without its prefix, ability) pairs in file order."""
    for hero, body in data["heroes"]["heroes"].items():
        for ability in body["abilities"]:
            yield hero.removeprefix("npc_dota_hero_"), ability


def is_active(ability: dict[str, Any]) -> bool:
    return "passive" not in ability["behavior"]


def creature_abilities(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return (unit, ability) pairs of neutral creeps, Roshan, summons and couriers, for abilities with effects."""
    for unit, body in data["units"]["units"].items():
        if body["class"] in ("neutral", "roshan", "summon", "courier"):
            for ability in body.get("abilities", []):
                if data["abilities"]["abilities"][ability]["effects"]:
                    yield unit, ability

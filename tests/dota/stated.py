"""What the data state of an ability or item, read without the core: the nodes of its program with their numbers at a
rank, for tests that compare them with what is seen in a small scene."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CHILDREN = ("then", "enemies", "allies")


@dataclass(frozen=True)
class Stated:
    """A node of effects: `index` is its place in the compiled program, `way` the primitives from the root to it."""

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
        """Of the root it belongs to."""
        root = self.parents[0] if self.parents else self.node
        on: str = root.get("on", "cast")
        return on

    def upgrade(self) -> bool:
        """Whether it is there only with a talent or Aghanim's Scepter."""
        return any("talent" in n or n.get("scepter") == 1 for n in (*self.parents, self.node))


def nodes(ability: dict[str, Any]) -> list[Stated]:
    """All nodes in the order of the compiled program: a list of siblings, then the children of the first, ..."""
    out: list[Stated] = []

    def lay(siblings: list[dict[str, Any]], parents: tuple[dict[str, Any], ...]) -> None:
        first = len(out)
        out.extend(Stated(first + i, n, tuple(p["p"] for p in parents), parents) for i, n in enumerate(siblings))
        for n in siblings:
            for key in CHILDREN:
                if isinstance(n.get(key), list):
                    lay(n[key], (*parents, n))

    lay(ability.get("effects", []), ())
    return out


def number(ability: dict[str, Any], value: Any, rank: int) -> float:
    """`$special`, `@field`, a sum of such, or a plain number, at a rank (1 the first). KeyError for formulas."""
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
    """An entry of a field's list: one value a rank, or one for all; 0 when there is none."""
    if values is None or values == []:
        return 0.0
    if isinstance(values, int | float):
        return float(values)
    return float(values[min(rank, len(values)) - 1])


def hero_abilities(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(hero without its prefix, ability), in the order of the files."""
    for hero, body in data["heroes"]["heroes"].items():
        for ability in body["abilities"]:
            yield hero.removeprefix("npc_dota_hero_"), ability


def is_active(ability: dict[str, Any]) -> bool:
    return "passive" not in ability["behavior"]


def creature_abilities(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(unit, ability) of camps' creeps, Roshan, summons and couriers, of abilities that do something."""
    for unit, body in data["units"]["units"].items():
        if body["class"] in ("neutral", "roshan", "summon", "courier"):
            for ability in body.get("abilities", []):
                if data["abilities"]["abilities"][ability]["effects"]:
                    yield unit, ability

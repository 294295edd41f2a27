"""Numbers and slots by which Dota 2's own protocols name heroes, items, abilities and trees, by patch."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dota import _core
from dota.spaces import DATA
from dota.tables import HERO_PREFIX, load_tables

TEAMS = (2, 3)  # Valve's numbers of Radiant and Dire


@dataclass(frozen=True)
class ValveIds:
    """Names of one patch. ``heroes``: hero names without the prefix by number; ``items``: item names by number;
    ``abilities`` and ``talents``: slot by name of each hero; ``trees``: positions in world units by number."""

    heroes: Mapping[int, str]
    items: Mapping[int, str]
    abilities: Mapping[str, Mapping[str, int]]
    talents: Mapping[str, Mapping[str, int]]
    trees: tuple[tuple[float, float], ...]


@functools.cache
def valve_ids(patch: str) -> ValveIds:
    """Return the names of a patch. Raises FileNotFoundError for a patch without data."""
    tables = load_tables(patch)
    heroes: dict[str, dict[str, Any]] = _read(patch, "heroes")["heroes"]
    items: dict[str, dict[str, Any]] = _read(patch, "items")["items"]
    return ValveIds(
        heroes={hero["id"]: name.removeprefix(HERO_PREFIX) for name, hero in heroes.items()},
        items={item["id"]: name for name, item in items.items() if "id" in item},
        abilities={name.removeprefix(HERO_PREFIX): {ability: slot for slot, ability in enumerate(hero["abilities"])}
                   for name, hero in heroes.items()},
        talents={name.removeprefix(HERO_PREFIX): {talent["id"]: slot for slot, talent in enumerate(hero["talents"])}
                 for name, hero in heroes.items()},
        trees=tuple((x, y) for x, y, *_ in _core.map_trees(tables)))


def _read(patch: str, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((DATA / f"dota-{patch}" / f"{name}.json").read_text(encoding="utf-8"))
    return content

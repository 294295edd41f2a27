"""Stable ids of all names in observations and actions, shared by all patches.

``data/ids.json`` lists the names of each id space in the order of their ids. The lists are append-only: an id keeps its
meaning in every patch and after every addition, so that trained embeddings stay valid, games of several patches share
one layout, and old messages stay readable. Spaces:

- ``unit``, ``ability`` (including active items and talents), ``item``, ``modifier``: names of the game data;
- ``build``: heroes, which have one build each;
- ``animation``, ``pickup``: names of the core's own enumerations;
- ``action``: primary actions with their kind of target. An ability that aims differently in another patch has a
  separate entry with a slash (``item_bloodstone/point``): an action's meaning never changes.

Ids of the space ``area`` are those of ``ability``. Id 0 is "none" in every space; among actions it is the first entry.

After an addition to the game data, ``python -m dota.naming append`` adds the new names after the old ones and seals
them.
"""

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "data" / "ids.json"
SPACES = ("unit", "animation", "modifier", "ability", "item", "pickup", "build", "action")
SAME_IDS_AS = {"area": "ability"}
HERO_PREFIX = "npc_dota_hero_"
ABOUT = "Ids of observations and actions. Append only: python -m dota.naming append."

Names = Mapping[str, tuple[str, ...]]
Seal = dict[str, list[Any]]  # per space how many names there are, and their digest


def digest(names: Iterable[str]) -> str:
    """Return 16 hex digits of a hash over an ordered list of names."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Registry:
    """Names of each id space in the order of their ids, and ``seals``, one for each addition of names, oldest first."""

    names: Names
    seals: tuple[Seal, ...]

    @functools.cached_property
    def _ids(self) -> dict[str, dict[str, int]]:
        return {space: {name: i + (space != "action") for i, name in enumerate(names)}
                for space, names in self.names.items()}

    @property
    def heroes(self) -> tuple[str, ...]:
        """Names of the heroes without the prefix, in the order of ``build``."""
        return tuple(name.removeprefix(HERO_PREFIX) for name in self.names["build"])

    def ids(self, space: str, names: Iterable[str]) -> list[int]:
        """Return the ids of names. Raises ValueError that lists names without an id and the command that assigns one.
        """
        known = self._ids[SAME_IDS_AS.get(space, space)]
        wanted = list(names)
        if missing := [name for name in wanted if name not in known]:
            raise ValueError(f"{FILE.name} has no {space} ids for {', '.join(missing[:5])}"
                             f"{f' and {len(missing) - 5} more' if len(missing) > 5 else ''}: append them with "
                             "`python -m dota.naming append`")
        return [known[name] for name in wanted]

    def check(self) -> None:
        """Raise ValueError for a duplicate name, or a sealed name that was moved, changed or removed."""
        for space, names in self.names.items():
            if len(set(names)) != len(names):
                twice = next(name for i, name in enumerate(names) if name in names[:i])
                raise ValueError(f"{FILE.name}: {space} has {twice!r} twice")
            for n, seal in enumerate(self.seals):
                count, sealed = seal[space]
                if len(names) < count or digest(names[:count]) != sealed:
                    raise ValueError(f"{FILE.name}: the first {count} names of {space}, sealed in step {n + 1}, "
                                     "changed. Ids never move: restore the old list and append to it")
            if self.seals and self.seals[-1][space][0] != len(names):
                raise ValueError(f"{FILE.name}: {space} has unsealed names: remove them and use "
                                 "`python -m dota.naming append`")

    def with_names(self, found: Mapping[str, Iterable[str]]) -> "Registry":
        """Return the registry extended by the names of ``found`` that it lacks, with one more seal if there are any."""
        names = {space: tuple(dict.fromkeys((*self.names[space], *found.get(space, ())))) for space in SPACES}
        if names == dict(self.names):
            return self
        return Registry(names, (*self.seals, {space: [len(n), digest(n)] for space, n in names.items()}))

    def to_json(self) -> str:
        """Return the file's text, one name a line."""
        names = json.dumps({space: list(self.names[space]) for space in SPACES}, indent=1)
        seals = ",\n  ".join(json.dumps(seal) for seal in self.seals)
        return f'{{"about": {json.dumps(ABOUT)},\n"names": {names},\n"seals": [\n  {seals}]}}\n'


def read(text: str) -> Registry:
    """Parse a registry. Raises ValueError for a text that violates its own seals."""
    values = json.loads(text)
    registry = Registry({space: tuple(values["names"][space]) for space in SPACES}, tuple(values["seals"]))
    registry.check()
    return registry


@functools.cache
def load() -> Registry:
    """Return the registry of this release."""
    return read(FILE.read_text(encoding="utf-8"))

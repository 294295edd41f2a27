"""Stable ids of everything that an observation or an action names, for all patches together.

``data/ids.json`` lists, per id space, names in the order of their ids. The list is append-only: an id means the same in
every patch and after every addition, so that a trained embedding keeps what it learned, games of several patches share
one layout, and a message of yesterday can be read today. Spaces:

- ``unit``, ``ability`` (items that do something and talents included), ``item``, ``modifier``: names of the game data;
- ``build``: heroes, which have one build each;
- ``animation``, ``pickup``: names of the core's own enumerations;
- ``action``: primary actions with what they aim at. An ability that aims differently in another patch has an entry of
  its own behind a slash (``item_bloodstone/point``): an action's meaning never changes.

Ids of the space ``area`` are those of ``ability``. Id 0 is "none" everywhere; among actions it is the first entry.

When game data are added, ``python -m dota.naming append`` puts the new names behind the old ones and seals them.
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
    """16 hex digits over an ordered list of names."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Registry:
    """``names`` by space, in the order of ids; ``seals``, one for each time that names were appended, oldest first."""

    names: Names
    seals: tuple[Seal, ...]

    @functools.cached_property
    def _ids(self) -> dict[str, dict[str, int]]:
        return {space: {name: i + (space != "action") for i, name in enumerate(names)}
                for space, names in self.names.items()}

    @property
    def heroes(self) -> tuple[str, ...]:
        """Every hero that is named, without the prefix, in the order of ``build``."""
        return tuple(name.removeprefix(HERO_PREFIX) for name in self.names["build"])

    def ids(self, space: str, names: Iterable[str]) -> list[int]:
        """The ids of names. Raises ValueError listing the names that have none, and what gives them one."""
        known = self._ids[SAME_IDS_AS.get(space, space)]
        wanted = list(names)
        if missing := [name for name in wanted if name not in known]:
            raise ValueError(f"{FILE.name} has no {space} ids for {', '.join(missing[:5])}"
                             f"{f' and {len(missing) - 5} more' if len(missing) > 5 else ''}: append them with "
                             "`python -m dota.naming append`")
        return [known[name] for name in wanted]

    def check(self) -> None:
        """Raises ValueError when a name is there twice, or one that was sealed has moved, changed or gone."""
        for space, names in self.names.items():
            if len(set(names)) != len(names):
                twice = next(name for i, name in enumerate(names) if name in names[:i])
                raise ValueError(f"{FILE.name}: {space} has {twice!r} twice")
            for n, seal in enumerate(self.seals):
                count, sealed = seal[space]
                if len(names) < count or digest(names[:count]) != sealed:
                    raise ValueError(f"{FILE.name}: the first {count} names of {space}, sealed in step {n + 1}, have "
                                     "changed. Ids are never moved or removed: put the old list back and append")
            if self.seals and self.seals[-1][space][0] != len(names):
                raise ValueError(f"{FILE.name}: {space} has names that are not sealed: take them out again and use "
                                 "`python -m dota.naming append`")

    def with_names(self, found: Mapping[str, Iterable[str]]) -> "Registry":
        """The registry with the names of ``found`` that it lacks, behind its own, and a seal more if there were any."""
        names = {space: tuple(dict.fromkeys((*self.names[space], *found.get(space, ())))) for space in SPACES}
        if names == dict(self.names):
            return self
        return Registry(names, (*self.seals, {space: [len(n), digest(n)] for space, n in names.items()}))

    def to_json(self) -> str:
        """The file's text, one name a line."""
        names = json.dumps({space: list(self.names[space]) for space in SPACES}, indent=1)
        seals = ",\n  ".join(json.dumps(seal) for seal in self.seals)
        return f'{{"about": {json.dumps(ABOUT)},\n"names": {names},\n"seals": [\n  {seals}]}}\n'


def read(text: str) -> Registry:
    """The registry of a file's text. Raises ValueError for one that breaks its own seals."""
    values = json.loads(text)
    registry = Registry({space: tuple(values["names"][space]) for space in SPACES}, tuple(values["seals"]))
    registry.check()
    return registry


@functools.cache
def load() -> Registry:
    """The registry of this program."""
    return read(FILE.read_text())

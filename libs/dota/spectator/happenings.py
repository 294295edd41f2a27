"""What happened between two frames: deaths, buildings that fell, Roshan, items that were bought."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dota.spectator.schema import HEROES, Frame, Schema

BUILDINGS = ("tower", "barracks", "fort", "shrine")
ALIVE = 1 << 6


def happenings(schema: Schema, names: Mapping[str, Sequence[str]], before: Frame, now: Frame) -> list[dict[str, Any]]:
    """Events as JSON values, by ``kind``:

    ``death``: ``hero`` (0-9) and ``by``, the heroes whose kills grew in the same step (none: a tower, a creep);
    ``building``: ``unit`` and ``team`` of what fell; ``roshan``: Roshan died; ``item``: ``hero`` has a new ``item``;
    ``end``: ``winner`` 0 or 1, or 2 for nobody.
    """
    found: list[dict[str, Any]] = []
    hero = schema.table("hero")
    deaths, kills = hero.column("deaths"), hero.column("kills")
    died = np.flatnonzero(now["hero"][:, deaths] > before["hero"][:, deaths])
    if len(died):
        killers = np.flatnonzero(now["hero"][:, kills] > before["hero"][:, kills]).tolist()
        for h in died.tolist():
            found.append({"kind": "death", "hero": h, "by": [k for k in killers if (k < 5) != (h < 5)]})
    unit = schema.table("unit")
    look, kind = unit.column("look"), unit.column("type")
    fell = np.flatnonzero((before["unit"][:, look] & ALIVE > 0) & (now["unit"][:, look] & ALIVE == 0))
    for u in fell.tolist():
        was = before["unit"][u]
        what = names["kind"][int(was[look]) & 15]
        if what in BUILDINGS:
            found.append({"kind": "building", "unit": names["unit"][int(was[kind]) - 1],
                          "team": int(was[look]) >> 4 & 3})
        elif what == "roshan":
            found.append({"kind": "roshan"})
    if not np.array_equal(before["item"], now["item"]):
        slots = len(now["item"]) // HEROES
        for h in range(HEROES):
            rows = slice(h * slots, (h + 1) * slots)
            had = before["item"][rows, 0]
            if not had.any():
                continue
            for item in set(now["item"][rows, 0].tolist()) - set(had.tolist()) - {0}:
                found.append({"kind": "item", "hero": h, "item": names["item"][item - 1]})
    winner = schema.table("clock").column("winner")
    if now["clock"][0, winner] and not before["clock"][0, winner]:
        found.append({"kind": "end", "winner": int(now["clock"][0, winner]) - 1})
    return found

"""Console events of a timestep: deaths, destroyed buildings, Roshan, items, the end."""

from collections.abc import Iterable
from typing import Any

from dota.events import Event, EventKind


def console_events(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Convert a timestep's events to JSON values by ``kind``.

    ``death``: ``hero`` (0-9) died without reincarnation, ``by`` the heroes credited with it (empty: a tower, a creep, a
    deny); ``building``: ``unit`` and ``team`` of a destroyed building, fillers excluded; ``roshan``: Roshan died;
    ``item``: ``hero`` bought or assembled ``item``; ``end``: ``winner`` 0 or 1, or 2 for a draw.
    """
    events = list(events)
    found: list[dict[str, Any]] = []
    for event in events:
        if event.kind == EventKind.HERO_DEATH:
            by = [k.hero for k in events if k.kind == EventKind.HERO_KILL and k.other_hero == event.hero]
            found.append({"kind": "death", "hero": event.hero, "by": by})
        elif event.kind == EventKind.BUILDING_DEATH and "filler" not in event.unit_name:
            found.append({"kind": "building", "unit": event.unit_name, "team": event.team})
        elif event.kind == EventKind.ROSHAN_DEATH:
            found.append({"kind": "roshan"})
        elif event.kind in (EventKind.BOUGHT, EventKind.ASSEMBLED) and event.hero >= 0:
            found.append({"kind": "item", "hero": event.hero, "item": event.what})
        elif event.kind == EventKind.WON:
            found.append({"kind": "end", "winner": event.team})
    return found

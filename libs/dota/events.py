"""Game events of a timestep, for transcripts and kill feeds.

The core records each event once and emits its reward signal at the same place (``world/events.cpp``). The list holds
the events of the last timestep in order; after a reset, those of the start (first purchases, first skill). A replay
produces the same events.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from dota import _core


class EventKind(IntEnum):
    """Kind of an event. The comment of each kind defines ``unit``, ``other``, ``what`` and ``value``; unnamed ones are
    empty."""

    CAST = 0  # unit used the ability or item `what` at rank `value`; other: the target
    HERO_DEATH = 1  # unit died and does not reincarnate; other: the killer
    HERO_KILL = 2  # the hero `unit` is credited with a kill; other: the dead hero; value: gold for the kill alone
    ASSIST = 3  # unit assisted in a kill; other: the dead hero
    REINCARNATION = 4  # unit died and will reincarnate; other: the killer
    RESPAWN = 5  # unit respawned
    BUYBACK = 6  # unit bought back for `value` gold
    UNIT_DEATH = 7  # a creep or summon died; other: the killer
    LAST_HIT = 8  # the hero `unit` is credited with a creep's death; other: the creep; value: gold
    DENY = 9  # the hero `unit` killed a creep of its own side; other: the creep
    BUILDING_DEATH = 10  # unit was destroyed; other: the killer
    ROSHAN_DEATH = 11  # Roshan died for the `value`-th time; other: the killer
    COURIER_DEATH = 12  # unit was killed; other: the killer
    WARD_DEATH = 13  # unit was destroyed or denied; other: the killer
    LEVEL_UP = 14  # unit reached level `value`
    LEARNED = 15  # unit has the ability or talent `what` at rank `value`
    BOUGHT = 16  # unit bought the item `what` for `value` gold
    SOLD = 17  # unit sold the item `what` for `value` gold
    RUNE = 18  # unit took the rune `what`
    AEGIS = 19  # unit took the Aegis
    GLYPH = 20  # team used its glyph
    SHRINE = 21  # unit used the shrine `other`
    MEGAS = 22  # team's creeps are mega creeps from now on
    WON = 23  # team won; 2: a draw
    ASSEMBLED = 24  # unit assembled the item `what` from its parts
    SCAN = 25  # team began a scan
    SCAN_FOUND = 26  # team's scan found an enemy hero


assert len(EventKind) == _core.EVENT_KINDS

# Kinds that a kill feed shows.
FEED = frozenset({EventKind.HERO_DEATH, EventKind.HERO_KILL, EventKind.REINCARNATION, EventKind.BUYBACK,
                  EventKind.BUILDING_DEATH, EventKind.ROSHAN_DEATH, EventKind.COURIER_DEATH, EventKind.RUNE,
                  EventKind.AEGIS, EventKind.GLYPH, EventKind.MEGAS, EventKind.WON})


class Event(NamedTuple):
    """Game event. Units are named by slot and generation, as in ``VecGame.spectate``, because dead units free their
    slots."""

    frame: int  # engine frames since the game was made, 30 a second
    time: float  # game time, seconds
    kind: EventKind
    team: int  # unit's: 0 Radiant, 1 Dire, 2 neutral
    unit: int = -1  # slot, -1: none
    generation: int = 0
    unit_name: str = ""
    hero: int = -1  # team * 5 + seat of the hero that unit is, or that owns it; -1: none
    other: int = -1
    other_generation: int = 0
    other_name: str = ""
    other_hero: int = -1
    what: str = ""  # ability, item or rune
    value: float = 0.0


def events_of(rows: Iterable[tuple[object, ...]]) -> list[Event]:
    """Convert the core's rows to events."""
    return [event._replace(kind=EventKind(event.kind)) for event in (Event(*row) for row in rows)]  # type: ignore[arg-type]


def line(event: Event) -> str:
    """Format an event as a transcript line: time, kind, unit, other unit, subject, amount."""
    def who(name: str, hero: int, slot: int) -> str:
        short = name.removeprefix("npc_dota_").removeprefix("hero_").removeprefix("creep_")
        side = f"{'RD'[hero // 5]}{hero % 5 + 1} " if hero >= 0 else ""
        return f"{side}{short} #{slot}"

    parts = [f"{event.time:8.2f}", event.kind.name.lower()]
    if event.unit >= 0:
        parts.append(who(event.unit_name, event.hero, event.unit))
    else:
        parts.append(("radiant", "dire", "nobody")[event.team])
    if event.other >= 0:
        parts.append(f"< {who(event.other_name, event.other_hero, event.other)}")
    if event.what:
        parts.append(event.what.removeprefix("item_"))
    if event.value:
        parts.append(f"{event.value:g}")
    return "  ".join(parts)

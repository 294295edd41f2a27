"""Idle acknowledgements: a run is paused only once every service has reported that it is idle.

Each pause has a number. The step that begins a pause also enrols every live instance that plays or learns. A service
acknowledges with its heartbeat that it is idle for that number; instances that appear later must acknowledge too. An
expired lease is no acknowledgement; a clean exit is one.
"""

import time
from typing import Any, NamedTuple

import redis

from rapid.store import functions
from rapid.store.keys import Keys
from rapid.store.leases import ANSWER_MS, Instance, Leases
from rapid.store.rows import decode_row

# Kinds that play or learn, and must be idle before a run is paused.
IDLE_KINDS = ("evaluator", "inference", "optimizer", "play", "rollout")


class IdleReport(NamedTuple):
    """Acknowledgements of a pause. ``pause`` is its number (0: no pause yet) and ``epoch`` the run's epoch.

    ``asked_at`` is in seconds since 1970. ``acknowledged`` maps each idle instance (such as "rollout/0") to its time;
    ``waiting_for`` lists the others in order.
    """

    pause: int
    epoch: int
    asked_at: float
    acknowledged: dict[str, float]
    waiting_for: list[str]


def instance_name(kind: str, identity: str) -> str:
    """Return the name of an instance in reports."""
    return f"{kind}/{identity}"


def idle_report(state: redis.Redis, run: str) -> IdleReport:
    """Return the acknowledgements of the run's current pause and epoch. Changes nothing.

    After the epoch has changed within a pause, a live instance must acknowledge again. Raise Corrupt for a damaged row.
    """
    keys = Keys(run)
    # Leases first: an instance that acknowledges and exits between the two reads has acknowledged.
    live = {instance_name(i.kind, i.id): i for i in Leases(state, run).live() if i.kind in IDLE_KINDS}
    pipeline: Any = state.pipeline(transaction=False)
    for kind in IDLE_KINDS:
        pipeline.zrange(keys.quiet_names(kind), 0, -1)
    asked_for = [(kind, name.decode()) for kind, names in zip(IDLE_KINDS, pipeline.execute(), strict=True)
                 for name in names]
    texts: Any = state.mget(keys.status, keys.record, keys.pause, *(keys.quiet(*one) for one in asked_for))
    status, record, pause, *rows = texts
    number = decode_row(status, keys.status, lambda row: int(row.get("pause", 0))) if status else 0
    epoch = decode_row(record, keys.record, lambda row: int(row["epoch"])) if record else 0
    if number == 0:
        return IdleReport(0, epoch, 0.0, {}, [])
    asked_at = decode_row(pause, keys.pause, lambda row: float(row["asked_at"])) if pause else 0.0
    answers: dict[str, dict[str, Any]] = {}
    for (kind, identity), text in zip(asked_for, rows, strict=True):
        row = None if text is None else decode_row(text, keys.quiet(kind, identity), _answer)
        if row is not None and row["pause"] == number:
            answers[instance_name(kind, identity)] = row
    acknowledged, waiting = {}, []
    for name in sorted(answers.keys() | live.keys()):
        row = answers.get(name)
        if row is not None and row["quiet"] and _is_valid(row, live.get(name), epoch):
            acknowledged[name] = float(row["at"])
        else:
            waiting.append(name)
    return IdleReport(number, epoch, asked_at, acknowledged, waiting)


def _answer(row: Any) -> dict[str, Any]:
    """Return an acknowledgement's row. Raise KeyError or TypeError for a malformed one."""
    found = {"pause": row["pause"], "quiet": row["quiet"], "gone": row.get("gone", False)}
    if found["quiet"]:
        found["at"] = float(row["at"])
        if not found["gone"]:
            found |= {"epoch": row["epoch"], "life": row["life"]}
    return found


def _is_valid(row: dict[str, Any], now: Instance | None, epoch: int) -> bool:
    """Return whether an acknowledgement is valid.

    That of a dead instance stays valid. A live instance must have given it in this epoch, since its process started.
    """
    return now is None or (not row.get("gone") and row["epoch"] == epoch and row["life"] == now.life)


def note_overdue(state: redis.Redis, run: str, number: int, fields: dict[str, str]) -> bool:
    """Append the event ``fields`` once per pause. Return whether it was written now."""
    keys = Keys(run)
    return bool(functions.call(state, "note_overdue", [keys.pause, keys.events], str(number), *_flat(fields)))


class PauseStart(NamedTuple):
    """Change of the status that begins a pause, as texts. ``number`` is the pause's; ``event`` has an event's
    fields."""

    status_before: bytes
    record_before: bytes | None
    status_after: str
    name: str
    number: int
    event: dict[str, str]


def begin_pause(state: redis.Redis, keys: Keys, start: PauseStart) -> bool:
    """Set the status, enrol every live instance and append the event, in one step.

    Returns False, and changes nothing, when status or record have changed since they were read.
    """
    return bool(functions.call(
        state, "begin_pause", [keys.status, keys.pause, keys.events], keys.record, start.status_before.decode(),
        (start.record_before or b"").decode(), start.status_after, keys.status_channel, start.name, str(start.number),
        repr(time.time()), keys.prefix, str(ANSWER_MS), str(len(IDLE_KINDS)), *IDLE_KINDS, *_flat(start.event)))


def _flat(fields: dict[str, str]) -> list[str]:
    return [part for pair in fields.items() for part in pair]

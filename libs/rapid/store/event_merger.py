"""Merge of the services' events into the run's event log, by the controller.

The optimizer and the opponents service append events to streams of their own. The merge moves each entry into the log
in one atomic step, so it happens once, also with several controllers and after a crash. The author is the service that
owns the stream. What the service claims beyond that becomes a detail.

A service may write anything into its stream. The size of an event, the backlog and the rate are limited. Events that
were removed before the merge are reported by an event ``events.lost``.
"""

import json
import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import redis

from rapid.store import functions
from rapid.store.events import WRITERS
from rapid.store.keys import Keys

log = logging.getLogger(__name__)
MAX_NAME = 128  # characters of author and kind
MAX_DETAILS = 16_384  # characters
MAX_DEPTH = 20  # nested JSON values
MAX_BACKLOG = 10_000  # events that wait for the merge
MAX_BACKLOG_BYTES = 64 << 20
BATCH = 100  # events of one merge
BURST_BYTES = 1 << 20  # of a writer, after which only the rate below is merged
BYTES_PER_SECOND = 256.0  # 22 MB a day
_OVERHEAD = 100  # bytes of an event besides its texts


class MergedEvent(NamedTuple):
    """An event of a service, checked: the id in its stream and the texts for the log."""

    id: str
    who: str
    what: str
    details: str

    @property
    def size(self) -> int:
        """Its approximate size in the log, in bytes."""
        return len(self.who) + len(self.what) + len(self.details) + _OVERHEAD


def checked_event(writer: str, identity: bytes, fields: dict[bytes, bytes]) -> MergedEvent:
    """Return an entry of a service's stream as an event of that service, whatever the entry contains.

    The author is the service, or an instance of it such as "optimizer-0". Another claimed author becomes the detail
    ``claimed_who``. Details that are too large or no JSON object are replaced by a note.
    """
    who = _name(fields.get(b"who", b"")) or writer
    what = _name(fields.get(b"what", b"")) or "unnamed"
    details = _details(fields.get(b"details", b""))
    if who != writer and not who.startswith(f"{writer}-"):
        who, details = writer, {**details, "claimed_who": who}
    return MergedEvent(identity.decode(), who, what, json.dumps(details, allow_nan=False))


def _name(text: bytes) -> str:
    characters = text[:4 * MAX_NAME].decode(errors="replace")[:MAX_NAME]
    return "".join(c if c.isprintable() else "?" for c in characters)


def _details(text: bytes) -> dict[str, Any]:
    if len(text) > MAX_DETAILS:
        return {"rejected": f"details of {len(text)} bytes, at most {MAX_DETAILS} are allowed"}
    try:
        found = json.loads(text)
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode()  # no NaN and no lone surrogates
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or _is_deeper(found, MAX_DEPTH):
        return {"rejected": f"details are not a JSON object of at most {MAX_DEPTH} levels"}
    return found


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether a JSON value has more nested levels of objects and lists."""
    if not isinstance(value, dict | list):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(part, levels - 1) for part in parts)


class EventMerger:
    """The merge of one run's events. Blocking. ``clock`` returns seconds for the rate limit."""

    def __init__(self, state: redis.Redis, run: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._redis = state
        self._keys = Keys(run)
        self._clock = clock
        self._filled_at = clock()
        self._budgets = dict.fromkeys(WRITERS, float(BURST_BYTES))

    def merge(self) -> int:
        """Move waiting events into the log. Return how many were moved. Raise redis.RedisError."""
        now = self._clock()
        gained, self._filled_at = (now - self._filled_at) * BYTES_PER_SECOND, now
        moved = 0
        for writer in WRITERS:
            self._budgets[writer] = min(self._budgets[writer] + gained, BURST_BYTES)
            moved += self._merge_writer(writer)
        return moved

    def _merge_writer(self, writer: str) -> int:
        """Move one service's events until none waits or its budget is used up."""
        stream, moved = self._keys.events_of(writer), 0
        while True:
            due, rows = functions.call(self._redis, "pending_events", [stream, self._keys.events_removed], writer,
                                       str(MAX_BACKLOG_BYTES), str(MAX_BACKLOG), str(BATCH))
            if not due or self._budgets[writer] <= 0:
                return moved
            events = [checked_event(writer, identity, dict(zip(fields[::2], fields[1::2], strict=True)))
                      for identity, fields in rows]
            now_moved, lost = functions.call(
                self._redis, "merge_events", [self._keys.events, stream, self._keys.events_removed], writer,
                *(text for event in events for text in event))
            moved += int(now_moved)
            if lost:
                log.warning("events lost before the merge writer=%s events=%s", writer, lost if lost > 0 else "unknown")
            self._budgets[writer] -= sum(event.size for event in events) + _OVERHEAD
            if len(events) < BATCH:
                return moved

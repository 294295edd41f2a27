"""Head of a run: its newest version and the digest of its contents, which together identify a version."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import redis

from rapid.store.keys import Keys
from rapid.store.rows import decode_row

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0  # between two looks at the pointer without an announcement


class HeadVersion(NamedTuple):
    """Version and digest. ``digest`` is '' where an earlier release wrote the number only."""

    version: int
    digest: str

    def text(self) -> str:
        """Return the text of the head pointer and its announcements."""
        return f"{self.version}:{self.digest}"

    @classmethod
    def parse(cls, text: bytes | str) -> "HeadVersion":
        """Parse ``text``'s result, or a bare number. Raise ValueError for anything else."""
        version, _, digest = (text.decode() if isinstance(text, bytes) else text).partition(":")
        return cls(int(version), digest)


class StagedVersion(NamedTuple):
    """A version that is stored completely and is not the head yet. ``record`` is its JSON record for the run's state.
    """

    version: int
    digest: str
    record: str

    @property
    def head(self) -> HeadVersion:
        """The head pointer after the cut-over."""
        return HeadVersion(self.version, self.digest)


class HeadWatcher:
    """Reader of a run's head pointer that also waits for changes."""

    def __init__(self, state: redis.Redis, keys: Keys) -> None:
        self._state = state
        self._keys = keys

    def head(self) -> HeadVersion | None:
        """Return the newest version; None before the first."""
        value: Any = self._state.get(self._keys.head)
        if value is None:
            return None
        head = HeadVersion.parse(value)
        if not head.digest:  # a pointer of an earlier release
            record: Any = self._state.hget(self._keys.versions, str(head.version))
            head = head._replace(digest="" if record is None else decode_row(
                record, f"{self._keys.versions} {head.version}", lambda row: str(row["digest"])))
        return head

    def listener(self) -> Any:
        """Return a subscription to head announcements. Close it after use."""
        state: Any = self._state
        listener = state.pubsub(ignore_subscribe_messages=True)
        listener.subscribe(self._keys.heads_channel)
        return listener

    def wait(self, listener: Any, wanted: Callable[[HeadVersion], bool], timeout: float) -> HeadVersion | None:
        """Wait for a head that ``wanted`` accepts. Return None after ``timeout`` seconds. Blocks."""
        end = time.monotonic() + timeout
        while True:
            head = self.head()
            if head is not None and wanted(head):
                return head
            left = end - time.monotonic()
            if left <= 0:
                return None
            listener.get_message(timeout=min(left, POLL_SECONDS))

    async def heads(self, than: int | None, poll_seconds: float) -> AsyncIterator[HeadVersion]:
        """Yield each new head: first a version above ``than``, then every one that differs from the last."""
        listener: Any = None
        last: HeadVersion | None = None

        def is_new(head: HeadVersion) -> bool:
            return head != last if last is not None else than is None or head.version > than

        try:
            while True:
                try:
                    if listener is None:
                        listener = await asyncio.to_thread(self.listener)
                    head = await asyncio.to_thread(self.wait, listener, is_new, poll_seconds)
                except redis.RedisError as error:
                    log.warning("head poll failed: %s", error)
                    if listener is not None:
                        listener.close()
                        listener = None
                    await asyncio.sleep(poll_seconds)
                    continue
                if head is not None:
                    last = head
                    yield head
        finally:
            if listener is not None:
                listener.close()

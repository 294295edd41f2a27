"""Which checkpoints are the run's: an index in the state's Redis, written under the publisher's authority.

The files lie in the blob store, where nobody checks who writes. A checkpoint counts once it is in the index; where
Redis was lost with it, the files alone are gone by.
"""

import json
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import redis

from rapid.blobs import Ref
from rapid.store.fencing import Command, FencingToken, fenced_write
from rapid.store.keys import Keys


class CheckpointEntry(NamedTuple):
    """A checkpoint of the run: its name and contents in the blob store, the epoch and the fence number it was written
    under, and when (seconds since the epoch of time)."""

    name: str
    ref: Ref
    epoch: int
    fence: int
    at: float


class CheckpointIndex:
    """The checkpoints of one run, by version."""

    def __init__(self, state: redis.Redis, run: str) -> None:
        self._redis = state
        self._keys = Keys(run)

    def all(self) -> dict[int, CheckpointEntry]:
        """Every checkpoint that counts, in order of version."""
        rows: Any = self._redis.hgetall(self._keys.checkpoints)
        found = {int(version): _read(text) for version, text in rows.items()}
        return dict(sorted(found.items()))

    def commit(self, authority: FencingToken, version: int, name: str, ref: Ref, dropped: Iterable[int] = ()) -> None:
        """Makes contents that are stored whole the checkpoint of a version, and ``dropped`` versions' count no more, in
        one step. Raises FencedOut."""
        row = CheckpointEntry(name, ref, authority.epoch, authority.fence or 0, time.time())
        text = json.dumps({**row._asdict(), "ref": ref._asdict()})
        commands: list[Command] = [("HSET", self._keys.checkpoints, str(version), text)]
        commands += [("HDEL", self._keys.checkpoints, str(old)) for old in dropped]
        fenced_write(self._redis, self._keys, authority, commands, f"the checkpoint of version {version}")


def _read(text: bytes) -> CheckpointEntry:
    row = json.loads(text)
    return CheckpointEntry(row["name"], Ref(**row["ref"]), int(row["epoch"]), int(row["fence"]), float(row["at"]))

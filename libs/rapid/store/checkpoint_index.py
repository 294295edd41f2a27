"""Index of a run's checkpoints in the state Redis, written under a fencing token.

The files are in the blob store, which does not check its writers. A checkpoint is valid once it is in the index. If
Redis was lost, the files themselves are the only source.
"""

import json
import secrets
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import redis

from rapid.blobs import Ref
from rapid.store.fencing import Command, FencingToken, fenced_write
from rapid.store.keys import Keys


class CheckpointEntry(NamedTuple):
    """A checkpoint: name and contents in the blob store, fencing epoch and fence of its writer, and time (seconds since
    1970)."""

    name: str
    ref: Ref
    epoch: int
    fence: int
    at: float


class CheckpointIndex:
    """The checkpoints of one run by version."""

    def __init__(self, state: redis.Redis, run: str) -> None:
        self._redis = state
        self._keys = Keys(run)

    def all(self) -> dict[int, CheckpointEntry]:
        """Return every valid checkpoint in order of version."""
        rows: Any = self._redis.hgetall(self._keys.checkpoints)
        found = {int(version): _read(text) for version, text in rows.items()}
        return dict(sorted(found.items()))

    def signing_key(self, fencing_token: FencingToken) -> bytes:
        """Return the key that signs the names of checkpoint files; create it if it is missing. Raise FencedOut.

        Backups lack it, because they may be in the blob store.
        """
        key = self._keys.checkpoint_key
        found: Any = self._redis.get(key)
        if found is None:
            fenced_write(self._redis, self._keys, fencing_token, [("SET", key, secrets.token_hex(32), "NX")],
                         "the key of checkpoints")
            found = self._redis.get(key)
        return bytes.fromhex(found.decode())

    def commit(self, fencing_token: FencingToken, version: int, name: str, ref: Ref,
               dropped: Iterable[int] = ()) -> None:
        """Make stored contents the checkpoint of a version and remove ``dropped`` versions, in one step. Raise
        FencedOut."""
        row = CheckpointEntry(name, ref, fencing_token.epoch, fencing_token.fence or 0, time.time())
        text = json.dumps({**row._asdict(), "ref": ref._asdict()})
        commands: list[Command] = [("HSET", self._keys.checkpoints, str(version), text)]
        commands += [("HDEL", self._keys.checkpoints, str(old)) for old in dropped]
        fenced_write(self._redis, self._keys, fencing_token, commands, f"the checkpoint of version {version}")


def _read(text: bytes) -> CheckpointEntry:
    row = json.loads(text)
    return CheckpointEntry(row["name"], Ref(**row["ref"]), int(row["epoch"]), int(row["fence"]), float(row["at"]))

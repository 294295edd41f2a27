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
from rapid.store.errors import FencedOut
from rapid.store.fencing import Command, FencingToken, fenced_write
from rapid.store.keys import Keys
from rapid.store.rows import decode_row


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
        """Return every valid checkpoint in order of version. Raise Corrupt for a damaged one."""
        rows: Any = self._redis.hgetall(self._keys.checkpoints)
        found = {int(version): decode_row(text, f"checkpoint {int(version)}", _read) for version, text in rows.items()}
        return dict(sorted(found.items()))

    def signing_key(self, fencing_token: FencingToken) -> bytes:
        """Return the key that signs the names of checkpoint files; create it if it is missing. Raise FencedOut.

        Backups lack it, because they may be in the blob store.
        """
        key = self._keys.checkpoint_key
        found: Any = self._redis.get(key)
        if found is None:
            try:
                fenced_write(self._redis, self._keys, fencing_token, [("SET", key, secrets.token_hex(32))],
                             "the key of checkpoints", {key: None})
            except FencedOut as error:
                if error.reason != "moved":  # another holder of the lease was faster
                    raise
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

    def preserve(self, fencing_token: FencingToken, name: str, ref: Ref, dropped: Iterable[str] = ()) -> None:
        """Record the contents of a preserved checkpoint by its name, and forget ``dropped`` names. Raise FencedOut."""
        commands: list[Command] = [("HSET", self._keys.preserved, name, json.dumps(ref._asdict()))]
        commands += [("HDEL", self._keys.preserved, old) for old in dropped]
        fenced_write(self._redis, self._keys, fencing_token, commands, f"the preserved checkpoint {name}")

    def preserved(self) -> dict[str, Ref]:
        """Return the contents of the preserved checkpoints by name. Raise Corrupt for a damaged one."""
        rows: Any = self._redis.hgetall(self._keys.preserved)
        found = {name.decode(): decode_row(text, f"preserved checkpoint {name.decode()}", lambda row: Ref.parse(
            row["digest"], row["size"])) for name, text in rows.items()}
        return dict(sorted(found.items()))


def _read(row: Any) -> CheckpointEntry:
    ref = Ref.parse(row["ref"]["digest"], row["ref"]["size"])
    return CheckpointEntry(row["name"], ref, int(row["epoch"]), int(row["fence"]), float(row["at"]))

"""Idempotency-Key: a change repeated under one key is made once and gets the same response again.

Responses are stored in the run's state Redis, so that keys survive a restart of the controller. Only successful
responses are stored: an error has changed nothing, and its key may be retried.
"""

import base64
import hashlib
import json
import math
import re
import secrets
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import redis

from five.services.controller.http.problems import Problem
from rapid.store.keys import Keys
from rapid.store.rows import decode_row
from rapid.store.transaction import transaction

HEADER = b"idempotency-key"
METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
RETENTION_SECONDS = 24 * 3600
CLAIM_SECONDS = 60  # shortest time of a claim; after it the first request has died with its controller
MAX_RESPONSES = 1000
MAX_RESPONSE_BYTES = 256 << 10
_KEY = re.compile(r"[\x21-\x7e]{1,128}")


@dataclass(frozen=True)
class StoredResponse:
    """A stored response: status, headers and body as they were sent."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class _StoredRow(NamedTuple):
    """A record under a key: the request's fingerprint, and its response once it is complete."""

    fingerprint: str
    response: StoredResponse | None

    @classmethod
    def of(cls, row: Any) -> "_StoredRow":
        if "status" not in row:
            return cls(str(row["fingerprint"]), None)
        headers = tuple((n.encode("latin-1"), v.encode("latin-1")) for n, v in row["headers"])
        return cls(str(row["fingerprint"]), StoredResponse(int(row["status"]), headers, base64.b64decode(row["body"])))


@dataclass(frozen=True)
class KeyClaim:
    """A key claimed by the current request, which must store its response or release the key."""

    name: str
    mark: str
    fingerprint: str


def fingerprint(method: str, path: str, query: bytes, body: bytes) -> str:
    """Return the hash that identifies a request. Equal JSON values count as equal bodies."""
    try:
        body = json.dumps(json.loads(body), sort_keys=True).encode()
    except (ValueError, RecursionError):
        pass
    return hashlib.sha256(b"\0".join((method.encode(), path.encode(), query, body))).hexdigest()


class IdempotencyStore:
    """Stored responses of one run by key and caller. Blocking and thread-safe.

    A claim outlasts a request, whose response begins within ``request_seconds``.
    """

    def __init__(self, state: redis.Redis, run: str, request_seconds: float = 0.0) -> None:
        self._redis: Any = state
        self._keys = Keys(run)
        self._claim_seconds = max(CLAIM_SECONDS, math.ceil(2 * request_seconds))

    def claim(self, caller: str, key: str, request_fingerprint: str) -> KeyClaim | StoredResponse:
        """Claim a key for a request, or return the response to the first request with it.

        Raise Problem 422 for an invalid key or one used for another request, 409 while the first request is in
        progress, Corrupt for a damaged row, and redis.RedisError.
        """
        if not _KEY.fullmatch(key):
            raise Problem(422, "Idempotency-Key: 1 to 128 visible ASCII characters are allowed, such as a UUID",
                          errors=[{"where": "header.Idempotency-Key", "what": "1 to 128 visible ASCII characters"}])
        name = self._keys.idempotency(hashlib.sha256(f"{caller}\0{key}".encode()).hexdigest())
        mark = json.dumps({"fingerprint": request_fingerprint, "at": time.time_ns(), "by": secrets.token_hex(8)})
        if self._redis.set(name, mark, nx=True, ex=self._claim_seconds):
            return KeyClaim(name, mark, request_fingerprint)
        stored = self._redis.get(name)
        if stored is not None and stored.decode("utf-8", "replace") == mark:
            return KeyClaim(name, mark, request_fingerprint)  # repeated after a lost reply
        # A response that expired between the two reads counts as in progress: the client tries again.
        row = decode_row(stored or mark, name, _StoredRow.of)
        if row.fingerprint != request_fingerprint:
            raise Problem(422, f"Idempotency-Key {key!r} was used for another request (another path or body): use "
                          "a new key for each change", "key-reused")
        if row.response is None:
            raise Problem(409, f"the first request with Idempotency-Key {key!r} is still in progress", "key-busy",
                          {"Retry-After": "1"})
        return row.response

    def store_or_release(self, claim: KeyClaim, response: StoredResponse | None) -> None:
        """Store the response under its key, or release the key if the response is not a success or too large. Raise
        redis.RedisError."""
        if response is None or not 200 <= response.status < 300 or len(response.body) > MAX_RESPONSE_BYTES:
            self._release(claim)
            return
        document = json.dumps({
            "fingerprint": claim.fingerprint, "status": response.status,
            "headers": [[n.decode("latin-1"), v.decode("latin-1")] for n, v in response.headers],
            "body": base64.b64encode(response.body).decode()})
        index = self._keys.idempotency_index
        # Ordered by a counter, not a clock: after a clock jumps back, every new entry would be the oldest.
        newest = self._redis.zrange(index, -1, -1, withscores=True)
        pipeline = self._redis.pipeline(transaction=True)
        pipeline.set(claim.name, document, ex=RETENTION_SECONDS)
        pipeline.zadd(index, {claim.name: newest[0][1] + 1 if newest else 1})
        pipeline.zrange(index, 0, -MAX_RESPONSES - 1)
        beyond = pipeline.execute()[2]
        if beyond:
            pipeline.delete(*beyond)
            pipeline.zrem(index, *beyond)
            pipeline.execute()

    def _release(self, claim: KeyClaim) -> None:
        """Release the key, unless another request has claimed it meanwhile."""
        def release(pipeline: Any) -> None:
            if pipeline.get(claim.name) == claim.mark.encode():
                pipeline.multi()
                pipeline.delete(claim.name)

        transaction(self._redis, self._keys, release, claim.name)

"""Idempotency-Key: a change that is asked for twice under one key is made once, and answered twice.

What was answered is kept in the run's state Redis, so that the key holds through a restart of the controller. Only
success is kept: an error has changed nothing, and its key may be tried again.
"""

import base64
import hashlib
import json
import re
import time
from dataclasses import dataclass
from typing import Any

import redis

from five.services.controller.http.problems import Problem
from rapid.store.keys import Keys

HEADER = b"idempotency-key"
METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
KEEP_SECONDS = 24 * 3600
RUNNING_SECONDS = 60  # a first request that has not ended by then has died with its controller
MAX_KEPT = 1000
MAX_ANSWER_BYTES = 256 << 10
_KEY = re.compile(r"[\x21-\x7e]{1,128}")



@dataclass(frozen=True)
class Answer:
    """An answer that is kept: status, headers and body as they were sent."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


@dataclass(frozen=True)
class Taken:
    """A key that this request has taken, and has to settle."""

    name: str
    mark: str
    fingerprint: str


def fingerprint(method: str, path: str, query: bytes, body: bytes) -> str:
    """What makes two requests the same one. Bodies that are the same JSON are the same body."""
    try:
        body = json.dumps(json.loads(body), sort_keys=True).encode()
    except (ValueError, RecursionError):
        pass
    return hashlib.sha256(b"\0".join((method.encode(), path.encode(), query, body))).hexdigest()


class Replays:
    """Answers of one run by key and caller. Blocking; safe to share between threads."""

    def __init__(self, state: redis.Redis, run: str) -> None:
        self._redis: Any = state
        self._keys = Keys(run)

    def begin(self, caller: str, key: str, print_of: str) -> Taken | Answer:
        """Takes a key for a request, or gives the answer that the first one under it got.

        Raises Problem 422 for a key that cannot be or was used for another request, 409 while the first one is under
        way, redis.RedisError.
        """
        if not _KEY.fullmatch(key):
            raise Problem(422, "Idempotency-Key: 1 to 128 visible ASCII characters, a UUID say",
                          errors=[{"where": "header.Idempotency-Key", "what": "1 to 128 visible ASCII characters"}])
        name = self._keys.idempotency(hashlib.sha256(f"{caller}\0{key}".encode()).hexdigest())
        mark = json.dumps({"fingerprint": print_of, "at": time.time_ns()})
        if self._redis.set(name, mark, nx=True, ex=RUNNING_SECONDS):
            return Taken(name, mark, print_of)
        # One that has ended between the two looks is as good as under way: the client asks again.
        kept = json.loads(self._redis.get(name) or mark)
        if kept["fingerprint"] != print_of:
            raise Problem(422, f"Idempotency-Key {key!r} was used for another request (another path or body): each "
                          "change has a key of its own", "key-reused")
        if "status" not in kept:
            raise Problem(409, f"the first request with Idempotency-Key {key!r} is still under way", "key-busy",
                          {"Retry-After": "1"})
        headers = tuple((n.encode("latin-1"), v.encode("latin-1")) for n, v in kept["headers"])
        return Answer(kept["status"], headers, base64.b64decode(kept["body"]))

    def settle(self, taken: Taken, answer: Answer | None) -> None:
        """Keeps the answer under its key, or, when there is none worth keeping, lets the key go. Raises
        redis.RedisError."""
        if answer is None or not 200 <= answer.status < 300 or len(answer.body) > MAX_ANSWER_BYTES:
            self._release(taken)
            return
        document = json.dumps({
            "fingerprint": taken.fingerprint, "status": answer.status,
            "headers": [[n.decode("latin-1"), v.decode("latin-1")] for n, v in answer.headers],
            "body": base64.b64encode(answer.body).decode()})
        index = self._keys.idempotency_index
        # In the order in which they were kept, by no clock: one that jumps back would have each new one dropped.
        newest = self._redis.zrange(index, -1, -1, withscores=True)
        pipeline = self._redis.pipeline(transaction=True)
        pipeline.set(taken.name, document, ex=KEEP_SECONDS)
        pipeline.zadd(index, {taken.name: newest[0][1] + 1 if newest else 1})
        pipeline.zrange(index, 0, -MAX_KEPT - 1)
        beyond = pipeline.execute()[2]
        if beyond:
            pipeline.delete(*beyond)
            pipeline.zrem(index, *beyond)
            pipeline.execute()

    def _release(self, taken: Taken) -> None:
        """Lets the key go, unless another request has taken it meanwhile."""
        with self._redis.pipeline(transaction=True) as pipeline:
            try:
                pipeline.watch(taken.name)
                if pipeline.get(taken.name) == taken.mark.encode():
                    pipeline.multi()
                    pipeline.delete(taken.name)
                    pipeline.execute()
            except redis.WatchError:
                pass

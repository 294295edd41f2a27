"""Limits on requests: rate, size, time and concurrency."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from five.run.config.controller import LimitsConfig
from five.services.controller.http.problems import Problem

Message = dict[str, Any]
MAX_CLIENTS = 4096  # tracked addresses; the least recently used one is dropped first


class TokenBucket:
    """A token bucket: ``rate`` per second on average, up to ``burst`` at once."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._left = burst
        self._at = now

    def wait_seconds(self, now: float) -> float:
        """Return the seconds until the next request is allowed; 0 if it is allowed now."""
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        return 0.0 if self._left >= 1.0 else (1.0 - self._left) / self._rate

    def take(self) -> None:
        """Take one token."""
        self._left -= 1.0


class ClientRates:
    """Token buckets by client address, for use in one thread. ``clock`` returns monotonic seconds."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def wait_seconds(self, client: str) -> float:
        """Return the seconds until the client's next request is allowed; 0 if it is allowed now."""
        now = self._clock()
        bucket = self._buckets.get(client)
        if bucket is None:
            bucket = self._buckets[client] = TokenBucket(self._rate, self._burst, now)
            if len(self._buckets) > MAX_CLIENTS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(client)
        return bucket.wait_seconds(now)

    def take(self, client: str) -> None:
        """Take one token of the client's bucket."""
        self._buckets[client].take()


def too_many_requests(seconds: float, what: str) -> Problem:
    """Return a 429 with Retry-After."""
    return Problem(429, f"{what}; try again in {max(seconds, 0.01):.2g} s",
                   headers={"Retry-After": str(max(1, round(seconds + 0.5)))})


class RequestLimits:
    """The limits of one application."""

    def __init__(self, config: LimitsConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self.config = config
        self._all = ClientRates(config.requests_per_second, config.burst, clock)
        self._clients = ClientRates(config.client_requests_per_second, config.client_burst, clock)
        self._failures = ClientRates(config.failed_logins_per_second, config.failed_logins_burst, clock)
        self._active = 0

    def admit(self, client: str) -> None:
        """Admit a request from an address. Raise Problem 429 if the rate is exceeded."""
        wait = self._clients.wait_seconds(client)
        if wait:
            raise too_many_requests(
                wait, f"more than {self.config.client_requests_per_second:g} requests a second from one client")
        wait = self._all.wait_seconds("")
        if wait:
            raise too_many_requests(wait, f"more than {self.config.requests_per_second:g} requests a second")
        self._clients.take(client)
        self._all.take("")

    def login_failed(self, client: str) -> None:
        """Count a refused token. Raise Problem 429 instead of the refusal if there are too many.

        A valid token is never delayed by the failures of others behind the same address.
        """
        wait = self._failures.wait_seconds(client)
        if wait:
            raise too_many_requests(wait, "too many requests without a valid token")
        self._failures.take(client)

    def enter(self) -> None:
        """Count a request in progress until ``leave``. Raise Problem 503 if there are too many."""
        if self._active >= self.config.concurrent_requests:
            raise Problem(503, f"{self._active} requests are in progress, the maximum "
                          "(services.controller.limits.concurrent_requests): try again",
                          headers={"Retry-After": "1"})
        self._active += 1

    def leave(self) -> None:
        """End a request in progress."""
        self._active -= 1

    def check_length(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raise Problem 413 if the announced body is too large, before any of it is read."""
        for name, value in headers:
            if name == b"content-length" and (not value.isdigit() or int(value) > self.config.body_bytes):
                raise self._body_too_large()

    def _body_too_large(self) -> Problem:
        return Problem(413, f"request body too large: at most {self.config.body_bytes} bytes are allowed",
                       headers={"Connection": "close"})

    async def read_body(self, receive: Callable[[], Any]) -> bytes | None:
        """Read the whole body; None if the client has disconnected. Raise Problem 413 as soon as it is too large, and
        408 if it takes too long.
        """
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.config.body_seconds):
                while True:
                    message: Message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    piece = message.get("body", b"")
                    size += len(piece)
                    if size > self.config.body_bytes:
                        raise self._body_too_large()
                    pieces.append(piece)
                    if not message.get("more_body", False):
                        return b"".join(pieces)
        except TimeoutError:
            raise Problem(408, f"the request body did not arrive within {self.config.body_seconds:g} s",
                          headers={"Connection": "close"}) from None

"""What a request may take before anybody looks at what it says: rate, size, time, and how many at once."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from five.run.config.controller import LimitsConfig
from five.services.controller.http.problems import Problem

Message = dict[str, Any]
MAX_CLIENTS = 4096  # addresses whose rate is remembered; the one that was quiet longest is forgotten first


class Bucket:
    """A token bucket: ``rate`` a second on average, up to ``burst`` at once."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._left = burst
        self._at = now

    def wait(self, now: float) -> float:
        """Seconds until the next one may come; 0: now."""
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        return 0.0 if self._left >= 1.0 else (1.0 - self._left) / self._rate

    def take(self) -> None:
        """One has come."""
        self._left -= 1.0


class Rates:
    """Buckets by client address. For one thread, the event loop's. ``clock`` is in seconds of any origin."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._of: OrderedDict[str, Bucket] = OrderedDict()

    def wait(self, client: str) -> float:
        """Seconds until that client may send the next one; 0: now."""
        now = self._clock()
        bucket = self._of.get(client)
        if bucket is None:
            bucket = self._of[client] = Bucket(self._rate, self._burst, now)
            if len(self._of) > MAX_CLIENTS:
                self._of.popitem(last=False)
        self._of.move_to_end(client)
        return bucket.wait(now)

    def take(self, client: str) -> None:
        """That client has sent one."""
        self._of[client].take()


def slow_down(seconds: float, what: str) -> Problem:
    """429 with Retry-After."""
    return Problem(429, f"{what}; try again in {max(seconds, 0.01):.2g} s",
                   headers={"Retry-After": str(max(1, round(seconds + 0.5)))})


class Limits:
    """The limits of one application."""

    def __init__(self, config: LimitsConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self.config = config
        self._all = Rates(config.requests_per_second, config.burst, clock)
        self._clients = Rates(config.client_requests_per_second, config.client_burst, clock)
        self._failures = Rates(config.failed_logins_per_second, config.failed_logins_burst, clock)
        self._under_way = 0

    def admit(self, client: str) -> None:
        """A request has come from an address. Raises Problem 429 when that is too often."""
        wait = self._clients.wait(client)
        if wait:
            raise slow_down(wait, f"more than {self.config.client_requests_per_second:g} requests a second from one "
                            "client")
        wait = self._all.wait("")
        if wait:
            raise slow_down(wait, f"more than {self.config.requests_per_second:g} requests a second")
        self._clients.take(client)
        self._all.take("")

    def login_failed(self, client: str) -> None:
        """A token was refused. Raises Problem 429 in place of the refusal when that happens too often.

        A valid token is never held up by the failures of others behind the same address.
        """
        wait = self._failures.wait(client)
        if wait:
            raise slow_down(wait, "too many requests without a valid token")
        self._failures.take(client)

    def enter(self) -> None:
        """A request is worked on from here to ``leave``. Raises Problem 503 when too many are."""
        if self._under_way >= self.config.concurrent_requests:
            raise Problem(503, f"{self._under_way} requests are being worked on, that is all there may be at once",
                          headers={"Retry-After": "1"})
        self._under_way += 1

    def leave(self) -> None:
        """A request is done with."""
        self._under_way -= 1

    def check_length(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raises Problem 413 when the request announces a body that is too large, before a byte of it is read."""
        for name, value in headers:
            if name == b"content-length" and (not value.isdigit() or int(value) > self.config.body_bytes):
                raise self._too_large()

    def _too_large(self) -> Problem:
        return Problem(413, f"a request's body may have {self.config.body_bytes} bytes",
                       headers={"Connection": "close"})

    async def read_body(self, receive: Callable[[], Any]) -> bytes | None:
        """The whole body, as it comes in. None when the client is gone. Raises Problem 413 as soon as it is too large,
        408 when it takes too long."""
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
                        raise self._too_large()
                    pieces.append(piece)
                    if not message.get("more_body", False):
                        return b"".join(pieces)
        except TimeoutError:
            raise Problem(408, f"the request's body was not there within {self.config.body_seconds:g} s",
                          headers={"Connection": "close"}) from None

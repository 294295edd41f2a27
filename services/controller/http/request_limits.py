"""Limits on requests: rate, size, time and concurrency."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from five.run.config.controller import LimitsConfig
from five.services.controller.http.auth import Caller, Role
from five.services.controller.http.client_address import ClientAddress
from five.services.controller.http.problems import Problem
from five.services.controller.http.slots import Slot, SlotPool

Message = dict[str, Any]
DISCARDED_BYTES, DISCARD_SECONDS = 64 << 10, 1.0  # largest body of a refused request that is read, and time for it
MAX_CLIENTS = 4096  # tracked clients; the least recently used one is dropped first
PROXY_FACTOR, ALL_FACTOR = 5, 10  # rates of a trusted proxy, and of all addresses together, over that of one address


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

    def put_back(self) -> None:
        """Put one token back."""
        self._left = min(self._burst, self._left + 1.0)


class ClientRates:
    """Token buckets by client, an address or a token's name, for use in one thread. ``clock`` returns monotonic
    seconds."""

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
        """Take one token of the client's bucket, after ``wait_seconds``."""
        self._buckets[client].take()

    def put_back(self, client: str) -> None:
        """Put a taken token back."""
        if client in self._buckets:
            self._buckets[client].put_back()


def too_many_requests(seconds: float, what: str) -> Problem:
    """Return a 429 with Retry-After."""
    return Problem(429, f"{what}; try again in {max(seconds, 0.01):.2g} s",
                   headers={"Retry-After": str(max(1, round(seconds + 0.5)))})


class SenderRates:
    """Rates of senders without a valid token: of one address, of one trusted proxy, and of all together."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._addresses = ClientRates(rate, burst, clock)
        self._proxies = ClientRates(rate * PROXY_FACTOR, burst * PROXY_FACTOR, clock)
        self._all = ClientRates(rate * ALL_FACTOR, burst * ALL_FACTOR, clock)

    def _buckets(self, client: ClientAddress) -> list[tuple[ClientRates, str]]:
        # Any client of a trusted proxy may send X-Forwarded-For with an address of its choice.
        proxy = [(self._proxies, client.proxy)] if client.proxy else []
        return [(self._addresses, client.address), *proxy, (self._all, "")]

    def take(self, client: ClientAddress) -> float:
        """Take one token. Return 0, or the seconds to wait without taking any."""
        buckets = self._buckets(client)
        wait = max(rates.wait_seconds(name) for rates, name in buckets)
        if not wait:
            for rates, name in buckets:
                rates.take(name)
        return wait

    def put_back(self, client: ClientAddress) -> None:
        """Put a taken token back."""
        for rates, name in self._buckets(client):
            rates.put_back(name)


class RequestLimits:
    """The limits of one application.

    Requests with a valid token count for the token, others for their address, so that nobody without a token can use
    up what people with one need. Checking a token costs less than parsing the request. Only an unknown cookie or code
    costs a read of the store: its sender needs an attempt first.
    """

    def __init__(self, config: LimitsConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self.config = config
        self._viewers = ClientRates(config.requests_per_second, config.burst, clock)
        self._clients = ClientRates(config.client_requests_per_second, config.client_burst, clock)
        self._anonymous = SenderRates(config.anonymous_requests_per_second, config.anonymous_burst, clock)
        self._failures = SenderRates(config.failed_logins_per_second, config.failed_logins_burst, clock)
        self._active = SlotPool(config.concurrent_requests, config, "concurrent_requests", "requests are in progress",
                                503, 1)

    def admit_caller(self, caller: Caller, client: ClientAddress) -> None:
        """Admit a request of a caller. Raise Problem 429 if its rate is exceeded."""
        # Without authentication everybody has the same name.
        name = caller.name if caller.token else f"address {client.address}"
        shared = [(self._viewers, "")] if caller.role < Role.OPERATOR else []
        buckets = [(self._clients, name), *shared]
        wait = max(rates.wait_seconds(bucket) for rates, bucket in buckets)
        if wait:
            raise too_many_requests(
                wait, f"more than {self.config.client_requests_per_second:g} requests a second from {name}, or "
                f"{self.config.requests_per_second:g} from all viewers")
        for rates, bucket in buckets:
            rates.take(bucket)

    def admit_anonymous(self, client: ClientAddress) -> None:
        """Admit a request without a caller. Raise Problem 429 if the rate of such requests is exceeded."""
        wait = self._anonymous.take(client)
        if wait:
            raise too_many_requests(wait, "too many requests without a valid token")

    def begin_login(self, client: ClientAddress) -> None:
        """Count an attempt to log in as failed, until ``login_succeeded``. Raise Problem 429 if too many failed."""
        wait = self._failures.take(client)
        if wait:
            raise too_many_requests(wait, "too many requests without a valid token, code or cookie")

    def login_succeeded(self, client: ClientAddress) -> None:
        """Take an attempt back that ``begin_login`` counted."""
        self._failures.put_back(client)

    def enter(self, caller: Caller | None, client: ClientAddress) -> Slot:
        """Return the slot of a request in progress. Raise Problem 503 if there are too many."""
        return self._active.take(client.address if caller is None else caller)

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


async def discard_small_body(headers: Iterable[tuple[bytes, bytes]], receive: Callable[[], Any]) -> bool:
    """Read and drop the body of a refused request if it is announced as small. Return whether it was complete.

    Closing a connection while the client still sends resets it, and the client may lose the response.
    """
    length = next((value for name, value in headers if name == b"content-length"), b"")
    if not length.isdigit() or int(length) > DISCARDED_BYTES:
        return False
    try:
        async with asyncio.timeout(DISCARD_SECONDS):
            while (message := await receive())["type"] == "http.request":
                if not message.get("more_body", False):
                    return True
    except TimeoutError:
        pass
    return False

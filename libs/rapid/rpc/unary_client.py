"""Unary calls to a service with one or several addresses."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

import grpc
import grpc.aio

from rapid.config import RpcConfig
from rapid.rpc.caller_secret import CallToken
from rapid.rpc.channel import Channel, aio_channel, backoff
from rapid.rpc.errors import CallFailed, StatusCode, failure_of
from rapid.rpc.retry_throttle import RetryThrottle
from rapid.telemetry import tracing

Stub = TypeVar("Stub")
Response = TypeVar("Response")


def require_addresses(addresses: Sequence[str], service: str) -> list[str]:
    """Return ``addresses`` as a list. Raise ValueError when it is empty."""
    if isinstance(addresses, str) or not addresses or not all(addresses):
        raise ValueError(f"{service}: {addresses!r} is not a list of addresses (host:port)")
    return list(addresses)


class UnaryClient(Generic[Stub]):
    """Client of a service's unary methods that retries at the next address.

    Each call has one deadline over all attempts and must be safe to repeat. Only this class repeats it, and not while
    most calls fail (`rapid.rpc.retry_throttle`).
    """

    def __init__(self, addresses: Sequence[str], make_stub: Callable[[grpc.aio.Channel], Stub], service: str,
                 config: RpcConfig, token: CallToken | None, name: str = "") -> None:
        """``name`` is the name in the servers' certificates, if it differs from the address."""
        self._name = name
        self._addresses = require_addresses(addresses, service)
        self._make_stub = make_stub
        self.service = service
        self._config = config
        self._token = token
        self._position = 0
        self._open: dict[str, tuple[Channel, Stub]] = {}
        self._throttle = RetryThrottle()

    def _stub(self) -> tuple[Channel, Stub]:
        address = self._addresses[self._position % len(self._addresses)]
        if address not in self._open:
            channel = aio_channel(address, self._config, self._token, self._name)
            self._open[address] = channel, self._make_stub(channel.grpc)
        return self._open[address]

    async def call(self, method: str, make: Callable[[Stub], Callable[..., Awaitable[Response]]], request: Any,
                   deadline: float | None = None, repeats: bool = True) -> Response:
        """Return the response to ``request``; ``make`` selects the stub's method. Raise CallFailed.

        With ``repeats`` False the request is sent once, when a server is available: use it for work that is too
        expensive to repeat.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + (self._config.deadline_seconds if deadline is None else deadline)
        pauses = backoff(self._config)
        tries = 0
        while True:
            position = self._position
            channel, stub = self._stub()
            sent = True
            try:
                if not repeats:
                    sent = False
                    await channel.ready(min(self._config.deadline_seconds, max(end - loop.time(), 0.001)))
                    sent = True
                with tracing.span(f"{self.service}/{method}", "client"):
                    answer = await make(stub)(request, timeout=max(end - loop.time(), 0.001),
                                              metadata=(*channel.metadata, *tracing.metadata()))
                self._throttle.answered()
                return answer
            except TimeoutError as error:
                failure = CallFailed(StatusCode.UNAVAILABLE, channel.target, f"{self.service}/{method}", str(error))
            except grpc.aio.AioRpcError as error:
                failure = failure_of(error, channel.target, f"{self.service}/{method}")
            tries += 1
            pause = next(pauses)
            (self._throttle.failed if failure.may_retry else self._throttle.answered)()
            if failure.may_retry:  # the next attempt, of this call or of another, is at the next address
                self._position = max(self._position, position + 1)
            if not failure.may_retry or (sent and not repeats) or not self._throttle.allows or (
                    tries > self._config.retries or loop.time() + pause >= end):
                raise failure
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close the connections."""
        for channel, _ in self._open.values():
            await channel.close()
        self._open.clear()

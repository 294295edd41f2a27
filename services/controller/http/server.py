"""The HTTP server of the REST API, and the run's stores as its requests see them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from five.clients.play import PlayClient
from five.run.config import RunConfig
from five.run.config.controller import LimitsConfig
from five.services.controller.http.auth import Gate
from five.services.controller.http.dependencies import Context
from rapid.blobs import BlobStore
from rapid.service import Service
from rapid.store.connection import connect
from rapid.store.parameters import ParameterStore
from rapid.store.state import RunState

HEADER_BYTES = 16 << 10  # request line and headers together
GRACE_SECONDS = 3  # for answers under way when the controller ends
SOCKET_BYTES = 8 << 10  # of a message that comes over a web socket
PING_SECONDS = 5.0  # a web socket whose ping is not answered for so long is gone, and its heroes are the agent's
OVERVIEW_SECONDS = 0.1  # dashboards and scripts that ask at the same moment cost the store one look
STORE_RETRIES = 1  # a connection that a restarted Redis has closed is opened again at once


class RestServer(uvicorn.Server):
    """A server that leaves the process's signals to its lifecycle."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def protocol(header_seconds: float) -> type[asyncio.Protocol]:
    """HTTP/1.1 as uvicorn speaks it, with a limit on the time until a request's headers are whole."""

    class Patient(H11Protocol):
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def _watch(self) -> None:
            if self.conn.their_state is not h11.IDLE:
                self._forget()
            elif self._late is None:
                self._late = self.loop.call_later(header_seconds, self._give_up)

        def _forget(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

        def _give_up(self) -> None:
            self._late = None
            if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
                self.transport.close()

    return Patient


def server(app: FastAPI, limits: LimitsConfig, host: str, port: int) -> RestServer:
    """A server for the application, not started yet."""
    return RestServer(uvicorn.Config(
        app, host, port, http=protocol(limits.header_seconds), log_level="warning", access_log=False,
        h11_max_incomplete_event_size=HEADER_BYTES, limit_concurrency=limits.connections,
        timeout_graceful_shutdown=GRACE_SECONDS, server_header=False, ws="websockets-sansio", ws_max_size=SOCKET_BYTES,
        ws_ping_interval=PING_SECONDS, ws_ping_timeout=PING_SECONDS, ws_per_message_deflate=False))


def context_of(service: Service[RunConfig]) -> Context:
    """The run as requests see it: through connections of their own that give up soon, so that a store that is away
    costs an answer a second and not six. Raises ValueError when the tokens cannot be read."""
    config = service.config
    limits = config.services.controller.limits
    impatient = config.store.model_copy(update={"timeout_seconds": limits.store_seconds,
                                                "reconnect_seconds": limits.store_seconds})
    state = connect(config.store.state_url, impatient, "state", retries=STORE_RETRIES)
    params = connect(config.store.params_url, impatient, "params", retries=STORE_RETRIES)
    blobs: BlobStore = service.blobs
    play = config.services.play

    def play_client() -> PlayClient:
        return PlayClient(play.address, config.rpc, config.name, service.token)

    return Context(config.name, RunState(state, config.name),
                   ParameterStore(params, state, config.name, impatient, blobs), config.schedules,
                   Gate.configured(config.services.controller, service.token), limits,
                   config.services.evaluator.enabled, service.file_config, OVERVIEW_SECONDS, blobs,
                   play_client if play.enabled and play.address else None)

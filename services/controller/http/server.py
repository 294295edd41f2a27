"""The HTTP server of the REST API, and the run's context for its requests."""

import asyncio
import logging
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from five.clients.play import PlayClient
from five.run.config import RunConfig
from five.run.config.controller import LOOPBACK, LimitsConfig
from five.services.controller.http.auth import Authenticator
from five.services.controller.http.connections import limited_protocol
from five.services.controller.http.dependencies import Context
from five.services.controller.http.host_names import HostNames
from five.services.controller.http.reverse_proxy import ReverseProxy
from five.services.controller.http.web_sockets import WebSocketProtocol
from rapid.address import join_address
from rapid.blobs import BlobStore
from rapid.listening import listen
from rapid.service import Service
from rapid.store.connection import connect
from rapid.store.parameters import ParameterStore
from rapid.store.state import RunState

log = logging.getLogger(__name__)
HEADER_BYTES = 16 << 10  # request line and headers together
GRACE_SECONDS = 3  # for responses in progress when the controller ends
SOCKET_BYTES = 8 << 10  # of a web-socket message
PING_SECONDS = 5.0  # web sockets without a pong for this time are closed, and the agent takes over their heroes
OVERVIEW_SECONDS = 0.1  # one read of the store for concurrent clients
OTHER_THREADS = 32  # of the event loop: for background loops, logins, cookies and idempotency keys
STORE_RETRIES = 1  # reopen connections that a restarted Redis has closed


class RestServer(uvicorn.Server):
    """A uvicorn server that leaves signal handling to the service's lifecycle.

    Its event loop gets up to ``threads`` threads for blocking calls.
    """

    def __init__(self, config: uvicorn.Config, threads: int) -> None:
        super().__init__(config)
        self._threads = threads

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve on the configured address until `should_exit`. Raise SystemExit when it cannot be listened on."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(self._threads, "controller"))
        if sockets is None:
            host, port = self.config.host, self.config.port
            try:
                sockets = [listen(host, port)]
            except OSError as error:
                log.error("cannot listen on %s: %s; set services.controller.host and services.controller.port",
                          join_address(host, port), error.strerror or error)
                raise SystemExit(1) from None
        await super().serve(sockets)


def create_server(app: FastAPI, limits: LimitsConfig, host: str, port: int,
                  trusted_proxies: Sequence[str] = LOOPBACK) -> RestServer:
    """Create a server for the application, without starting it. Host ``::`` is every address, IPv4 and IPv6."""
    # While the store does not respond, each open stream occupies a thread. By default there are four more than cores.
    threads = limits.streams + limits.viewers + limits.spectators + limits.players + OTHER_THREADS
    return RestServer(uvicorn.Config(
        ReverseProxy(app, app.state.context.path_prefix, trusted_proxies),
        host, port, http=limited_protocol(limits, trusted_proxies), log_level="warning", access_log=False,
        proxy_headers=False, timeout_keep_alive=limits.keep_alive_seconds,
        h11_max_incomplete_event_size=HEADER_BYTES, timeout_graceful_shutdown=GRACE_SECONDS, server_header=False,
        ws=WebSocketProtocol, ws_max_size=SOCKET_BYTES,
        ws_ping_interval=PING_SECONDS, ws_ping_timeout=PING_SECONDS, ws_per_message_deflate=False), threads)


def create_context(service: Service[RunConfig]) -> Context:
    """Return the run's context for requests.

    Its Redis connections have short timeouts, so that an unavailable store costs a request one second instead of six.
    Raise ValueError if the tokens cannot be read.
    """
    config = service.config
    limits = config.services.controller.limits
    short_timeouts = config.store.model_copy(update={"timeout_seconds": limits.store_seconds,
                                                     "reconnect_seconds": limits.store_seconds})
    state = connect(config.store.state_url, short_timeouts, "state", retries=STORE_RETRIES)
    params = connect(config.store.params_url, short_timeouts, "params", retries=STORE_RETRIES)
    blobs: BlobStore = service.blobs
    play = config.services.play

    def play_client() -> PlayClient:
        return PlayClient(play.address, config.rpc, config.name, service.caller_secret)

    return Context(config.name, RunState(state, config.name),
                   ParameterStore(params, state, config.name, short_timeouts, blobs), config.schedules,
                   Authenticator.from_config(config.services.controller, service.caller_secret), limits,
                   config.services.evaluator.enabled, service.file_config, OVERVIEW_SECONDS, blobs,
                   play_client if play.enabled and play.address else None, config.services.controller.path_prefix,
                   HostNames(config.services.controller.hosts, config.services.controller.host))

"""Open connections of the REST API: their number, how long they may be idle, and probes despite a full server.

When the server is full, the connection that has waited longest for a request is closed. If every connection is being
served, a new one gets answers to probes, and 503 for everything else. Accepting never stops.
"""

import asyncio
import logging
import resource
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from five.run.config.controller import LimitsConfig
from five.services.controller.http.client_address import UNKNOWN, TrustedNetworks, client_network
from five.services.controller.http.problems import Problem

log = logging.getLogger(__name__)
PROBES = frozenset({"/healthz", "/readyz"})  # never refused
OTHER_FILES = 512  # files of a controller that are not its clients' connections


class ConnectionTable:
    """The open connections of one server, for use in one event loop."""

    def __init__(self, limits: LimitsConfig, trusted_proxies: Sequence[str] = ()) -> None:
        self._most = limits.connections
        self._most_per_address = limits.connections_per_address
        self._trusted = TrustedNetworks(trusted_proxies)
        self._open: dict[LimitedProtocol, str] = {}  # with the address, '' for a trusted proxy
        self._idle: OrderedDict[LimitedProtocol, None] = OrderedDict()  # idle for longest first
        self._by_address: dict[str, OrderedDict[LimitedProtocol, bool]] = {}  # whether each is idle
        self._excess: set[LimitedProtocol] = set()  # opened while there were too many, and none was idle

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: "LimitedProtocol", host: str) -> None:
        """Add a connection. While there are too many, close the one that has been idle for longest."""
        address = "" if host in self._trusted else client_network(host)
        self._open[connection] = address
        self._by_address.setdefault(address, OrderedDict())[connection] = True
        while self._are_too_many(address):
            oldest = self._longest_idle(address, connection)
            if oldest is None:
                self._excess.add(connection)
                break
            self.remove(oldest)
            oldest.transport.abort()
        self._idle[connection] = None

    def _longest_idle(self, address: str, new: "LimitedProtocol") -> "LimitedProtocol | None":
        """Return the connection to close for a new one: one of its address if that has too many."""
        if self._is_full(address):
            return next((c for c, is_idle in self._by_address[address].items() if is_idle and c is not new), None)
        return next(iter(self._idle), None)

    def _is_full(self, address: str) -> bool:
        return bool(address) and len(self._by_address[address]) > self._most_per_address

    def _are_too_many(self, address: str) -> bool:
        return len(self._open) > self._most or self._is_full(address)

    def set_idle(self, connection: "LimitedProtocol", is_idle: bool) -> None:
        """Record whether a connection waits for a request."""
        if connection not in self._open or is_idle == (connection in self._idle):
            return
        mine = self._by_address[self._open[connection]]
        mine[connection] = is_idle
        if is_idle:
            self._idle[connection] = None
            mine.move_to_end(connection)
        else:
            del self._idle[connection]

    def remove(self, connection: "LimitedProtocol") -> None:
        """Remove a closed connection."""
        address = self._open.pop(connection, None)
        if address is not None:
            self._idle.pop(connection, None)
            self._excess.discard(connection)
            del self._by_address[address][connection]
            if not self._by_address[address]:
                del self._by_address[address]

    def is_excess(self, connection: "LimitedProtocol") -> bool:
        """Return whether a connection gets answers to probes only: it came when there were too many, as there still
        are."""
        return connection in self._excess and self._are_too_many(self._open[connection])


class LimitedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol with limits of time and number. `limited_protocol` binds it to a table."""

    table: ConnectionTable
    limits: LimitsConfig
    _header_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._served = self.app
        self.app = self._serve
        self.table.add(self, self.client[0] if self.client else UNKNOWN)
        self._update_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self.table.remove(self)
        self._cancel_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_timer()

    def handle_events(self) -> None:
        super().handle_events()
        self._update_idle()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._update_idle()

    def _update_idle(self) -> None:
        if self.transport.get_protocol() is not self:
            return  # a web socket
        self.table.set_idle(self, self.cycle is None or self.cycle.response_complete)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in PROBES or not self.table.is_excess(self):
            await self._served(scope, receive, send)
            return
        refusal = Problem(503, f"{len(self.table)} connections are open, the maximum is {self.limits.connections} "
                          f"(services.controller.limits.connections), of one address "
                          f"{self.limits.connections_per_address} (services.controller.limits.connections_per_address)",
                          headers={"Retry-After": "1", "Connection": "close"})
        await refusal.response(scope["path"])(scope, receive, send)

    # Web sockets: another protocol takes the connection over, which stays in the table as a served one.

    def _should_upgrade(self) -> bool:
        return not self.table.is_excess(self) and super()._should_upgrade()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._cancel_timers()
        self.table.set_idle(self, False)
        super().handle_websocket_upgrade(event)
        successor: Any = self.transport.get_protocol()
        lost = successor.connection_lost

        def connection_lost(exc: Exception | None) -> None:
            self.table.remove(self)
            lost(exc)

        successor.connection_lost = connection_lost

    # A client that does not read, and one that does not send.

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(self.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    def _update_timer(self) -> None:
        if self.conn.their_state is not h11.IDLE or self.transport.get_protocol() is not self:
            self._cancel_header_timer()
        elif self._header_timer is None:
            self._header_timer = self.loop.call_later(self.limits.header_seconds, self.transport.close)

    def _cancel_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _cancel_timers(self) -> None:
        self._cancel_header_timer()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


def limited_protocol(limits: LimitsConfig, trusted_proxies: Sequence[str] = ()) -> type[LimitedProtocol]:
    """Return the protocol of one server, with a table of its own."""
    return type("BoundProtocol", (LimitedProtocol,), {
        "table": ConnectionTable(limits, trusted_proxies), "limits": limits})


def raise_file_limit(connections: int) -> None:
    """Raise the process's limit of open files to what the connections need. Log a warning if the system refuses."""
    wanted = connections + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    except (ValueError, OSError):
        allowed = soft
    if allowed < wanted:
        log.warning("open files are limited to %d, which is not enough for %d connections: raise `ulimit -n`, or lower "
                    "services.controller.limits.connections", allowed, connections)

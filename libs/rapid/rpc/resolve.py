"""Name resolution that spreads streams over all servers behind a name.

A stream stays on one server for its whole life. With gRPC's own resolution, streams that start together would all go to
the server that responds first.
"""

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Sequence
from typing import NamedTuple

from rapid.address import join_address, split_address

log = logging.getLogger(__name__)
LOOKUP_SECONDS = 5.0


class ServerAddress(NamedTuple):
    """Address to dial, and the name in the server's certificate ('' when it is the address)."""

    address: str
    name: str = ""


async def resolve_servers(addresses: Sequence[str], previous: Sequence[ServerAddress] = ()) -> list[ServerAddress]:
    """Return every server behind the addresses (host:port each), in the same order for every caller.

    A name that cannot be resolved keeps its servers of the ``previous`` result. Without any it stays as it is; dialling
    it reports the error.
    """
    found = await asyncio.gather(*(_servers(address, previous) for address in addresses))
    return [target for targets in found for target in targets]


async def _servers(address: str, previous: Sequence[ServerAddress]) -> list[ServerAddress]:
    host, port = split_address(address)
    if not port.isdigit() or _is_literal(host):
        return [ServerAddress(address)]
    try:
        rows = await asyncio.wait_for(
            asyncio.get_running_loop().getaddrinfo(host, int(port), type=socket.SOCK_STREAM), LOOKUP_SECONDS)
    except (OSError, TimeoutError) as error:
        log.debug("name lookup failed host=%s: %s", host, error)
        return [server for server in previous if (server.name, split_address(server.address)[1]) == (host, port)] or [
            ServerAddress(address)]
    family = rows[0][0]  # the preferred family: a server may have an address of each
    ips = sorted({str(row[4][0]) for row in rows if row[0] == family})
    return [ServerAddress(join_address(ip, port), host) for ip in ips]


def _is_literal(host: str) -> bool:
    """Return whether the host needs no lookup: an address, this machine, or a name with a scheme (unix:, dns:///)."""
    if host == "localhost" or ":" in host:  # IPv6
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

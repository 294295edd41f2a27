"""Addresses of clients: who sent a request, and the networks that count as one client."""

import ipaddress
from collections.abc import Sequence
from typing import NamedTuple

from starlette.types import Scope

PEER = "five.peer"  # key of a scope: address of the connection's other end
UNKNOWN = "unknown"
IPV6_CLIENT_BITS = 64  # one subscriber has a /64 network at least


class ClientAddress(NamedTuple):
    """Sender of a request: its address or network, and ``proxy``, the trusted proxy that named it, or ''."""

    address: str
    proxy: str = ""


def without_mapping(host: str) -> str:
    """Return an IPv4 client of a dual-stack socket by its IPv4 address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or host)


def client_network(host: str) -> str:
    """Return what counts as one client: an IPv4 address, or the /64 network of an IPv6 address. Return UNKNOWN for
    anything else."""
    try:
        address = ipaddress.ip_address(without_mapping(host))
    except ValueError:
        return UNKNOWN
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((int(address), IPV6_CLIENT_BITS), strict=False))


def client_of(scope: Scope) -> ClientAddress:
    """Return the sender of a request. An invalid address in X-Forwarded-For counts as the proxy's."""
    host = (scope.get("client") or (UNKNOWN,))[0]
    peer = scope.get(PEER, host)
    address, proxy = client_network(host), client_network(peer)
    if address == UNKNOWN:
        return ClientAddress(proxy)
    return ClientAddress(address, "" if address == proxy else proxy)


class TrustedNetworks:
    """Networks of reverse proxies."""

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks = [ipaddress.ip_network(network) for network in networks]

    def __contains__(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(without_mapping(host))
        except ValueError:
            return False
        return any(address in network for network in self._networks)

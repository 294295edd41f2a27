"""Client of a request: its address, networks that count as one client, and trusted proxies."""

from typing import Any

import pytest

from five.services.controller.http.client_address import (
    PEER,
    ClientAddress,
    TrustedNetworks,
    client_network,
    client_of,
    without_mapping,
)


@pytest.mark.parametrize(("host", "expected"), [
    ("203.0.113.7", "203.0.113.7"), ("::ffff:203.0.113.7", "203.0.113.7"), ("::FFFF:203.0.113.7", "203.0.113.7"),
    ("2001:db8::7", "2001:db8::7"), ("::203.0.113.7", "::203.0.113.7"), ("unix", "unix"), ("", ""),
    ("203.0.113.256", "203.0.113.256")])
def test_ipv4_client_of_a_dual_stack_socket(host: str, expected: str) -> None:
    assert without_mapping(host) == expected


@pytest.mark.parametrize(("host", "network"), [
    ("203.0.113.7", "203.0.113.7"), ("::ffff:203.0.113.7", "203.0.113.7"), ("2001:db8::7:1", "2001:db8::/64"),
    ("2001:db8::ffff:ffff:ffff:ffff", "2001:db8::/64"), ("2001:db8:0:1::", "2001:db8:0:1::/64"),
    ("fe80::1%eth0", "fe80::/64"), ("unix", "unknown"), ("", "unknown"), ("203.0.113.7:80", "unknown")])
def test_client_is_an_address_or_a_network(host: str, network: str) -> None:
    assert client_network(host) == network


@pytest.mark.parametrize(("scope", "expected"), [
    ({"client": ("203.0.113.7", 80)}, ClientAddress("203.0.113.7")),
    ({"client": ("203.0.113.7", 80), PEER: "203.0.113.7"}, ClientAddress("203.0.113.7")),
    ({"client": ("203.0.113.7", 80), PEER: "10.0.0.1"}, ClientAddress("203.0.113.7", "10.0.0.1")),
    ({"client": ("2001:db8::1", 80), PEER: "2001:db8::2"}, ClientAddress("2001:db8::/64")),
    ({"client": ("x" * 9, 80), PEER: "10.0.0.1"}, ClientAddress("10.0.0.1")),
    ({"client": ("", 0)}, ClientAddress("unknown")), ({"client": None}, ClientAddress("unknown")),
    ({}, ClientAddress("unknown")), ({PEER: "10.0.0.1"}, ClientAddress("10.0.0.1"))])
def test_sender_of_a_request(scope: dict[str, Any], expected: ClientAddress) -> None:
    """Accept the client that a proxy names only if it is an address."""
    assert client_of(scope) == expected


@pytest.mark.parametrize(("host", "trusted"), [
    ("127.0.0.1", True), ("127.9.9.9", True), ("::ffff:127.0.0.1", True), ("::1", True), ("10.1.255.255", True),
    ("10.2.0.0", False), ("::2", False), ("203.0.113.7", False), ("unix", False), ("", False)])
def test_trusted_networks_are_exact(host: str, trusted: bool) -> None:
    assert (host in TrustedNetworks(["127.0.0.0/8", "::1", "10.1.0.0/16"])) is trusted
    assert host not in TrustedNetworks([])

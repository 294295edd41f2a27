"""Addresses as text."""

import pytest

from rapid.address import join_address, split_address


@pytest.mark.parametrize(("host", "port", "address"), [
    ("127.0.0.1", "80", "127.0.0.1:80"), ("five-inference", "50051", "five-inference:50051"), ("::1", "80", "[::1]:80"),
    ("fd00::7", "9100", "[fd00::7]:9100")])
def test_address_is_split_as_it_was_joined(host: str, port: str, address: str) -> None:
    assert join_address(host, int(port)) == address
    assert split_address(address) == (host, port)


def test_missing_parts_are_empty() -> None:
    assert split_address("host") == ("host", "")
    assert split_address("[::1]") == ("::1", "") == split_address("::1")
    assert split_address("") == ("", "")
    assert join_address("[::1]", 1) == "[::1]:1"

"""Addresses of services in the configuration."""

import pytest

from five.run.config.address import check_address


@pytest.mark.parametrize("address", ["", "127.0.0.1:50051", "five-inference:50051", "[::1]:50051", "[fd00::7]:1"])
def test_valid_addresses(address: str) -> None:
    assert check_address(address) == address


@pytest.mark.parametrize(("address", "why"), [
    ("::1:50051", "brackets"), ("fd00::7:1", "brackets"), ("[::1]", "from 1 to 65535"), ("host", "from 1 to 65535"),
    ("host:0", "from 1 to 65535"), ("user@host:1", "without a user")])
def test_invalid_addresses(address: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_address(address)

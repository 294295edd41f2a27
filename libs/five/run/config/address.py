"""The type of a service's address."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator


def check_address(address: str) -> str:
    """Return the address. Raises ValueError for one that is neither empty nor ends with a port."""
    host, _, port = address.rpartition(":")
    if address and not (host and port.isascii() and port.isdigit() and 0 < int(port) <= 65535):
        raise ValueError("expected host:port with a port from 1 to 65535")
    if "@" in host:
        raise ValueError("expected host:port without a user")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError("expected host:port with an IPv6 host in brackets, such as [::1]:50051")
    return address


def own_port(addresses: Sequence[str]) -> int:
    """Return the port of the only address; 0 (any free port) if there are several or none."""
    return int(addresses[0].rpartition(":")[2]) if len(addresses) == 1 else 0


Address = Annotated[str, AfterValidator(check_address)]

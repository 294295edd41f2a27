"""Network addresses as text: host:port, with an IPv6 host in brackets."""

ANY_ADDRESS = frozenset({"", "0.0.0.0", "::"})  # hosts of a server that listens on every interface


def join_address(host: str, port: int | str) -> str:
    """Return host:port. An IPv6 address gets brackets, which URLs and gRPC need."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def split_address(address: str) -> tuple[str, str]:
    """Return the host, without brackets, and the port; '' for a missing part.

    An IPv6 address without brackets has no port.
    """
    if address.startswith("["):
        host, _, rest = address[1:].partition("]")
        return host, rest.removeprefix(":")
    if address.count(":") > 1:
        return address, ""
    host, _, port = address.partition(":")
    return host, port

"""Listening sockets for IPv4 and IPv6."""

import errno
import socket

from rapid.address import join_address

BACKLOG = 128
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


def listen(host: str, port: int, backlog: int = BACKLOG) -> socket.socket:
    """Return a TCP socket that listens on the host's first address; port 0 is any free one.

    ``::`` means every address of the machine, IPv4 and IPv6. On a machine without IPv6 it is every IPv4 address.
    Raises OSError.
    """
    if host == "::":
        try:
            return _listen(socket.AF_INET6, (host, port), backlog, dual=True)
        except OSError as error:
            if error.errno not in _NO_IPV6:
                raise
            host = "0.0.0.0"
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise OSError(f"{join_address(host, port)}: {error.strerror}") from None
    family, _, _, _, address = found[0]
    return _listen(family, address, backlog)


def _listen(family: int, address: tuple[object, ...], backlog: int, dual: bool = False) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not dual))
        listener.bind(address)
        listener.listen(backlog)
    except BaseException:
        listener.close()
        raise
    return listener

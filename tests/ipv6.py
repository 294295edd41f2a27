"""Whether this machine has an IPv6 loopback, for tests that need one."""

import socket

import pytest


def has_loopback() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


needs_loopback = pytest.mark.skipif(not has_loopback(), reason="this machine has no IPv6 address ::1")

"""Check of the Host header, against DNS rebinding.

A page of another site can make its own name resolve to this controller. Its requests then have the same origin as the
console, but its name in Host. Addresses are safe: no foreign site has this controller's address.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from five.services.controller.http.problems import Problem

LOCAL = "localhost"


class HostNames:
    """Names under which the controller may be reached: ``configured`` ones, localhost, and the one it listens on."""

    def __init__(self, configured: Sequence[str] = (), bound: str = "") -> None:
        self.configured = bool(configured)
        self._names = frozenset({LOCAL, bound.lower(), *configured} - {""})

    def require(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raise Problem 421 for a Host that is neither an address nor one of the names."""
        hosts = [value.decode("latin-1") for key, value in headers if key == b"host"]
        if len(hosts) != 1 or not self._is_allowed(hosts[0]):
            shown = ", ".join(map(repr, hosts)) or "none"
            raise Problem(421, f"Host {shown}: allowed are addresses and {', '.join(sorted(self._names))}; "
                          "services.controller.hosts adds names")

    def _is_allowed(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        name = name.removesuffix(".")
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return True

"""Name service of one name, whose servers tests change."""

import socket
from typing import Any


class Names:
    """Name service with changeable addresses of ``five-inference``."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self._system = socket.getaddrinfo

    def look_up(self, host: Any, port: Any, *arguments: Any, **named: Any) -> Any:
        if host != "five-inference":
            return self._system(host, port, *arguments, **named)
        if not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET6 if ":" in a else socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port))
                for a in self.addresses]

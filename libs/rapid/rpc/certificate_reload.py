"""Reloading of changed certificates: servers at each handshake, clients for new calls."""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import grpc
import grpc.aio

from rapid.config import TlsConfig
from rapid.file_stamp import FileStamp, file_stamp

log = logging.getLogger(__name__)
CHECK_SECONDS = 1.0  # between two checks of the files
OLD_CHANNEL_SECONDS = 3600.0  # for calls on an old connection to end
T = TypeVar("T")


class FileWatcher:
    """Detector of changed files. Empty paths are ignored."""

    def __init__(self, *paths: str) -> None:
        self._paths = [Path(path).expanduser() for path in paths if path]
        self._seen = self._file_stamps()
        self._checked_at = time.monotonic()
        self._error = ""

    def _file_stamps(self) -> tuple[FileStamp, ...] | None:
        try:
            return tuple(file_stamp(path) for path in self._paths)
        except OSError:
            return None  # the file is being replaced

    def changed(self) -> bool:
        """Return whether the files have changed since the last call that returned true. Check at most once in
        CHECK_SECONDS."""
        now = time.monotonic()
        if now - self._checked_at < CHECK_SECONDS:
            return False
        self._checked_at = now
        seen = self._file_stamps()
        if seen is None or seen == self._seen:
            return False
        self._seen = seen
        return True

    def reload(self, read: Callable[[], T], unusable: str) -> T | None:
        """Return the result of ``read`` if the files have changed, else None.

        A failed read (ValueError) is repeated at the next check, because chmod does not change a file. The line
        ``unusable`` is logged once for each error.
        """
        if not self.changed():
            return None
        try:
            found = read()
        except ValueError as error:
            self._seen = None
            if str(error) != self._error:
                self._error = str(error)
                log.error("%s, keeping the previous one: %s", unusable, error)
            return None
        self._error = ""
        return found


def tls_files_error(tls: TlsConfig) -> str:
    """Return what is wrong with the files of a TLS setup, such as a key that does not match; '' when they are usable.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    files = f"rpc.tls.authority {tls.authority}"
    try:
        if tls.authority:
            context.load_verify_locations(tls.authority)
        files = f"rpc.tls.certificate {tls.certificate} and rpc.tls.key {tls.key}"
        if tls.certificate:
            context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ValueError) as error:
        return f"{files}: {error}"
    return ""


class CertificateReloader:
    """Detector of new, usable certificate files. Files that do not match change nothing."""

    def __init__(self, tls: TlsConfig, who: str) -> None:
        self._tls = tls
        self._files = FileWatcher(tls.authority, tls.certificate, tls.key)
        self._who = who

    def due(self) -> bool:
        """Return whether there are new files that can be used."""
        def check() -> bool:
            if trouble := tls_files_error(self._tls):
                raise ValueError(trouble)
            return True

        if not self._files.reload(check, f"{self._who}: a new certificate is unusable"):
            return False
        log.info("%s: certificates reloaded", self._who)
        return True


class _Method:
    """A stub's method, called on the current connection."""

    def __init__(self, channel: "ReloadingChannel", kind: str, arguments: tuple[Any, ...],
                 options: dict[str, Any]) -> None:
        self._channel = channel
        self._make = (kind, arguments, options)
        self._of: grpc.aio.Channel | None = None
        self._call: Any = None

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        channel = self._channel.current()
        if channel is not self._of:
            kind, given, more = self._make
            self._call = getattr(channel, kind)(*given, **more)
            self._of = channel
        return self._call(*arguments, **options)


class ReloadingChannel(grpc.aio.Channel):
    """A channel whose new calls use a new connection after its certificates change. Calls in progress stay on the old
    one."""

    def __init__(self, make: Callable[[], grpc.aio.Channel], reloader: CertificateReloader) -> None:
        self._make = make
        self._reloader = reloader
        self._now = make()
        self._closing: set[asyncio.Task[None]] = set()  # of old connections

    def current(self) -> grpc.aio.Channel:
        """Return the connection for new calls."""
        if self._reloader.due():
            before, self._now = self._now, self._make()
            task = asyncio.get_running_loop().create_task(before.close(OLD_CHANNEL_SECONDS))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        return self._now

    def unary_unary(self, *arguments: Any, **options: Any) -> Any:
        return _Method(self, "unary_unary", arguments, options)

    def unary_stream(self, *arguments: Any, **options: Any) -> Any:
        return _Method(self, "unary_stream", arguments, options)

    def stream_unary(self, *arguments: Any, **options: Any) -> Any:
        return _Method(self, "stream_unary", arguments, options)

    def stream_stream(self, *arguments: Any, **options: Any) -> Any:
        return _Method(self, "stream_stream", arguments, options)

    async def close(self, grace: float | None = None) -> None:
        for task in tuple(self._closing):
            task.cancel()
        await asyncio.gather(self._now.close(grace), *self._closing, return_exceptions=True)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        return self._now.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._now.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self.current().channel_ready()

    async def __aenter__(self) -> "ReloadingChannel":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

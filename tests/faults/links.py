"""TCP proxy between two processes that a test can hold, slow down or cut."""

import socket
import threading
import time
from contextlib import suppress

SLOW_SECONDS = 0.15  # delay of each piece in either direction
SLOW_PIECE = 64 << 10
PIECE = 256 << 10
HARMS = ("partition", "slow peer")


class Link:
    """Proxy to ``target``, host:port or a unix socket's path. Attribute ``address``: its listen address.

    ``partition`` accepts connections and passes nothing, like a network that drops every packet. ``slow`` delays each
    64 KiB by 150 ms. ``open`` passes everything, also what was held.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._open = threading.Event()
        self._open.set()
        self._slow = False
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def partition(self) -> None:
        """Pass nothing from now on."""
        self._open.clear()

    def slow(self) -> None:
        """Delay everything."""
        self._slow = True
        self._open.set()

    def open(self) -> None:
        """Pass everything."""
        self._slow = False
        self._open.set()

    def close(self) -> None:
        """Close the proxy."""
        self._closed = True
        self._open.set()
        self._listener.close()

    def _connect(self) -> socket.socket:
        if self._target.startswith("/"):
            there = socket.socket(socket.AF_UNIX)
            there.connect(self._target)
            return there
        host, _, port = self._target.rpartition(":")
        return socket.create_connection((host, int(port)), 5)

    def _accept(self) -> None:
        while not self._closed:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(here,), daemon=True).start()

    def _serve(self, here: socket.socket) -> None:
        self._open.wait()
        try:
            there = self._connect()
        except OSError:
            here.close()
            return
        for one in (here, there):
            with suppress(OSError):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=self._pass, args=(there, here), daemon=True)
        back.start()
        self._pass(here, there)
        back.join()
        here.close()
        there.close()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while piece := source.recv(SLOW_PIECE if self._slow else PIECE):
                if self._slow:
                    time.sleep(SLOW_SECONDS)
                self._open.wait()
                sink.sendall(piece)
        except OSError:
            pass
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

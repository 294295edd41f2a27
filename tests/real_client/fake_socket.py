"""World-state port of the fake client: accepts one connection at a time, as the real one does."""

import socket
import struct
import threading
from contextlib import suppress

CUT_BYTES = 65_536


class WorldStatePort:
    """Sends framed world states to its connection."""

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", port))
        self._connection: socket.socket | None = None
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def is_connected(self) -> bool:
        """Return whether somebody receives the world states."""
        return self._connection is not None

    def send(self, payload: bytes, cut: bool = False) -> None:
        """Send a world state; with ``cut`` only its first 65,536 bytes."""
        self._send(struct.pack("<I", len(payload)) + payload[:CUT_BYTES if cut else None])

    def send_half(self, payload: bytes) -> None:
        """Send half of a world state and end the connection."""
        self._send((struct.pack("<I", len(payload)) + payload)[:len(payload) // 2])
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _send(self, data: bytes) -> None:
        with self._lock:
            if self._connection is not None:
                try:
                    self._connection.sendall(data)
                except OSError:
                    self._connection.close()
                    self._connection = None

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with self._lock:
                    if self._connection is None:
                        self._connection = connection
                    else:
                        connection.close()

"""Server of one world-state port that sends what a test gives it."""

import socket
import threading


class FrameServer:
    """Listens on a free port and accepts one connection after the other."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._connection: socket.socket | None = None
        self._connected = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def send(self, data: bytes) -> None:
        """Send bytes on the current connection, waiting for one."""
        assert self._connected.wait(60) and self._connection is not None
        self._connection.sendall(data)

    def disconnect(self) -> None:
        """End the current connection."""
        assert self._connected.wait(60) and self._connection is not None
        self._connected.clear()
        self._connection.close()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
        if self._connection is not None:
            self._connection.close()

    def _accept(self) -> None:
        while True:
            try:
                self._connection, _ = self._listener.accept()
            except OSError:
                return
            self._connected.set()

"""Reader of a team's world-state socket, on a thread of its own.

The client listens for one connection a team once a game is hosted (Passerby/dota2-env, client 6933 of September 2026);
the reader connects again and again until it does, and after each loss of the connection.
"""

import queue
import socket
import threading
import time
from contextlib import suppress

from five.real_client.frames import Frame, FrameDecoder

HOST = "127.0.0.1"
_RECEIVE_BYTES = 1 << 20
_SILENCE_SECONDS = 0.25  # after which an unfinished frame counts as cut: a client on this host sends a frame in one go
_RETRY_SECONDS = 0.1
_MOST_FRAMES = 4096  # a minute of frames at the highest rate


class WorldStateReader:
    """Reads frames from a port until it is closed.

    Attributes:
        decoder: its counts of cut frames and skipped bytes.
        connections: connections so far.
    """

    def __init__(self, port: int, team: int, arrived: threading.Event | None = None, host: str = HOST) -> None:
        self._address = (host, port)
        self._arrived = arrived or threading.Event()  # set with each frame
        self._team = team
        self._frames: queue.Queue[Frame] = queue.Queue(_MOST_FRAMES)
        self._stopped = threading.Event()
        self._socket: socket.socket | None = None
        self.decoder = FrameDecoder()
        self.connections = 0
        self._thread = threading.Thread(target=self._run, name=f"world-states-{team}", daemon=True)
        self._thread.start()

    def receive(self, seconds: float) -> list[Frame]:
        """Return the frames since the last call, oldest first, waiting for one at most ``seconds``."""
        frames = []
        with suppress(queue.Empty):
            frames.append(self._frames.get(timeout=seconds) if seconds > 0 else self._frames.get_nowait())
            while True:
                frames.append(self._frames.get_nowait())
        return frames

    def close(self) -> None:
        """Close the connection and end the thread."""
        self._stopped.set()
        connection = self._socket
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                with socket.create_connection(self._address, timeout=1.0) as connection:
                    self._socket = connection
                    self.connections += 1
                    self._read(connection)
            except OSError:
                pass
            self._socket = None
            self.decoder.reset()
            self._stopped.wait(_RETRY_SECONDS)

    def _read(self, connection: socket.socket) -> None:
        """Read frames until the connection ends."""
        connection.settimeout(_SILENCE_SECONDS)
        while not self._stopped.is_set():
            try:
                data = connection.recv(_RECEIVE_BYTES)
            except TimeoutError:
                frame = self.decoder.flush()
                self._deliver([frame] if frame else [])
                continue
            if not data:
                return
            self._deliver(self.decoder.feed(data))

    def _deliver(self, frames: list[Frame]) -> None:
        """Queue frames of the team, waiting for space."""
        for frame in frames:
            while frame.team == self._team and not self._stopped.is_set():
                with suppress(queue.Full):
                    self._frames.put(frame, timeout=0.5)
                    self._arrived.set()
                    break


def is_port_used(port: int, host: str = HOST) -> bool:
    """Return whether something listens on a port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0


def wait_until_free(ports: tuple[int, ...], seconds: float) -> tuple[int, ...]:
    """Wait until nothing listens on the ports; return those that stay used."""
    ends = time.monotonic() + seconds
    while used := tuple(port for port in ports if is_port_used(port)):
        if time.monotonic() >= ends:
            return used
        time.sleep(_RETRY_SECONDS)
    return ()

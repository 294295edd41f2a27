"""Output of `five train`. A closed terminal, a stopped reader or a full disk costs text, and never the training."""

import errno
import logging
import os
import queue
import sys
import threading
from typing import Any, TextIO

from rich.console import Console
from rich.live import Live

log = logging.getLogger(__name__)

QUEUED_WRITES = 1000  # writes that may wait for a reader; more are dropped
CLOSE_SECONDS = 2.0
_CLOSED = (errno.EPIPE, errno.EIO, errno.EBADF, errno.ENXIO)


class TolerantStream:
    """Text stream to an open file whose methods neither fail nor wait.

    A thread writes, so that a reader that stops reading delays nothing. Text that cannot be written is dropped. A
    terminal or pipe that was closed receives nothing more; any other error, such as of a full disk, may pass.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._fd = -1
        self.encoding = getattr(stream, "encoding", None) or "utf-8"
        self._is_terminal = False
        try:
            if stream is not None:
                self._fd, self._is_terminal = stream.fileno(), stream.isatty()
        except (OSError, ValueError):
            pass  # it was closed before
        self._writes: queue.Queue[bytes | None] = queue.Queue(QUEUED_WRITES)
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="output", daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        """Queue text to be written."""
        try:
            self._writes.put_nowait(text.encode(self.encoding, "replace"))
        except queue.Full:
            pass
        return len(text)

    def flush(self) -> None:
        """Do nothing: text is written at once."""

    def isatty(self) -> bool:
        """Return whether the file is a terminal."""
        return self._is_terminal

    def fileno(self) -> int:
        """Return the file's descriptor."""
        return self._fd

    def close(self) -> None:
        """Write what is queued, for a short time at most."""
        try:
            self._writes.put(None, timeout=CLOSE_SECONDS)
        except queue.Full:
            return
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while (data := self._writes.get()) is not None:
            try:
                while data and self._fd >= 0:
                    data = data[os.write(self._fd, data):]
                self._failing = False
            except OSError as error:
                if error.errno in _CLOSED:
                    self._fd = -1
                    log.info("the terminal is closed (%s); training continues, `five stop` ends it", error.strerror)
                elif not self._failing:
                    log.info("output is dropped: %s", error.strerror)
                self._failing = True


class Terminal:
    """Lines and a live panel on standard output. As a context it closes the output at its end."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = TolerantStream(sys.stdout if stream is None else stream)
        self._console = Console(file=self._stream, highlight=False, emoji=False)  # type: ignore[arg-type]
        self._live: Live | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the output is a terminal that can redraw a panel. FORCE_COLOR makes no terminal of a file."""
        return self._stream.isatty() and not self._console.is_dumb_terminal

    def say(self, text: str, style: str | None = None, markup: bool = False) -> None:
        """Print text. It is never wrapped, so that links stay whole."""
        self._console.print(text, style=style, markup=markup, soft_wrap=True)

    def show(self, panel: Any) -> None:
        """Draw the panel below all lines, replacing the previous one."""
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(panel, refresh=True)

    def hide(self) -> None:
        """Remove the panel."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.hide()
        self._stream.close()


class TerminalHandler(logging.Handler):
    """Handler of log records that prints them on a terminal."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(logging.WARNING)
        self._terminal = terminal

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record's message."""
        try:
            self._terminal.say(record.getMessage(), "yellow")
        except Exception:
            self.handleError(record)

"""Ctrl-C and SIGTERM of `five train` and `five play --agent`."""

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def default_action() -> Iterator[None]:
    """Let SIGINT end the process at once within this block. Use it for imports, which may swallow KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


class Interruption:
    """Handler of SIGINT and SIGTERM while it is entered as a context in the main thread.

    The first signal asks for the end: within `raising` it raises KeyboardInterrupt with the signal's number, elsewhere
    it ends `wait`. A second one asks to hurry. ``number`` is the first signal, None before it. ``others``: further
    signals that are handled unless the process ignores them, as SIGHUP under nohup.
    """

    def __init__(self, *others: signal.Signals) -> None:
        self._signals = (*_SIGNALS, *(s for s in others if signal.getsignal(s) is not signal.SIG_IGN))
        self.number: signal.Signals | None = None
        self._hurried = False
        self._raising = False
        # A pipe instead of an Event: a handler must not take a lock that the thread under it may hold.
        self._read, self._write = os.pipe()

    def hurried(self) -> bool:
        """Return whether a second signal has come."""
        return self._hurried

    def wait(self, seconds: float) -> bool:
        """Wait for a signal, ``seconds`` at most. Return whether there was one."""
        if self.number is None:
            select.select([self._read], [], [], seconds)
        return self.number is not None

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise KeyboardInterrupt in this block at the first signal, and at once if it has come before.

        It is raised again at the end of the block, because callbacks and destructors swallow exceptions.
        """
        self._raising = True
        try:
            self._raise_received()
            yield
        finally:
            self._raising = False
        self._raise_received()

    def _raise_received(self) -> None:
        if self.number is not None:
            raise KeyboardInterrupt(self.number)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None:
            self._hurried = True
            return
        self.number = signal.Signals(number)
        os.write(self._write, b"!")
        if self._raising:
            self._raising = False
            self._raise_received()

    def __enter__(self) -> Self:
        self._previous = {number: signal.signal(number, self._receive) for number in self._signals}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        for number, handler in self._previous.items():
            # After a signal the process ends; another one must not disturb that.
            signal.signal(number, handler if self.number is None else signal.SIG_IGN)
        os.close(self._read)
        os.close(self._write)

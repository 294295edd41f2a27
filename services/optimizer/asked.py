"""Checkpoints that are asked for on other threads than the one that learns."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager


class AskedCheckpoints:
    """Who waits for a checkpoint; true while somebody does."""

    def __init__(self) -> None:
        self._waiting: deque[Future[int]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def wait(self, timeout: float) -> int:
        """Asks for a checkpoint and waits until it is written; returns its version. Raises TimeoutError, or what went
        wrong with the saving."""
        asked: Future[int] = Future()
        self._waiting.append(asked)
        return asked.result(timeout)

    def take(self) -> list[Future[int]]:
        """All who wait: the checkpoint that is written now is theirs."""
        return [self._waiting.popleft() for _ in range(len(self._waiting))]


@contextmanager
def told(asked: list[Future[int]]) -> Iterator[None]:
    """What goes wrong with a checkpoint is told to who asked for it, and to nobody else."""
    try:
        yield
    except Exception as error:
        for waiting in asked:
            waiting.set_exception(error)


def answering(asked: list[Future[int]], version: int, write: Callable[[], None]) -> Callable[[], None]:
    """What writes the checkpoint of ``version``, and tells who asked for it of the end."""
    def task() -> None:
        with told(asked):
            write()
            for waiting in asked:
                waiting.set_result(version)

    return task

"""Work beside learning: one task at a time, on a thread of its own, tried again while a store is away."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

log = logging.getLogger(__name__)
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # seconds between tries


class Beside:
    """At most one task is under way, so that what tasks write is written in order and one copy of the parameters is
    enough. What a task raises is raised by the next call of `begin`, `settle` or `look`.

    A task that fails for something of which ``away`` says that it passes (a store is away, a disk is full) is begun
    again, however long that takes; it must be safe to repeat. ``trouble`` says meanwhile what is wrong.
    """

    def __init__(self, away: Callable[[Exception], bool] = lambda error: False, name: str = "beside-learning") -> None:
        self._away = away
        self._pool = ThreadPoolExecutor(1, name)
        self._under_way: Future[None] | None = None
        self._last_try = threading.Event()
        self.trouble = ""

    @property
    def idle(self) -> bool:
        """Whether no task is under way."""
        return self._under_way is None or self._under_way.done()

    def begin(self, task: Callable[[], None]) -> None:
        """Starts a task once the one before has ended."""
        self.settle()
        self._last_try.clear()
        self._under_way = self._pool.submit(self._until_done, task)

    def last_try(self) -> None:
        """Has the task under way not begun again any more if it fails."""
        self._last_try.set()

    def settle(self) -> None:
        """Waits until no task is under way."""
        ended, self._under_way = self._under_way, None
        if ended is not None:
            ended.result()

    def look(self) -> None:
        """Raises what a task that has ended raised; never waits."""
        if self._under_way is not None and self._under_way.done():
            self.settle()

    def _until_done(self, task: Callable[[], None]) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                task()
            except Exception as error:
                if not self._away(error) or self._last_try.is_set():
                    self.trouble = ""
                    raise
                self.trouble = f"{type(error).__name__}: {error}"
                log.warning("a store refuses writes, trying again: %s", self.trouble)
            else:
                self.trouble = ""
                return
            self._last_try.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

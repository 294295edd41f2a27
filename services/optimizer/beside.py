"""Work beside learning: one task at a time, on a thread of its own."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class Beside:
    """At most one task is under way, so that what tasks write is written in order and one copy of the parameters is
    enough. What a task raises is raised by the next call of `begin`, `settle` or `look`."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "beside-learning")
        self._under_way: Future[None] | None = None

    @property
    def idle(self) -> bool:
        """Whether no task is under way."""
        return self._under_way is None or self._under_way.done()

    def begin(self, task: Callable[[], None]) -> None:
        """Starts a task once the one before has ended."""
        self.settle()
        self._under_way = self._pool.submit(task)

    def settle(self) -> None:
        """Waits until no task is under way."""
        ended, self._under_way = self._under_way, None
        if ended is not None:
            ended.result()

    def look(self) -> None:
        """Raises what a task that has ended raised; never waits."""
        if self._under_way is not None and self._under_way.done():
            self.settle()

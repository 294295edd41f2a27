"""What the first rank writes beside learning: versions, each out before the next one is made, and checkpoints, which
may take as long as several versions do."""

from collections.abc import Callable

from five.services.optimizer.background_writer import Beside

Task = Callable[[], None]


class Writing:
    """Versions and checkpoints on their way, at most one of each. To be used on the thread that learns, which waits for
    no checkpoint; what a task raises is raised there.

    A version's checkpoint is begun once the version is out, so that the games have it first.
    """

    def __init__(self, away: Callable[[Exception], bool]) -> None:
        self._versions = Beside(away, "publishing")
        self._checkpoints = Beside(away, "saving")
        self._waits: Task | None = None  # a checkpoint, for its version to be out

    @property
    def idle(self) -> bool:
        """Whether everything is written."""
        return self._versions.idle and self.saved

    @property
    def saved(self) -> bool:
        """Whether no checkpoint is on its way."""
        return self._waits is None and self._checkpoints.idle

    @property
    def obstacle(self) -> str:
        """Why no further version may be made; '' where one may. The one before has to be out. A checkpoint may take its
        time, but one that cannot be written is no checkpoint: what is learned meanwhile would be lost with the process.
        """
        if not self._versions.idle:
            return ": ".join(filter(None, ("the version before is not written yet", self._versions.trouble)))
        if not self._checkpoints.idle and self._checkpoints.trouble:
            return f"the checkpoint on its way is not written yet: {self._checkpoints.trouble}"
        return ""

    def version(self, publish: Task, save: Task | None = None) -> None:
        """Begins to write a version once the one before is out; then its checkpoint, which may be given where the last
        one is `saved`."""
        assert save is None or self.saved
        self._versions.begin(publish)
        self._waits = save or self._waits

    def checkpoint(self, save: Task) -> None:
        """Begins to write a checkpoint once everything before it is written."""
        self.settle()
        self._checkpoints.begin(save)

    def look(self) -> None:
        """Raises what a task that has ended raised, and begins the checkpoint of a version that is out; never waits."""
        self._versions.look()
        self._checkpoints.look()
        if self._waits is not None and self._versions.idle:
            save, self._waits = self._waits, None
            self._checkpoints.begin(save)

    def out(self) -> None:
        """Waits until no version is on its way."""
        self._versions.settle()

    def settle(self) -> None:
        """Waits until everything is written."""
        self._versions.settle()
        self.look()
        self._checkpoints.settle()

    def end(self) -> None:
        """Waits until nothing is on its way; what fails now is not begun again, and a checkpoint that was not begun is
        not written: the last one comes after it."""
        self._waits = None
        both = self._versions, self._checkpoints
        for beside in both:
            beside.last_try()
        try:
            self._versions.settle()
        finally:
            self._checkpoints.settle()

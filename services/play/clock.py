"""The clock of a game that people play: engine frames at 30 a second of real time."""

FRAME_SECONDS = 1.0 / 30.0
MOST_BEHIND = 4  # frames that are made up for back to back, one timestep; what is later than that stays late


class FrameClock:
    """When each engine frame is due, in seconds of a monotonic clock.

    Frames are due at whole multiples of 1/30 s from the start, so that nothing adds up. A frame that begins late is
    counted in ``late``, and those behind it follow at once until the clock is caught up; but never more than
    MOST_BEHIND of them: people would see a burst that no one could have reacted to. What is behind by more is left out
    of the reckoning (``slipped``, in seconds), and the game goes on at its pace from there.
    """

    def __init__(self, now: float) -> None:
        self._start = now
        self._frames = 0
        self.late = 0
        self.slipped = 0.0

    @property
    def due(self) -> float:
        """When the next frame is due."""
        return self._start + self._frames * FRAME_SECONDS

    def begin(self, now: float) -> float:
        """The next frame begins; by how many seconds it is late, 0 when it is not."""
        behind = now - self.due
        if behind > MOST_BEHIND * FRAME_SECONDS:
            excess = behind - MOST_BEHIND * FRAME_SECONDS
            self._start += excess
            self.slipped += excess
        self._frames += 1
        if behind > FRAME_SECONDS:
            self.late += 1
        return max(behind, 0.0)

    def stand_still(self, now: float) -> None:
        """The game was held: the next frame is due now, and none was missed."""
        self._start = now - self._frames * FRAME_SECONDS

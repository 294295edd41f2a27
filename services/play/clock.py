"""Clock of a played game: 30 engine frames a second in real time."""

FRAME_SECONDS = 1.0 / 30.0
MOST_BEHIND = 4  # frames that are made up for back to back, one timestep; what is later than that stays late


class FrameClock:
    """Due time of each engine frame, in seconds of a monotonic clock.

    Frames are due at whole multiples of 1/30 s from the start, so that errors do not accumulate. A late frame is
    counted in ``late``; following frames run immediately until the clock has caught up, at most MOST_BEHIND of them,
    because people cannot react to a longer burst. The remaining lag is added to ``slipped``, in seconds, and the game
    continues from there.
    """

    def __init__(self, now: float) -> None:
        self._start = now
        self._frames = 0
        self.late = 0
        self.slipped = 0.0

    @property
    def due(self) -> float:
        """Return the due time of the next frame."""
        return self._start + self._frames * FRAME_SECONDS

    def begin(self, now: float) -> float:
        """Begin the next frame; return its lateness in seconds, 0 if it is on time."""
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
        """Restart the schedule after the game was held: the next frame is due now, and no frame was missed."""
        self._start = now - self._frames * FRAME_SECONDS

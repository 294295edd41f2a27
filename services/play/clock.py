"""Clock of a game with people: 30 engine frames a second in real time."""

FRAME_SECONDS = 1.0 / 30.0
MAX_CATCH_UP = 4  # late frames (one timestep) that are run back to back; a longer delay is kept as lag


class FrameClock:
    """Due time of each engine frame, in seconds of a monotonic clock.

    Frames are due at whole multiples of 1/30 s from the start, so that errors do not accumulate. A late frame is
    counted in ``late``; following frames run immediately until the clock has caught up, at most MAX_CATCH_UP of them,
    because people cannot react to a longer burst. The remaining delay is added to ``lag``, in seconds, and the game
    continues from there.
    """

    def __init__(self, now: float) -> None:
        self._start = now
        self._frames = 0
        self.late = 0
        self.lag = 0.0

    @property
    def due(self) -> float:
        """Return the due time of the next frame."""
        return self._start + self._frames * FRAME_SECONDS

    def begin(self, now: float) -> float:
        """Begin the next frame; return its lateness in seconds, 0 if it is on time."""
        behind = now - self.due
        if behind > MAX_CATCH_UP * FRAME_SECONDS:
            excess = behind - MAX_CATCH_UP * FRAME_SECONDS
            self._start += excess
            self.lag += excess
        self._frames += 1
        if behind > FRAME_SECONDS:
            self.late += 1
        return max(behind, 0.0)

    def resume(self, now: float) -> None:
        """Restart the schedule after a pause: the next frame is due now, and no frame is late."""
        self._start = now - self._frames * FRAME_SECONDS

"""Delayed broadcast of a whole game for spectators, so that they cannot inform players."""

from collections import deque
from dataclasses import dataclass

from dota.spectator.chunks import CHUNK_STEPS
from five.services.play.outbox import Outbox
from five.services.play.views import View, message_of

KEYFRAME_EVERY = CHUNK_STEPS  # 4 s: who comes has to wait for one. A recording begins its chunks with the same ones


@dataclass
class _Step:
    at: float
    whole: bytes  # b"": none was made
    change: bytes


class Broadcast:
    """Buffer that sends each timestep's step after ``delay`` seconds.

    Every KEYFRAME_EVERY steps it keeps a keyframe, at which new spectators start; other steps are differences.
    """

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self._steps: deque[_Step] = deque()
        self._made = 0
        self._new: list[Outbox] = []  # they wait for a keyframe
        self._outboxes: list[Outbox] = []

    @property
    def waits(self) -> bool:
        """Return whether unsent steps remain."""
        return bool(self._steps)

    def show(self, view: View, now: float) -> None:
        """Add the whole game after a timestep, at ``now`` seconds, and send the steps that are old enough."""
        keyed = self._made % KEYFRAME_EVERY == 0
        whole = message_of(view.engine_frame, True, view.keyframe(), view.events) if keyed else b""
        self._made += 1
        self._steps.append(_Step(now, whole, message_of(view.engine_frame, False, view.changes(), view.events)))
        self.send(now)

    def send(self, now: float) -> None:
        """Send the steps older than the delay."""
        while self._steps and now - self._steps[0].at >= self.delay:
            step = self._steps.popleft()
            self._outboxes = [outbox for outbox in self._outboxes if not outbox.ended]
            # Who reads too slowly begins again with the next keyframe.
            for outbox in [outbox for outbox in self._outboxes if outbox.behind]:
                self._outboxes.remove(outbox)
                self._new.append(outbox)
            if step.whole:
                for outbox in self._new:
                    outbox.drop_frames()
                    outbox.show_message(step.whole)
            for outbox in self._outboxes:
                outbox.show_message(step.change)
            if step.whole:
                self._outboxes += self._new
                self._new = []

    def enter(self, outbox: Outbox) -> None:
        """Add a spectator, starting at the next keyframe."""
        self._new.append(outbox)

    def leave(self, outbox: Outbox) -> None:
        """Remove a spectator."""
        for outboxes in (self._new, self._outboxes):
            if outbox in outboxes:
                outboxes.remove(outbox)

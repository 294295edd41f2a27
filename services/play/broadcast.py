"""Delayed broadcast of a whole game for spectators, so that they cannot inform players."""

from collections import deque
from dataclasses import dataclass

from dota.spectator.chunks import CHUNK_STEPS
from five.services.play.outbox import Outbox
from five.services.play.views import View, message_of

KEYFRAME_EVERY = CHUNK_STEPS  # 4 s, the longest wait of a new spectator; chunks of recordings begin at the same steps


@dataclass
class _Step:
    at: float
    keyframe: bytes  # b"": not encoded for this step
    changes: bytes


class Broadcast:
    """Buffer of encoded timesteps, each of which is sent to all spectators ``delay`` seconds later.

    Every KEYFRAME_EVERY steps it holds a keyframe, at which new spectators start; other steps are differences.
    """

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self._steps: deque[_Step] = deque()
        self._count = 0  # steps so far
        self._new: list[Outbox] = []  # waiting for a keyframe
        self._outboxes: list[Outbox] = []

    @property
    def waits(self) -> bool:
        """Return whether unsent steps remain."""
        return bool(self._steps)

    def add(self, view: View, now: float) -> None:
        """Add the whole game after a timestep, at ``now`` seconds, and send the steps that are old enough."""
        keyed = self._count % KEYFRAME_EVERY == 0
        keyframe = message_of(view.engine_frame, True, view.keyframe(), view.events) if keyed else b""
        self._count += 1
        self._steps.append(_Step(now, keyframe, message_of(view.engine_frame, False, view.changes(), view.events)))
        self.send(now)

    def send(self, now: float) -> None:
        """Send the steps older than the delay."""
        while self._steps and now - self._steps[0].at >= self.delay:
            step = self._steps.popleft()
            self._outboxes = [outbox for outbox in self._outboxes if not outbox.ended]
            # A client that reads too slowly starts again at the next keyframe.
            for outbox in [outbox for outbox in self._outboxes if outbox.is_behind]:
                self._outboxes.remove(outbox)
                self._new.append(outbox)
            if step.keyframe:
                for outbox in self._new:
                    outbox.drop_frames()
                    outbox.send_encoded_frame(step.keyframe)
            for outbox in self._outboxes:
                outbox.send_encoded_frame(step.changes)
            if step.keyframe:
                self._outboxes += self._new
                self._new = []

    def postpone(self, seconds: float) -> None:
        """Send the waiting steps ``seconds`` later: after a pause they would show spectators the present game."""
        for step in self._steps:
            step.at += seconds

    def enter(self, outbox: Outbox) -> None:
        """Add a spectator, starting at the next keyframe."""
        self._new.append(outbox)

    def leave(self, outbox: Outbox) -> None:
        """Remove a spectator."""
        for outboxes in (self._new, self._outboxes):
            if outbox in outboxes:
                outboxes.remove(outbox)

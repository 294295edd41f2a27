"""Games of ratings and of an anneal's guard, which share the slots of one vector."""

import secrets
from dataclasses import dataclass

import numpy as np

from five.services.evaluator import metrics as page
from five.services.evaluator.cameras import Cameras
from five.services.evaluator.cpu_limit import CpuLimit
from five.services.evaluator.guard_loop import GuardLoop
from five.services.evaluator.matches import Pairing, PairingResult
from five.services.evaluator.rating_loop import RatingLoop
from five.services.evaluator.recording import ReplayRecorder


@dataclass
class RatedGames:
    """Source of the pairings and sink of their results, which are shown as metrics and recorded.

    ``guard_share`` of the games are the guard's while it has any.
    """

    loop: RatingLoop
    guard: GuardLoop
    cameras: Cameras
    recorder: ReplayRecorder
    cpu_limit: CpuLimit
    guard_share: float
    rng: np.random.Generator

    def next_pairing(self) -> Pairing | None:
        """Return the next game; None if neither ratings nor the guard need one."""
        first = self.guard.next_pairing() if self.rng.random() < self.guard_share else None
        found = first or self.loop.next_pairing() or self.guard.next_pairing()
        page.PAIRED.set(2 * self.guard.played)  # a restart or another attempt changes it without a result
        return found

    def on_start(self, slot: int, pairing: Pairing | None) -> None:
        """Handle the start or restart of a game in a slot."""
        if pairing is None:
            return
        self.cameras.began(slot, pairing, secrets.token_hex(16))
        if pairing.game and not pairing.agent.controller:
            self.recorder.began(slot, pairing.agent.name)

    def on_result(self, result: PairingResult) -> None:
        """Handle an ended game. Raise redis.RedisError if its result cannot be stored."""
        if self.guard.on_result(result):
            self.cameras.ended(result.slot)
            page.count_guard_game("old" if result.pairing.rules is None else "new", result.score)
            return
        self.recorder.ended(result.slot)
        self.cameras.ended(result.slot)
        if self.loop.on_result(result):
            page.count_game(result.pairing, result.score)
        self.show_rating()

    def drop(self) -> None:
        """Discard the recordings of lost games, and the guard's pairs in progress, which are played again."""
        self.recorder.drop()
        self.cameras.drop()
        self.guard.drop()

    def delay(self) -> float:
        """Return the seconds to sleep after a step."""
        # The first rating is not limited, because the user of a new run waits for it.
        return self.cpu_limit.delay() if self.loop.ladder.last_rated is not None else 0.0

    def show_rating(self) -> None:
        """Set the metrics to the newest finished rating, if there is one."""
        last = self.loop.series.last("ratings")
        if last is not None:
            page.show_rating(last.values, len(self.loop.ladder.references))

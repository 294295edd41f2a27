"""Outcome samples: samples of a game that are kept until its end and labelled by its outcome.

A segment leaves the rollout before its game ends, so its labels are the model's own prediction (equation 10 of Berner
et al. 2019). Such a label equals what the model predicts already, and an outcome needs a backup per segment to reach
the first one. A few samples of each game therefore wait for the outcome and are sent once more, for the auxiliary heads
only. The first sample is always among them, because a draft asks for its prediction.
"""

import time
from collections import deque
from dataclasses import replace

import numpy as np

from five.agent.learning.labels import RANKS, GameOutcome
from five.agent.learning.samples import STATE_PREFIX, Arrays
from five.agent.learning.segments import Segment


class OutcomeSamples:
    """Samples of one team in the games of an env slot.

    Of each game it keeps the first sample and a uniform choice of the others (reservoir sampling, Vitter 1985). They
    are returned one at a time after the game's end, because games may end together and a batch without other samples
    teaches the policy nothing.
    """

    def __init__(self, capacity: int, rng: np.random.Generator) -> None:
        """Keep at most ``capacity`` samples of a game; 0 keeps none."""
        self._capacity = capacity
        self._rng = rng
        self._kept: list[Segment[Arrays]] = []
        self._seen = 0
        # Those of two games, if games have fewer segments than samples are kept.
        self._labelled: deque[Segment[Arrays]] = deque(maxlen=2 * capacity)

    def start_game(self) -> None:
        """Start the next game. Samples of a game that did not end are dropped."""
        self._kept.clear()
        self._seen = 0

    def add(self, segment: Segment[Arrays]) -> None:
        """Keep some samples of the game's next segment. Their arrays are copied."""
        for sample in range(segment.samples):
            index = self._choose_index()
            if index == len(self._kept):
                self._kept.append(_copy_sample(segment, sample))
            elif index is not None:
                self._kept[index] = _copy_sample(segment, sample)

    def finish_game(self, outcome: GameOutcome) -> None:
        """Label the game's samples; the next segment is another game's."""
        self._labelled += [_label(sample, outcome) for sample in self._kept]
        self.start_game()

    def take(self) -> Segment[Arrays] | None:
        """Return the oldest labelled sample, as a segment with ``mask`` 0, or None."""
        return self._labelled.popleft() if self._labelled else None

    def _choose_index(self) -> int | None:
        """Return the index at which the game's next sample is kept; None if it is not."""
        number, self._seen = self._seen, self._seen + 1
        if number < self._capacity:
            return number
        index = 1 + int(self._rng.integers(number)) if number else 0
        return index if index < self._capacity else None


def _copy_sample(segment: Segment[Arrays], sample: int) -> Segment[Arrays]:
    steps = len(segment.arrays["mask"]) // segment.samples
    rows = np.arange(sample * steps, (sample + 1) * steps)
    arrays = {name: array[[sample] if name.startswith(STATE_PREFIX) else rows]
              for name, array in segment.arrays.items()}
    versions = arrays["versions"]
    return Segment(arrays, 1, 0.0, 0.0, 0, int(versions.min()), int(versions.max()), segment.variant)


def _label(sample: Segment[Arrays], outcome: GameOutcome) -> Segment[Arrays]:
    arrays = sample.arrays
    rank = np.eye(RANKS, dtype=np.float32)[outcome.ranks]
    arrays |= {
        "mask": np.zeros_like(arrays["mask"]), "outcome_mask": arrays["mask"].max(-1),
        "win_label": np.full_like(arrays["win_label"], outcome.won),
        "rank_label": np.broadcast_to(rank, arrays["rank_label"].shape).copy()}
    return replace(sample, created_at=time.time())

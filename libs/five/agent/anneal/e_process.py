"""Tests that stay valid when they are looked at after every pair: bets against a hypothesis about a mean.

The score of a pair is a number in [-1, 1]. Who bets a share λ of his wealth that the next score is below zero has
1 - λx of it afterwards; while the scores' mean, given all that came before, is at least zero, no strategy makes his
wealth grow on average, and by Ville's inequality it ever reaches 1/α with a probability of at most α, whenever one
looks (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting"; Ramdas et al. 2023,
"Game-theoretic statistics and safe anytime-valid inference"). Nothing is assumed of the scores but their bounds:
neither independence nor a fixed distribution, so the version that is tested may change from pair to pair.

The wealth here is a mixture over fixed λ and over the pair with which the betting begins. The second is for harm that
comes late: an agent that first improved would otherwise have to lose all of that again before the loss is seen.
"""


import numpy as np
import numpy.typing as npt

BETS = (0.05, 0.1, 0.2, 0.4, 0.7)  # λ, equal weights: losses from a tenth to all of the score


class EProcess:
    """The wealth of bets that the mean score is below zero; 1 at the start.

    ``late_starts``: mix over the pair at which the betting begins, with weights 1/(k(k+1)) for the k-th.
    """

    def __init__(self, late_starts: bool = True) -> None:
        self._late = late_starts
        self._bets = np.array(BETS)
        self._running: npt.NDArray[np.float64] = np.full(len(BETS), 0.0 if late_starts else 1.0)
        self.pairs = 0
        self.most = 1.0  # the largest that the wealth has been

    def add(self, score: float) -> float:
        """Takes the next pair's score in and returns the wealth after it. Raises ValueError outside of [-1, 1]."""
        if not -1.0 <= score <= 1.0:
            raise ValueError(f"a pair's score is in -1 to 1, not {score}")
        self.pairs += 1
        if self._late:
            self._running += 1.0 / (self.pairs * (self.pairs + 1.0))
        self._running *= 1.0 - self._bets * score
        self.most = max(self.most, self.wealth)
        return self.wealth

    @property
    def wealth(self) -> float:
        """What the bets that began are worth, and those that are still to begin."""
        waiting = 1.0 / (self.pairs + 1.0) if self._late else 0.0
        return float(self._running.mean()) + waiting


def wealth_paths(scores: npt.NDArray[np.float64], late_starts: bool = True) -> npt.NDArray[np.float64]:
    """``EProcess``'s wealth after each pair, for many sequences at once: float64 [n, pairs] of scores [n, pairs]."""
    count, pairs = scores.shape
    running = np.full((count, len(BETS)), 0.0 if late_starts else 1.0)
    out = np.empty((count, pairs))
    for k in range(pairs):
        if late_starts:
            running += 1.0 / ((k + 1.0) * (k + 2.0))
        running *= 1.0 - np.array(BETS) * scores[:, k, None]
        out[:, k] = running.mean(1) + (1.0 / (k + 2.0) if late_starts else 0.0)
    return out

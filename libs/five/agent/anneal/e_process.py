"""E-process for the mean of bounded scores: a test that stays valid when it is evaluated after every pair.

A pair's score is in [-1, 1]. Betting a share λ of one's wealth on a score below zero multiplies it by 1 - λx. If the
conditional mean of the scores is at least zero, no strategy increases the expected wealth, and by Ville's inequality
the wealth ever reaches 1/α with a probability of at most α (Waudby-Smith & Ramdas 2024, "Estimating means of bounded
random variables by betting"; Ramdas et al. 2023, "Game-theoretic statistics and safe anytime-valid inference"). The
scores need not be independent or identically distributed, so the tested version may change from pair to pair.

The wealth is a mixture over fixed λ and over the pair at which betting starts. Late starts detect harm that follows an
improvement: otherwise the agent would have to lose all of the gain again first.
"""


import numpy as np
import numpy.typing as npt

BETS = (0.05, 0.1, 0.2, 0.4, 0.7)  # λ with equal weights, for mean losses from 0.1 to 1


class EProcess:
    """Wealth of bets on a mean score below zero, 1 at the start.

    ``late_starts``: mix over the pair k at which betting starts, with weights 1/(k(k+1)).
    """

    def __init__(self, late_starts: bool = True) -> None:
        self._late = late_starts
        self._bets = np.array(BETS)
        self._running: npt.NDArray[np.float64] = np.full(len(BETS), 0.0 if late_starts else 1.0)
        self.pairs = 0
        self.peak = 1.0  # highest wealth so far

    def add(self, score: float) -> float:
        """Add the next pair's score and return the wealth after it. Raise ValueError outside of [-1, 1]."""
        if not -1.0 <= score <= 1.0:
            raise ValueError(f"score {score} of a pair: -1 to 1 is allowed")
        self.pairs += 1
        if self._late:
            self._running += 1.0 / (self.pairs * (self.pairs + 1.0))
        self._running *= 1.0 - self._bets * score
        self.peak = max(self.peak, self.wealth)
        return self.wealth

    @property
    def wealth(self) -> float:
        """Worth of all bets, those that have not started yet included."""
        waiting = 1.0 / (self.pairs + 1.0) if self._late else 0.0
        return float(self._running.mean()) + waiting


def wealth_paths(scores: npt.NDArray[np.float64], late_starts: bool = True) -> npt.NDArray[np.float64]:
    """Return `EProcess` wealth after each pair for n sequences of scores [n, pairs], as float64 [n, pairs]."""
    count, pairs = scores.shape
    running = np.full((count, len(BETS)), 0.0 if late_starts else 1.0)
    out = np.empty((count, pairs))
    for k in range(pairs):
        if late_starts:
            running += 1.0 / ((k + 1.0) * (k + 2.0))
        running *= 1.0 - np.array(BETS) * scores[:, k, None]
        out[:, k] = running.mean(1) + (1.0 / (k + 2.0) if late_starts else 0.0)
    return out

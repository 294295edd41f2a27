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
MAX_WEALTH = 1e300  # of one bet, far above any bound; JSON has no infinity


class EProcess:
    """Wealth of bets on a mean score below zero, for independent sequences of scores.

    Attributes:
        pairs: number of scores of each sequence.
        wealth: worth of all bets, those that have not started yet included; 1 at the start. float64 [sequences].
        peak: highest wealth so far, float64 [sequences].

    ``late_starts``: mix over the pair k at which betting starts, with weights 1/(k(k+1)).
    """

    def __init__(self, late_starts: bool = True, sequences: int = 1) -> None:
        self._late = late_starts
        self._factors = np.array(BETS)[:, None]
        self._running: npt.NDArray[np.float64] = np.full((len(BETS), sequences), 0.0 if late_starts else 1.0)
        self.pairs = 0
        self.wealth: npt.NDArray[np.float64] = np.ones(sequences)
        self.peak: npt.NDArray[np.float64] = np.ones(sequences)

    def add(self, scores: npt.ArrayLike) -> None:
        """Add the next score of each sequence [sequences], or one for all. Raise ValueError outside of [-1, 1]."""
        scores = np.asarray(scores, np.float64)
        if not (np.abs(scores) <= 1.0).all():
            raise ValueError(f"score {scores} of a pair: -1 to 1 is allowed")
        self.pairs += 1
        waiting = 0.0
        if self._late:
            self._running += 1.0 / (self.pairs * (self.pairs + 1.0))
            waiting = 1.0 / (self.pairs + 1.0)
        self._running = np.minimum(self._running * (1.0 - self._factors * scores), MAX_WEALTH)
        self.wealth = self._running.mean(0) + waiting
        self.peak = np.maximum(self.peak, self.wealth)

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        """Drop the sequences that are False in ``kept`` [sequences]."""
        self._running, self.wealth, self.peak = self._running[:, kept], self.wealth[kept], self.peak[kept]

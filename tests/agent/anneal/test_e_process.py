import numpy as np
import pytest

from five.agent.anneal.e_process import BETS, EProcess, wealth_paths


def wealth_of(scores: list[float], late_starts: bool) -> EProcess:
    process = EProcess(late_starts)
    for score in scores:
        process.add(score)
    return process


@pytest.mark.parametrize("late", [True, False])
def test_wealth_is_the_mixture_of_bets_and_starts(late: bool) -> None:
    """Computed without recursion: for every λ and start, the product of 1 - λx from there on."""
    scores = np.array([0.5, -1.0, 0.0, -0.5, 1.0, -1.0])
    expected = 0.0
    for bet in BETS:
        if late:
            starts = [np.prod(1 - bet * scores[k:]) / ((k + 1) * (k + 2)) for k in range(len(scores))]
            expected += (sum(starts) + 1 / (len(scores) + 1)) / len(BETS)
        else:
            expected += np.prod(1 - bet * scores) / len(BETS)
    process = wealth_of(scores.tolist(), late)
    assert process.wealth == pytest.approx(expected) and process.pairs == 6 and process.peak >= process.wealth
    np.testing.assert_allclose(wealth_paths(scores[None], late)[0, -1], expected)
    assert EProcess(late).wealth == 1.0


@pytest.mark.parametrize("late", [True, False])
def test_wealth_is_a_martingale_at_mean_zero(late: bool) -> None:
    for first in (-1.0, 0.0, 1.0):
        process = wealth_of([first], late)
        after = [wealth_of([first, score], late).wealth for score in (-1.0, 1.0)]
        assert np.mean(after) == pytest.approx(process.wealth)


def test_false_alarms_stay_below_alpha_at_any_stop() -> None:
    """Four score processes of mean zero, one of which adapts to earlier scores, evaluated after each of 2,000 steps."""
    rng = np.random.default_rng(3)
    n, steps = 4000, 2000
    for kind in ("coin", "even", "skewed", "shifting"):
        u = rng.random((n, steps))
        if kind == "coin":
            scores = np.where(u < 0.5, 1.0, -1.0)
        elif kind == "even":
            scores = np.where(u < 0.25, 1.0, np.where(u < 0.5, -1.0, 0.0))
        elif kind == "skewed":  # rarely -1, mostly a small gain
            scores = np.where(u < 0.2, -1.0, 0.25)
        else:  # ±1 after a loss, ±0.5 after a win
            scores = np.empty((n, steps))
            size = np.ones(n)
            for k in range(steps):
                scores[:, k] = np.where(u[:, k] < 0.5, size, -size)
                size = np.where(scores[:, k] < 0, 1.0, 0.5)
        paths = wealth_paths(scores)
        for alpha in (0.1, 0.05, 0.01):
            alarms = float((paths >= 1 / alpha).any(1).mean())
            # The bound is exact, so the estimate exceeds it by at most its own error.
            assert alarms <= alpha + 3 * (alpha * (1 - alpha) / n) ** 0.5, (kind, alpha)
        # For comparison: a fixed-length test evaluated after each step raises far more false alarms.
        z = -scores.cumsum(1) / np.sqrt((scores**2).cumsum(1).clip(1e-9))
        assert float((z[:, 20:] > 1.645).any(1).mean()) > 0.3, kind


def test_late_harm_is_detected_soon() -> None:
    """300 pairs of gain, then loss. Without late starts the gain would have to be lost again first."""
    rng = np.random.default_rng(5)
    u = rng.random((500, 700))
    mean = np.where(np.arange(700) < 300, 0.3, -0.4)
    scores = np.where(u < (0.6 + mean) / 2, 1.0, np.where(u < 0.6, -1.0, 0.0))
    late, early = (wealth_paths(scores, late)[:, 300:] >= 40 for late in (True, False))
    seen = late.argmax(1)[late.any(1)] + 1
    assert late.any(1).mean() > 0.98 and np.median(seen) < 110
    assert early.any(1).mean() < 0.9


@pytest.mark.parametrize("score", [1.01, -1.5, float("nan")])
def test_score_out_of_bounds_is_rejected(score: float) -> None:
    with pytest.raises(ValueError, match="-1 to 1"):
        EProcess().add(score)

import numpy as np
import pytest

from five.agent.anneal.e_process import BETS, EProcess


def wealth_of(scores: list[float], late_starts: bool) -> EProcess:
    process = EProcess(late_starts)
    for score in scores:
        process.add(score)
    return process


@pytest.mark.parametrize("late", [True, False])
def test_wealth_is_the_mixture_of_bets_and_starts(late: bool) -> None:
    """Computed without recursion: for every λ and start, the product of 1 - λx from there on."""
    sequences = np.array([[0.5, -1.0, 0.0, -0.5, 1.0, -1.0], [-1.0, -1.0, 1.0, 1.0, 0.25, 0.0]])
    together = EProcess(late, sequences=2)
    for scores in sequences.T:
        together.add(scores)
    for row, scores in enumerate(sequences):
        expected = 0.0
        for bet in BETS:
            if late:
                starts = [np.prod(1 - bet * scores[k:]) / ((k + 1) * (k + 2)) for k in range(len(scores))]
                expected += (sum(starts) + 1 / (len(scores) + 1)) / len(BETS)
            else:
                expected += np.prod(1 - bet * scores) / len(BETS)
        process = wealth_of(scores.tolist(), late)
        assert process.wealth == pytest.approx(expected) and process.pairs == 6
        assert together.wealth[row] == pytest.approx(expected)
    assert EProcess(late).wealth == EProcess(late).peak == 1.0


def test_first_wealth_by_hand() -> None:
    """The λ have the mean 0.29. One loss: half of the late starts has not begun, the other half has won 0.29."""
    assert wealth_of([-1.0], False).wealth == pytest.approx(1.29)
    assert wealth_of([-1.0], True).wealth == pytest.approx(0.5 + 0.5 * 1.29)


@pytest.mark.parametrize("late", [True, False])
def test_wealth_of_many_pairs_is_finite(late: bool) -> None:
    """The REST API answers it as JSON, which has no infinity."""
    process = wealth_of([-1.0] * 1500, late)
    assert 1e299 < process.peak < np.inf and process.wealth == process.peak


def test_peak_is_the_highest_wealth() -> None:
    process = wealth_of([-1.0, -1.0, 1.0], False)
    assert process.peak == wealth_of([-1.0, -1.0], False).wealth > process.wealth
    assert wealth_of([1.0], False).peak == 1.0 > wealth_of([1.0], False).wealth


@pytest.mark.parametrize("late", [True, False])
def test_dropped_sequences_leave_the_others_unchanged(late: bool) -> None:
    process = EProcess(late, sequences=3)
    process.add([-1.0, 1.0, 0.5])
    process.keep(np.array([True, False, True]))
    process.add([1.0, -0.5])
    for row, scores in enumerate(([-1.0, 1.0], [0.5, -0.5])):
        alone = wealth_of(scores, late)
        assert (process.wealth[row], process.peak[row]) == (pytest.approx(alone.wealth), pytest.approx(alone.peak))


@pytest.mark.parametrize("late", [True, False])
def test_wealth_is_a_martingale_at_mean_zero(late: bool) -> None:
    for first in (-1.0, 0.0, 1.0):
        process = wealth_of([first], late)
        after = [wealth_of([first, score], late).wealth for score in (-1.0, 1.0)]
        assert np.mean(after) == pytest.approx(process.wealth)


@pytest.mark.parametrize("kind", ["coin", "even", "skewed", "shifting"])
def test_false_alarms_stay_below_alpha_at_any_stop(kind: str) -> None:
    """Four score processes of mean zero, one of which adapts to earlier scores, evaluated after each of 600 steps."""
    rng = np.random.default_rng(3)
    n, steps = 2000, 600
    process = EProcess(sequences=n)
    total, squares, size, fixed = np.zeros(n), np.zeros(n), np.ones(n), np.zeros(n, bool)
    for step in range(steps):
        u = rng.random(n)
        if kind == "coin":
            scores = np.where(u < 0.5, 1.0, -1.0)
        elif kind == "even":
            scores = np.where(u < 0.25, 1.0, np.where(u < 0.5, -1.0, 0.0))
        elif kind == "skewed":  # rarely -1, mostly a small gain
            scores = np.where(u < 0.2, -1.0, 0.25)
        else:  # ±1 after a loss, ±0.5 after a win
            scores = np.where(u < 0.5, size, -size)
            size = np.where(scores < 0, 1.0, 0.5)
        process.add(scores)
        total += scores
        squares += scores**2
        if step >= 20:
            fixed |= -total > 1.645 * np.sqrt(squares)
    for alpha in (0.1, 0.05, 0.01):
        alarms = float((process.peak >= 1 / alpha).mean())
        # The bound is exact, so the estimate exceeds it by at most its own error.
        assert alarms <= alpha + 3 * (alpha * (1 - alpha) / n) ** 0.5, alpha
    # For comparison: a fixed-length test evaluated after each step raises far more false alarms.
    assert float(fixed.mean()) > 0.2


def test_late_harm_is_detected_soon() -> None:
    """300 pairs of gain, then loss. Without late starts the gain would have to be lost again first."""
    rng = np.random.default_rng(5)
    late, early = EProcess(sequences=500), EProcess(late_starts=False, sequences=500)
    seen = np.full(500, 1000)
    for step in range(700):
        u, mean = rng.random(500), 0.3 if step < 300 else -0.4
        scores = np.where(u < (0.6 + mean) / 2, 1.0, np.where(u < 0.6, -1.0, 0.0))
        late.add(scores)
        early.add(scores)
        if step >= 300:
            seen = np.minimum(seen, np.where(late.wealth >= 40, step - 299, 1000))
    assert (seen <= 400).mean() > 0.98 and np.median(seen) < 110
    assert (early.peak >= 40).mean() < 0.9


@pytest.mark.parametrize("score", [1.01, -1.5, float("nan")])
def test_score_out_of_bounds_is_rejected(score: float) -> None:
    with pytest.raises(ValueError, match="-1 to 1"):
        EProcess().add(score)
    with pytest.raises(ValueError, match="-1 to 1"):
        EProcess(sequences=2).add([0.0, score])


@pytest.mark.parametrize("score", [-1.0, 1.0])
def test_score_at_the_bounds_is_accepted(score: float) -> None:
    assert wealth_of([score], True).pairs == 1

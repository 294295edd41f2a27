import numpy as np
import pytest

from five.agent.anneal.guard import (
    CURVE_POINTS,
    GuardConfig,
    GuardVerdict,
    Pair,
    RuleTest,
    _sample_scores,
    consecutive_pairs,
    decide,
    estimate_power,
    evaluate,
)
from five.agent.anneal.variants import Variant

CONFIG = GuardConfig()
NO_HARM = {Variant.OLD: 0.0, Variant.NEW: 0.0}
ATTEMPTS = 2000


def pairs(rule: Variant, scores: list[float], share: float = 1.0) -> list[Pair]:
    return [Pair(rule, n, 100 + n, share, (max(min(2 * s, 1.0), -1.0), 2 * s - max(min(2 * s, 1.0), -1.0)))
            for n, s in enumerate(scores)]


def drawn(mean: float, count: int, spread: float = 0.5, seed: int = 0) -> list[float]:
    u = np.random.default_rng(seed).random(count)
    return np.where(u < (spread + mean) / 2, 1.0, np.where(u < spread, -1.0, 0.0)).tolist()


@pytest.mark.parametrize(("false_alarm", "score", "count"), [
    (0.05, -1.0, 11), (0.1, -1.0, 10), (0.2, -1.0, 8), (0.05, -0.5, 19), (0.1, -0.5, 16), (0.2, -0.5, 14)])
@pytest.mark.parametrize("rule", Variant)
def test_failure_comes_at_the_exact_pair(rule: Variant, false_alarm: float, score: float, count: int) -> None:
    """Wealth against "not worse" after n losses in a row: 31.75 after 10 and 51.79 after 11, where 2 / 0.05 is 40."""
    config = GuardConfig(false_alarm=false_alarm)
    other = pairs(next(other for other in Variant if other is not rule), [0.0] * 5)
    verdicts = [decide(config, pairs(rule, [score] * n) + other).verdict for n in (count - 1, count, count + 1)]
    assert verdicts == [GuardVerdict.INCONCLUSIVE, GuardVerdict.FAIL, GuardVerdict.FAIL]


@pytest.mark.parametrize(("miss", "loss", "score", "count"), [
    (0.05, 0.2, 1.0, 9), (0.1, 0.2, 1.0, 7), (0.05, 0.2, 0.0, 40), (0.1, 0.2, 0.0, 33), (0.05, 0.5, 0.0, 21),
    (0.1, 0.5, 0.0, 18)])
def test_pass_comes_at_the_exact_pair(miss: float, loss: float, score: float, count: int) -> None:
    """Wealth against "it loses 0.2 or more" after n draws: 18.65 after 39 and 20.57 after 40, where 1 / 0.05 is 20."""
    config = GuardConfig(miss=miss, loss=loss)
    long = pairs(Variant.OLD, [score] * (count + 1))
    verdicts = [decide(config, long + pairs(Variant.NEW, [score] * n)).verdict for n in (count - 1, count)]
    assert verdicts == [GuardVerdict.INCONCLUSIVE, GuardVerdict.PASS]
    verdicts = [decide(config, long[:n] + pairs(Variant.NEW, [score] * count)).verdict for n in (count - 1, count)]
    assert verdicts == [GuardVerdict.INCONCLUSIVE, GuardVerdict.PASS]


def test_evidence_equal_to_the_threshold_decides() -> None:
    tests = [RuleTest(CONFIG, attempts=3) for _ in Variant]
    for test in tests:
        test.harm.peak, test.harmless.peak = np.array([1.0, 39.9, 1.0]), np.array([20.0, 19.9, 20.0])
    tests[1].harm.peak[2] = 40.0
    failed, passed = evaluate(tests)
    assert failed.tolist() == [False, False, True] and passed.tolist() == [True, False, False]


@pytest.mark.parametrize("spread", [0.2, 0.5, 1.0])
def test_false_alarm_rate_is_bounded(spread: float) -> None:
    """Evaluated after every pair, 1,000 pairs per rule, where one version wins both games seldom, often or always."""
    for alpha in (0.05, 0.2):
        found = estimate_power(GuardConfig(false_alarm=alpha), NO_HARM, spread, ATTEMPTS, seed=11)
        assert found.failed <= alpha + 3 * (alpha * (1 - alpha) / ATTEMPTS) ** 0.5
        assert found.passed > 0.95 - alpha  # harmless changes pass


@pytest.mark.parametrize(("spread", "median", "within_300"), [(0.5, 110, 0.93), (1.0, 210, 0.70)])
@pytest.mark.parametrize("rule", Variant)
def test_stated_loss_is_detected(rule: Variant, spread: float, median: int, within_300: float) -> None:
    """A loss of 0.2 (two games won in five) under one rule: more than 95 % fail within 1,000 pairs per rule."""
    means = {**NO_HARM, rule: -CONFIG.loss}
    found = estimate_power(CONFIG, means, spread, ATTEMPTS, seed=21)
    assert found.failed > 0.95 and found.passed <= CONFIG.miss and found.pairs <= median
    assert estimate_power(CONFIG, means, spread, ATTEMPTS, seed=22, pairs=300).failed > within_300


def test_larger_losses_are_detected_sooner() -> None:
    found = [estimate_power(CONFIG, {**NO_HARM, Variant.NEW: -loss}, 0.5, 300, seed=31)
             for loss in (0.05, 0.1, 0.2, 0.4)]
    assert [f.failed for f in found] == sorted(f.failed for f in found)
    assert found[3].pairs < found[2].pairs / 2 and found[0].failed < 0.25


@pytest.mark.parametrize(("mean", "failed", "passed", "count"), [(-1.0, 1.0, 0.0, 11), (1.0, 0.0, 1.0, 9)])
def test_simulation_ends_at_the_pair_of_the_verdict(mean: float, failed: float, passed: float, count: int) -> None:
    """Without luck, each attempt has the scores of the exact tests above."""
    means = {Variant.OLD: 1.0, Variant.NEW: mean}
    assert estimate_power(CONFIG, means, 1.0, 3, seed=1) == (failed, passed, count)
    assert estimate_power(CONFIG, means, 1.0, 3, seed=1, pairs=count) == (failed, passed, count)
    assert estimate_power(CONFIG, means, 1.0, 3, seed=1, pairs=count - 1) == (0.0, 0.0, 0)
    assert estimate_power(GuardConfig(pairs=count - 1), means, 1.0, 3, seed=1) == (0.0, 0.0, 0)


def test_simulated_scores_have_the_mean_and_spread() -> None:
    """Scores of 600,000 pairs: the share of -1, 0 and 1, under the rule that has the mean."""
    scores = _sample_scores(np.random.default_rng(7), Variant.NEW, -0.3, 0.5, 600, 1000)
    assert scores.shape == (1000, 600)
    assert [float((scores == score).mean()) for score in (-1, 0, 1)] == pytest.approx([0.4, 0.5, 0.1], abs=0.002)
    level = _sample_scores(np.random.default_rng(7), Variant.NEW, 0.0, 0.0, 5, 5)
    assert not level.any()


def test_simulated_attempts_agree_with_the_guard() -> None:
    """Each simulated attempt has the verdict that the guard gives on its pairs."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        scores = [_sample_scores(rng, rule, mean, 0.5, 1, 400)[:, 0].tolist()
                  for rule, mean in ((Variant.OLD, 0.0), (Variant.NEW, -0.2))]
        told = estimate_power(CONFIG, {Variant.OLD: 0.0, Variant.NEW: -0.2}, 0.5, 1, seed, pairs=400)
        rows = [*pairs(Variant.OLD, scores[0]), *pairs(Variant.NEW, scores[1])]
        expected = GuardVerdict.FAIL if told.failed else GuardVerdict.PASS if told.passed else GuardVerdict.INCONCLUSIVE
        upto = told.pairs or 400
        assert decide(CONFIG, [p for p in rows if p.number < upto]).verdict is expected
        if told.pairs:
            before = decide(CONFIG, [p for p in rows if p.number < upto - 1]).verdict
            assert before is GuardVerdict.INCONCLUSIVE, f"seed {seed}: decided before pair {upto}"


def test_verdicts_with_their_evidence() -> None:
    nothing = decide(CONFIG, [])
    assert nothing.verdict is GuardVerdict.INCONCLUSIVE and nothing.reason == "no pairs have been played yet"
    good, bad = drawn(0.1, 400, seed=1), drawn(-0.4, 200, seed=2)
    passed = decide(CONFIG, pairs(Variant.OLD, good) + pairs(Variant.NEW, good))
    assert passed.verdict is GuardVerdict.PASS and "a loss of 0.2 is ruled out under both rules" in passed.reason
    failed = decide(CONFIG, pairs(Variant.OLD, good) + pairs(Variant.NEW, bad))
    assert failed.verdict is GuardVerdict.FAIL
    assert "under the new rule the newest version is worse" in failed.reason and "-0." in failed.reason
    # Only one rule has pairs, so the other one is undecided.
    half = decide(CONFIG, pairs(Variant.OLD, good))
    assert half.verdict is GuardVerdict.INCONCLUSIVE and half.reason == "undecided under the new rule"
    old, new = half.findings
    assert (old.pairs, new.pairs, new.harm, new.mean) == (400, 0, 1.0, 0.0)
    assert old.harmless >= old.passes == 20 and old.fails == 40
    # Each point of the history is the evidence after that many pairs.
    assert new.history == () and len(old.history) == CURVE_POINTS and old.history[0][0] == 1
    assert old.history[-1] == (400, old.harm, old.harmless)
    for count, harm, harmless in old.history[::20]:
        before = decide(CONFIG, pairs(Variant.OLD, good[:count])).findings[0]
        assert (before.pairs, before.harm, before.harmless) == (count, harm, harmless)
    assert [count for count, *_ in decide(CONFIG, pairs(Variant.OLD, good[:3])).findings[0].history] == [1, 2, 3]


def test_failure_is_final() -> None:
    bad, good = drawn(-0.5, 100, seed=3), drawn(0.5, 800, seed=4)
    rows = pairs(Variant.OLD, drawn(0.0, 900, seed=5)) + pairs(Variant.NEW, bad + good)
    assert decide(CONFIG, rows).verdict is GuardVerdict.FAIL


def test_pass_requires_versions_at_the_share() -> None:
    early = pairs(Variant.OLD, drawn(0.1, 400, seed=1), 0.1) + pairs(Variant.NEW, drawn(0.1, 400, seed=1), 0.1)
    assert decide(CONFIG, early, since_share=0.0).verdict is GuardVerdict.PASS
    assert decide(CONFIG, early, since_share=0.5).verdict is GuardVerdict.INCONCLUSIVE
    # A version made at exactly that share counts, also when the share is a sum with a rounding error.
    exact = [p._replace(share=0.3) for p in early]
    assert decide(CONFIG, exact, since_share=0.1 + 0.2).verdict is GuardVerdict.PASS
    assert decide(CONFIG, exact, since_share=0.3 + 1e-6).verdict is GuardVerdict.INCONCLUSIVE
    # Harm counts at every share.
    early += [p._replace(number=p.number + 400) for p in pairs(Variant.NEW, drawn(-0.6, 200, seed=2), 0.1)]
    assert decide(CONFIG, early, since_share=0.5).verdict is GuardVerdict.FAIL


def test_pairs_after_an_unfinished_one_do_not_count() -> None:
    rows = pairs(Variant.NEW, [-1.0] * 60)
    without_first = [p for p in rows if p.number != 0]
    assert consecutive_pairs(without_first, Variant.NEW) == []
    assert decide(CONFIG, without_first).verdict is GuardVerdict.INCONCLUSIVE
    assert [p.number for p in consecutive_pairs(reversed(rows), Variant.NEW)] == list(range(60))
    assert decide(CONFIG, reversed(rows)).verdict is GuardVerdict.FAIL


def test_all_pairs_without_verdict_are_inconclusive() -> None:
    config = GuardConfig(pairs=3)
    told = decide(config, pairs(Variant.OLD, [0.0] * 3) + pairs(Variant.NEW, [0.0] * 3))
    assert told.verdict is GuardVerdict.INCONCLUSIVE and "all 3 pairs are played" in told.reason


def test_mean_above_the_spread_is_rejected() -> None:
    with pytest.raises(ValueError, match="spread"):
        estimate_power(CONFIG, {Variant.OLD: 0.0, Variant.NEW: -0.6}, 0.5, 1, 0)

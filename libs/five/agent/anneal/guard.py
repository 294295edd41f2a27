"""Guard of an anneal: a sequential test whether the newest version became worse than the last one before the change.

Both variants of the game train the same weights, so comparing the variants shows no harm. The guard compares the newest
version with the last one before the change, under each rule (variant), in pairs of games with one seed and swapped
sides. A pair's score is the newest version's mean result, 1 for a win and -1 for a loss.

- *fail*: the hypothesis "not worse" is rejected under one of the rules. If it is true under both, this happens with a
  probability of at most ``false_alarm`` per attempt, whatever its length and however often the test is evaluated.
- *pass*: the hypothesis "it loses ``loss`` or more" is rejected under both rules, each at level ``miss``.
- *inconclusive*: neither; the anneal holds. An attempt without games is inconclusive.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from five.agent.anneal.e_process import EProcess
from five.agent.anneal.variants import VARIANTS, Variant
from rapid.section import Section

CURVE_POINTS = 60  # of the evidence that is plotted


class GuardVerdict(StrEnum):
    """Verdict on the pairs so far."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class GuardConfig(Section):
    """Error rates of the guard."""

    false_alarm: float = Field(0.05, gt=0, lt=0.5, description="Probability that a change without harm under either "
                               "rule fails, over a whole attempt.")
    loss: float = Field(0.2, gt=0, lt=1, description="Smallest loss to detect, as the mean result of a game from 1 "
                        "(won) to -1 (lost), negated. 0.2 means two games won in five.")
    miss: float = Field(0.05, gt=0, lt=0.5, description="Probability that a change with this loss under a rule passes "
                        "under that rule.")
    pairs: int = Field(1000, ge=1, le=100_000, description="Maximum pairs played under each rule. Without a verdict "
                       "after them the anneal holds until an operator decides.")


class Pair(NamedTuple):
    """Two games of one seed under one rule, the newest version once on each side.

    Attributes:
        rule: variant of the game.
        number: number of the pair under its rule, from 0.
        version: the newest version.
        share: share of training games with the change when that version was made.
        results: of the newest version, 1 won, 0 drawn, -1 lost.
    """

    rule: Variant
    number: int
    version: int
    share: float
    results: tuple[float, float]

    @property
    def score(self) -> float:
        """The pair's score, -1 to 1."""
        return sum(self.results) / 2


@dataclass(frozen=True)
class VariantEvidence:
    """Evidence under one rule.

    Attributes:
        rule: variant of the game.
        pairs: number of pairs.
        mean: mean score.
        harm: e-value against "not worse". The rule fails at ``fails``.
        harmless: e-value against "it loses ``loss`` or more". The rule passes at ``passes``.
        history: (pairs, harm, harmless) after at most CURVE_POINTS of the pairs, the last one included.
    """

    rule: Variant
    pairs: int
    mean: float
    harm: float
    harmless: float
    fails: float
    passes: float
    history: tuple[tuple[int, float, float], ...] = ()


@dataclass(frozen=True)
class GuardDecision:
    """Verdict with its evidence and its ``reason`` in words."""

    verdict: GuardVerdict
    findings: tuple[VariantEvidence, ...]
    reason: str


class RuleTest:
    """Sequential test under one rule, for one or more independent attempts.

    Attributes:
        harm: e-process against "not worse".
        harmless: e-process against "it loses ``loss`` or more".
    """

    def __init__(self, config: GuardConfig, attempts: int = 1) -> None:
        self._loss = config.loss
        # The rules share the false-alarm rate. A pass needs both rules, so each has the full miss rate.
        self.fails_at = len(VARIANTS) / config.false_alarm
        self.passes_at = 1 / config.miss
        self.harm = EProcess(sequences=attempts)
        self.harmless = EProcess(late_starts=False, sequences=attempts)

    def add(self, scores: npt.ArrayLike, counts_for_pass: bool = True) -> None:
        """Add the score of each attempt's next pair [attempts]. A pass ignores scores with False."""
        self.harm.add(scores)
        if counts_for_pass:
            # A bet on a mean above -loss, scaled to [-1, 1] and negated, is a bet on a mean below zero.
            self.harmless.add(-(np.asarray(scores) + self._loss) / (1 + self._loss))

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        """Drop the attempts that are False in ``kept`` [attempts]."""
        self.harm.keep(kept)
        self.harmless.keep(kept)


def evaluate(tests: Sequence[RuleTest]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which attempts fail and which pass, given the tests of all rules, as bool [attempts]."""
    failed: npt.NDArray[np.bool_] = np.any([test.harm.peak >= test.fails_at for test in tests], axis=0)
    harmless: npt.NDArray[np.bool_] = np.all([test.harmless.peak >= test.passes_at for test in tests], axis=0)
    return failed, harmless & ~failed


def decide(config: GuardConfig, pairs: Iterable[Pair], since_share: float = 0.0) -> GuardDecision:
    """Return the verdict on an attempt's pairs.

    Pairs count in order, up to the first unfinished one. Games that end early differ from the others, so counting them
    first would break the error rates. A pass uses only pairs of versions made at ``since_share`` or more, because
    earlier versions hardly saw the change. A failure uses all pairs, and later pairs cannot undo it.
    """
    rows = list(pairs)
    tests = [RuleTest(config) for _ in VARIANTS]
    findings = tuple(_add_pairs(test, rule, consecutive_pairs(rows, rule), since_share)
                     for test, rule in zip(tests, VARIANTS, strict=True))
    failed, passed = evaluate(tests)
    if failed.item():
        worst = max(findings, key=lambda f: f.harm)
        return GuardDecision(GuardVerdict.FAIL, findings, (
            f"under the {worst.rule} rule the newest version is worse than the last one before the change: mean result "
            f"{worst.mean:+.2f} over {worst.pairs} pairs"))
    if passed.item():
        return GuardDecision(GuardVerdict.PASS, findings, f"a loss of {config.loss:g} is ruled out under both rules")
    if not any(f.pairs for f in findings):
        return GuardDecision(GuardVerdict.INCONCLUSIVE, findings, "no pairs have been played yet")
    open_rules = " and ".join(f.rule for f in findings if f.harmless < f.passes)
    if all(f.pairs >= config.pairs for f in findings):
        return GuardDecision(GuardVerdict.INCONCLUSIVE, findings, (
            f"all {config.pairs} pairs are played and the {open_rules} rule is undecided: promote, set another share, "
            "abort or revert"))
    return GuardDecision(GuardVerdict.INCONCLUSIVE, findings, f"undecided under the {open_rules} rule")


def consecutive_pairs(pairs: Iterable[Pair], rule: Variant) -> list[Pair]:
    """Return a rule's pairs 0, 1, 2, ..., up to the first missing one."""
    found = {pair.number: pair for pair in pairs if pair.rule is rule}
    return [found[n] for n in itertools.takewhile(found.__contains__, itertools.count())]


def _add_pairs(test: RuleTest, rule: Variant, pairs: Sequence[Pair], since_share: float) -> VariantEvidence:
    """Add a rule's pairs to its test and return the evidence."""
    shown = set(np.linspace(1, len(pairs), min(CURVE_POINTS, len(pairs))).round().astype(int).tolist())
    history = []
    for count, pair in enumerate(pairs, 1):
        test.add(pair.score, counts_for_pass=pair.share >= since_share - 1e-9)
        if count in shown:
            history.append((count, test.harm.peak.item(), test.harmless.peak.item()))
    mean = float(np.mean([pair.score for pair in pairs])) if pairs else 0.0
    return VariantEvidence(rule, len(pairs), mean, test.harm.peak.item(), test.harmless.peak.item(), test.fails_at,
                           test.passes_at, tuple(history))


class PowerEstimate(NamedTuple):
    """Shares of simulated attempts that failed and passed, and the median pairs per rule until a verdict (0: none)."""

    failed: float
    passed: float
    pairs: int


def estimate_power(config: GuardConfig, means: Mapping[Variant, float], spread: float, attempts: int, seed: int,
                   pairs: int | None = None) -> PowerEstimate:
    """Simulate attempts whose pairs have these mean scores under each rule.

    Scores are -1, 0 or 1. ``spread`` is the probability of a score other than 0: 1 if one version wins both games of
    each pair, 0.5 for equal versions and independent games. ``pairs`` bounds the pairs under each rule in place of
    ``config.pairs``. The test is evaluated after every pair. Raise ValueError for a mean above the spread.
    """
    rng = np.random.default_rng(seed)
    length = config.pairs if pairs is None else pairs
    scores = [_sample_scores(rng, rule, means[rule], spread, attempts, length) for rule in VARIANTS]
    tests = [RuleTest(config, attempts) for _ in VARIANTS]
    is_failed, is_passed = np.zeros(attempts, bool), np.zeros(attempts, bool)
    ends = []
    undecided = np.arange(attempts)
    for number in range(length):
        for test, sampled in zip(tests, scores, strict=True):
            test.add(sampled[number, undecided])
        failed, passed = evaluate(tests)
        ended = failed | passed
        if ended.any():
            is_failed[undecided[failed]] = True
            is_passed[undecided[passed]] = True
            ends += [number + 1] * int(ended.sum())
            undecided = undecided[~ended]
            for test in tests:
                test.keep(~ended)
    return PowerEstimate(float(is_failed.mean()), float(is_passed.mean()), int(np.median(ends)) if ends else 0)


def _sample_scores(rng: np.random.Generator, rule: Variant, mean: float, spread: float, attempts: int,
                   length: int) -> npt.NDArray[np.int8]:
    """Return random scores as int8 [pairs, attempts]."""
    if abs(mean) > spread:
        raise ValueError(f"mean {mean} of rule {rule}: the spread must be at least as large, not {spread}")
    sampled = rng.random((attempts, length))
    scores = np.where(sampled < (spread + mean) / 2, 1, np.where(sampled < spread, -1, 0))
    return np.ascontiguousarray(scores.T.astype(np.int8))

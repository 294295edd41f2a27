"""The guard of a change: is the newest version worse than the last one before it, under the old rule or the new?

Both arms of an anneal train the same weights, so arm against arm shows no harm: what is compared is the newest version
with the last one before the change, under each rule, in pairs of games of one seed with the sides swapped. A pair's
score is the newest version's mean result, 1 for a win and -1 for a loss.

- *fail*: under one of the rules the hypothesis "it is not worse" is refuted. If it is true of both rules, this happens
  with a probability of at most ``false_alarm``, over the whole length of an attempt and however often one looks.
- *pass*: under both rules the hypothesis "it loses ``loss`` or more" is refuted, each at the level ``miss``.
- *inconclusive*: neither, which holds the anneal where it is. No games are no failure.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from five.agent.anneal.e_process import EProcess, wealth_paths
from five.agent.anneal.variants import VARIANTS, Variant

CURVE_POINTS = 60  # of a course that is drawn


class Verdict(StrEnum):
    """What the guard makes of the pairs so far."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class GuardConfig(BaseModel):
    """How sure the guard is to be."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    false_alarm: float = Field(0.05, gt=0, lt=0.5, description="Chance that a change that does no harm under either "
                               "rule is ever called harmful, in an attempt of whatever length.")
    loss: float = Field(0.2, gt=0, lt=1, description="Smallest loss to be caught: mean result of a game, from 1 (won) "
                        "to -1 (lost), below zero. 0.2 is two games won in five.")
    miss: float = Field(0.05, gt=0, lt=0.5, description="Chance that a change that loses as much under a rule passes "
                        "by that rule.")
    pairs: int = Field(1000, ge=1, le=100_000, description="Pairs played under each rule at most. With this many and "
                       "no verdict the anneal holds until somebody decides.")


class Pair(NamedTuple):
    """Two games of one seed under one rule, the newest version on either side. ``results`` are its own: 1 won, 0 drawn,
    -1 lost. ``version`` is what was newest, ``share`` the change's share of games when that version was made. Each rule
    counts its pairs from 0."""

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
    """What is known under one rule: pairs, their mean score, and the evidence for harm and for harmlessness, as factors
    on a bet; ``fails`` and ``passes`` are the factors at which either is decided. ``course``: how both evidences have
    grown, (pairs, harm, harmless) after at most COURSE_POINTS of the pairs, the last among them."""

    rule: Variant
    pairs: int
    mean: float
    harm: float
    harmless: float
    fails: float
    passes: float
    course: tuple[tuple[int, float, float], ...] = ()


@dataclass(frozen=True)
class GuardDecision:
    """The verdict and what it rests on."""

    verdict: Verdict
    findings: tuple[VariantEvidence, ...]
    said: str  # in words


def decide(config: GuardConfig, pairs: Iterable[Pair], since_share: float = 0.0) -> GuardDecision:
    """The verdict on an attempt's pairs.

    Pairs count in the order of their numbers, up to the first that is still played: those that end first are not like
    the others, and a test that took them first could be wrong more often than it says.
    ``since_share``: a pass rests on pairs of versions that were made at this share or a larger one, as the change has
    shown nothing before; a failure rests on all pairs. Once failed is failed, whatever comes after.
    """
    rows = list(pairs)
    findings = tuple(_variant_evidence(config, rule, consecutive_pairs(rows, rule), since_share) for rule in VARIANTS)
    failed = [f for f in findings if f.harm >= f.fails]
    if failed:
        worst = max(failed, key=lambda f: f.harm)
        return GuardDecision(Verdict.FAIL, findings, f"under the {worst.rule} rule the newest version is worse than the "
                         f"one before the change: mean result {worst.mean:+.2f} over {worst.pairs} pairs")
    if all(f.harmless >= f.passes for f in findings):
        return GuardDecision(Verdict.PASS, findings, f"a loss of {config.loss:g} is ruled out under both rules")
    if not any(f.pairs for f in findings):
        return GuardDecision(Verdict.INCONCLUSIVE, findings, "no pairs have been played yet")
    open_rules = " and ".join(f.rule for f in findings if f.harmless < f.passes)
    if all(f.pairs >= config.pairs for f in findings):
        return GuardDecision(Verdict.INCONCLUSIVE, findings, f"all {config.pairs} pairs are played and the {open_rules} "
                         "rule is not decided: promote, set another share, abort or revert")
    return GuardDecision(Verdict.INCONCLUSIVE, findings, f"not decided yet under the {open_rules} rule")


def consecutive_pairs(pairs: Iterable[Pair], rule: Variant) -> list[Pair]:
    """A rule's pairs 0, 1, 2, ..., up to the first that is missing."""
    found = {pair.number: pair for pair in pairs if pair.rule is rule}
    return [found[n] for n in itertools.takewhile(found.__contains__, itertools.count())]


def _variant_evidence(config: GuardConfig, rule: Variant, pairs: Sequence[Pair], since_share: float) -> VariantEvidence:
    harm, harmless = EProcess(), EProcess(late_starts=False)
    shown = set(np.linspace(1, len(pairs), min(CURVE_POINTS, len(pairs))).round().astype(int).tolist())
    course = []
    for count, pair in enumerate(pairs, 1):
        harm.add(pair.score)
        if pair.share >= since_share - 1e-9:
            # The bet is that the mean is above -loss; scaled to [-1, 1] it is one on a mean below zero.
            harmless.add(-(pair.score + config.loss) / (1 + config.loss))
        if count in shown:
            course.append((count, harm.most, harmless.most))
    mean = float(np.mean([pair.score for pair in pairs])) if pairs else 0.0
    # Two rules share the false alarms; a pass needs both, so that each may miss on its own.
    return VariantEvidence(rule, len(pairs), mean, harm.most, harmless.most, len(VARIANTS) / config.false_alarm, 1 / config.miss,
                   tuple(course))


class TestPower(NamedTuple):
    """Of many simulated attempts: shares that failed and passed within ``pairs`` pairs a rule, and the median number of
    pairs until the verdict of those that had one (0: none had)."""

    failed: float
    passed: float
    pairs: int


def estimate_power(config: GuardConfig, means: Mapping[Variant, float], spread: float, attempts: int, seed: int,
             pairs: int | None = None) -> TestPower:
    """What the guard makes of changes whose pairs have these mean scores under each rule.

    Scores are drawn from -1, 0 and 1; ``spread`` is the chance of a score that is not zero (1: both games always go to
    the same version; 0.5 for even versions whose games are independent). Looks after every pair. Raises ValueError for
    a mean that the spread does not allow.
    """
    rng = np.random.default_rng(seed)
    length = config.pairs if pairs is None else pairs
    first_fail = np.full(attempts, length + 1)
    last_pass = np.zeros(attempts, np.int64)
    for rule in VARIANTS:
        mean = means[rule]
        if abs(mean) > spread:
            raise ValueError(f"a mean of {mean} needs a spread of at least as much, not {spread}")
        drawn = rng.random((attempts, length))
        up = (spread + mean) / 2
        scores = np.where(drawn < up, 1.0, np.where(drawn < spread, -1.0, 0.0))
        first_fail = np.minimum(first_fail, _first_true(wealth_paths(scores) >= len(VARIANTS) / config.false_alarm))
        bets = wealth_paths(-(scores + config.loss) / (1 + config.loss), late_starts=False)
        last_pass = np.maximum(last_pass, _first_true(bets >= 1 / config.miss))
    failed = (first_fail <= length) & (first_fail <= last_pass)
    passed = (last_pass <= length) & ~failed
    ends = np.where(failed, first_fail, last_pass)[failed | passed]
    return TestPower(float(failed.mean()), float(passed.mean()), int(np.median(ends)) if len(ends) else 0)


def _first_true(reached: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The pair, from 1, at which each row is first true; one more than there are for rows that never are."""
    never = reached.shape[1] + 1
    first: npt.NDArray[np.int64] = np.where(reached.any(1), reached.argmax(1) + 1, never).astype(np.int64)
    return first

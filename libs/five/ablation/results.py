"""Results of an ablation in comparable form: every evaluated version on one scale, with its run's training statistics.

Nothing here is stored. Tables and curves are computed from the results, the runs' records and the bots' games, of which
records and conditions may be missing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from five.ablation.conditions import Conditions
from five.ablation.config import AblationConfig
from five.ablation.rating_scale import PairCounts, RatingScale, Result, fit_scale, other_games
from five.ablation.training_records import Records, TrainingStatistics, measure_training


@dataclass(frozen=True)
class EvaluatedVersion:
    """An evaluated version: its number, the hero-steps ``samples`` that its run had learned from (each counted once;
    NaN without records) and ``minutes`` of wall clock; its rating ``mu`` with deviation ``sigma``; ``matches`` by
    opponent as in `five.ablation.evaluation.summary`."""

    number: int
    samples: float
    minutes: float
    mu: float
    sigma: float
    matches: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def score(self, opponent: str) -> float:
        """Return the mean score against a bot; a drawn game counts as half a win."""
        return float(self.matches[opponent]["score"])

    def last_hits(self, opponent: str, whose: str = "statistics") -> float:
        """Return the last hits a minute of game time and hero; ``whose`` is "opponent_statistics" for the bot's."""
        match = self.matches[opponent]
        return float(60 * match[whose].get("last_hits", float("nan")) / match["game_seconds"])

    def net_worth(self, opponent: str, whose: str = "statistics") -> float:
        """Return the mean net worth of a hero at the end of a game, gold."""
        return float(self.matches[opponent][whose].get("net_worth", float("nan")))


@dataclass(frozen=True)
class TrialRun:
    """Result of one trial. ``commit`` of the source at the evaluation; ``conditions`` of its training, None in earlier
    results; ``evaluation_load``: the machine's load after the evaluation, None if unknown."""

    variant: str
    seed: int
    versions: Sequence[EvaluatedVersion]
    training: TrainingStatistics
    commit: str = "unknown"
    conditions: Conditions | None = None
    evaluation_load: float | None = None

    @property
    def name(self) -> str:
        """Name of the trial."""
        return f"{self.variant}-seed{self.seed}"

    @property
    def training_commit(self) -> str:
        """Commit of the source at the training; that of the evaluation if it is unknown."""
        return self.conditions.commit if self.conditions else self.commit

    @property
    def last(self) -> EvaluatedVersion:
        """The last evaluated version."""
        return self.versions[-1]


@dataclass(frozen=True)
class AblationResults:
    """Results so far: runs by variant in order of the seeds, and their common scale."""

    runs: Mapping[str, Sequence[TrialRun]]
    scale: RatingScale

    def all(self) -> Iterable[TrialRun]:
        """Yield every run, variant by variant."""
        for runs in self.runs.values():
            yield from runs

    def commits(self) -> dict[str, int]:
        """Return the number of runs of each commit. A run trained and evaluated with two commits counts for both."""
        return dict(Counter(commit for run in self.all()
                            for commit in dict.fromkeys((run.training_commit, run.commit))))


def assemble(config: AblationConfig, results: Sequence[tuple[Result, Records]],
             anchors: Iterable[PairCounts] = ()) -> AblationResults:
    """Combine finished trials: each result with its version records (empty if lost), and the bots' games."""
    rating = config.run_config(config.baseline).rating
    scale = fit_scale([result for result, _ in results], anchors, rating, other_games(config))
    runs: dict[str, list[TrialRun]] = {}
    for result, records in results:
        training = measure_training(records)
        versions = []
        for evaluated in result["evaluated"]:
            skill = scale.of(result, evaluated["version"])
            versions.append(EvaluatedVersion(evaluated["version"], training.learned_at(evaluated["version"]),
                                             evaluated["minutes"], skill.mu, skill.sigma, evaluated["matches"]))
        conditions = result.get("conditions")
        runs.setdefault(result["variant"], []).append(
            TrialRun(result["variant"], result["seed"], versions, training, result.get("commit", "unknown"),
                     Conditions(**conditions) if conditions else None, result.get("machine", {}).get("load")))
    return AblationResults({variant: runs[variant] for variant in config.variants if variant in runs}, scale)

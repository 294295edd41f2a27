"""An ablation's kept results as they are compared: every judged version on one scale, and what its run learned from.

Nothing here is kept. Whatever a table or a curve shows is computed from the results, the runs' records and the
bots' games, so results that were made earlier are read in the same way.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from five.ablation.conditions import Conditions
from five.ablation.config import AblationConfig
from five.ablation.rating_scale import Counts, Result, Scale, fit, other_games
from five.ablation.training_records import Records, Training, measure


@dataclass(frozen=True)
class Version:
    """A judged version. Where it stands: its number, hero-steps ``samples`` that its run had learned from, each counted
    once (not a number where the run kept no records), and ``minutes`` of wall clock. What it showed: a rating ``mu``
    with deviation ``sigma``, and ``matches`` by opponent as `five.ablation.evaluation.summary` has them."""

    number: int
    samples: float
    minutes: float
    mu: float
    sigma: float
    matches: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def score(self, opponent: str) -> float:
        """Mean score of its games against a bot, draws as half a win."""
        return float(self.matches[opponent]["score"])

    def last_hits(self, opponent: str, whose: str = "statistics") -> float:
        """Last hits a minute of game time and hero; ``whose`` is "opponent_statistics" for the bot's."""
        match = self.matches[opponent]
        return float(60 * match[whose].get("last_hits", float("nan")) / match["game_seconds"])

    def net_worth(self, opponent: str, whose: str = "statistics") -> float:
        """Mean net worth of a hero when games end, gold."""
        return float(self.matches[opponent][whose].get("net_worth", float("nan")))


@dataclass(frozen=True)
class Run:
    """One trial's result. ``commit`` is the source's when it was judged, ``conditions`` what it trained under, None
    of an earlier result; ``load_judged`` is the machine's load when it had been judged, None where nobody looked."""

    arm: str
    seed: int
    versions: Sequence[Version]
    training: Training
    commit: str = "unknown"
    conditions: Conditions | None = None
    load_judged: float | None = None

    @property
    def name(self) -> str:
        """Of its trial."""
        return f"{self.arm}-seed{self.seed}"

    @property
    def trained_with(self) -> str:
        """The commit of the source that it was trained with, as far as it is known."""
        return self.conditions.commit if self.conditions else self.commit

    @property
    def last(self) -> Version:
        """The one it ended with."""
        return self.versions[-1]


@dataclass(frozen=True)
class Outcome:
    """Everything an ablation has brought so far: runs by arm, in order of the seeds, and the scale they stand on."""

    runs: Mapping[str, Sequence[Run]]
    scale: Scale

    def all(self) -> Iterable[Run]:
        """Every run, arm by arm."""
        for runs in self.runs.values():
            yield from runs

    def commits(self) -> dict[str, int]:
        """How many runs are of each commit; one that was trained with another than it was judged with is of both."""
        return dict(Counter(commit for run in self.all() for commit in dict.fromkeys((run.trained_with, run.commit))))


def assemble(config: AblationConfig, results: Sequence[tuple[Result, Records]],
             anchors: Iterable[Counts] = ()) -> Outcome:
    """Puts finished trials together: each one's result with the records of its versions (none where they are lost),
    and the games of the bots among themselves."""
    rating = config.run_config(config.baseline).rating
    scale = fit([result for result, _ in results], anchors, rating, other_games(config))
    runs: dict[str, list[Run]] = {}
    for result, records in results:
        training = measure(records)
        versions = []
        for judged in result["judged"]:
            skill = scale.of(result, judged["version"])
            versions.append(Version(judged["version"], training.learned_at(judged["version"]), judged["minutes"],
                                    skill.mu, skill.sigma, judged["matches"]))
        kept = result.get("conditions")
        runs.setdefault(result["arm"], []).append(
            Run(result["arm"], result["seed"], versions, training, result.get("commit", "unknown"),
                Conditions(**kept) if kept else None, result.get("machine", {}).get("load")))
    return Outcome({arm: runs[arm] for arm in config.arms if arm in runs}, scale)

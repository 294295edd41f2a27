"""Evaluation of a finished run: some of its versions play the bots.

A version's rating here depends on the bots' own games. Reports rate versions again, from all games of the ablation
(`five.ablation.rating_scale`).
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from dota.config import GameConfig
from five.ablation.config import AblationConfig
from five.ablation.evaluated_game import evaluated_game
from five.ablation.experiment import EvaluationConfig
from five.ablation.rating_scale import PairCounts, count_games
from five.agent.config import RatingConfig
from five.agent.ratings import Skill
from five.agent.skill_fit import fit_skills
from five.agent.standings import GameResult
from five.evaluation.archived_versions import ArchivedVersions
from five.evaluation.match import Contestant, PairedMatch, play
from rapid.atomic_file import replace_text


@dataclass(frozen=True)
class Anchors:
    """Skills of the bots, fitted once to games among themselves, and the share of drawn games between equals.
    ``games``: those games; empty for anchors stored without them."""

    skills: dict[str, Skill]
    draw_probability: float
    games: tuple[PairCounts, ...] = ()

    def save(self, path: Path) -> None:
        """Write the anchors atomically."""
        values = {"skills": {n: [s.mu, s.sigma] for n, s in self.skills.items()},
                  "draw_probability": self.draw_probability, "games": self.games}
        replace_text(path, json.dumps(values), sync=True)

    @classmethod
    def read(cls, path: Path) -> "Anchors | None":
        """Read a file that `save` wrote. Return None if it does not exist."""
        if not path.exists():
            return None
        tree = json.loads(path.read_text(encoding="utf-8"))
        return cls({n: Skill(*s) for n, s in tree["skills"].items()}, float(tree["draw_probability"]),
                   tuple(PairCounts(*row) for row in tree.get("games", ())))


@dataclass(frozen=True)
class VersionEvaluation:
    """An evaluated version. ``matches`` by opponent: won, drawn, lost, score with its 95 % interval, and mean
    statistics of both sides."""

    version: int
    minutes: float
    hero_steps: float
    mu: float
    sigma: float
    matches: dict[str, dict[str, Any]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def results_of(match: PairedMatch) -> list[GameResult]:
    """Return a match's games in the form of `five.agent.skill_fit.fit_skills`."""
    return [(match.first, match.second, game.score) for game in match.games]


def rate_anchors(game: GameConfig, evaluation: EvaluationConfig, rating: RatingConfig, seed: int = 0) -> Anchors:
    """Play games between every two of the bots and fit their skills."""
    games: list[GameResult] = []
    for first, second in combinations(evaluation.against, 2):
        games += results_of(play(game, Contestant.bot(first), Contestant.bot(second), evaluation.anchor_pairs, seed))
    fit = fit_skills(games, rating)
    return Anchors(fit.skills, fit.draw_probability, tuple(count_games(games)))


def evenly_spaced(versions: Sequence[dict[str, Any]], archived: Sequence[int], points: int) -> list[dict[str, Any]]:
    """Return the archived versions nearest to ``points`` evenly spaced times of a run; always with the last one.

    ``versions`` are the run's version records (``version``, ``minutes``, ``hero_steps``).
    """
    numbers = set(archived)
    found = [r for r in versions if r["version"] in numbers]
    if not found:
        return []
    end = found[-1]["minutes"]
    wanted = [end * (i + 1) / points for i in range(points)]
    chosen = {min(range(len(found)), key=lambda i: abs(found[i]["minutes"] - at)) for at in wanted}
    return [found[i] for i in sorted(chosen | {len(found) - 1})]


def evaluate_run(archive: ArchivedVersions, records: Sequence[dict[str, Any]], config: AblationConfig,
                 anchors: Anchors, say: Callable[[str], None] = lambda text: None, points: int | None = None,
                 final: bool = True) -> list[VersionEvaluation]:
    """Play and rate versions of a run that does not train now. Raises ValueError if it archived none.

    ``points``: versions to evaluate, by default the configured number; ``final``: the newest is the run's last one.
    """
    evaluation = config.evaluation
    game = evaluated_game(config.run_config(config.baseline).game, archive.config.game)
    chosen = evenly_spaced(records, archive.numbers(), points or evaluation.points)
    if not chosen:
        raise ValueError(f"{archive.folder.path}: none of the run's {len(records)} versions is archived, so none can "
                         "be evaluated: only multiples of store.archive_every "
                         f"({archive.config.store.archive_every}) are archived; set it to 1, or train for longer")
    evaluated = []
    for record in chosen:
        number, policy, _ = archive.load(record["version"])
        contestant = Contestant(f"version-{number}", policy)
        pairs = evaluation.final_pairs if final and record is chosen[-1] else evaluation.pairs
        games: list[GameResult] = []
        matches: dict[str, dict[str, Any]] = {}
        for name in evaluation.against:
            match = play(game, contestant, Contestant.bot(name), pairs, seed=number,
                         greedy=evaluation.greedy)
            games += results_of(match)
            matches[name] = summary(match)
            won, drawn, lost = match.counts
            say(f"version {number} against {name}: {won} won, {drawn} drawn, {lost} lost")
        fit = fit_skills(games, archive.config.rating, anchors.skills, anchors.draw_probability)
        skill = fit.skills[contestant.name]
        evaluated.append(VersionEvaluation(number, record["minutes"], record["hero_steps"], skill.mu, skill.sigma,
                                           matches))
    return evaluated


def summary(match: PairedMatch) -> dict[str, Any]:
    """Return a match as JSON values."""
    won, drawn, lost = match.counts
    ours, theirs = match.statistics()
    return {"won": won, "drawn": drawn, "lost": lost, "score": match.score, "interval": list(match.interval()),
            "game_seconds": match.seconds, "statistics": ours, "opponent_statistics": theirs}

"""One scale for all runs of an ablation: every game that its results tell of, fitted together when it is reported on.

What a version was rated while it was judged (``mu`` and ``sigma`` in a result) stands on bots that had played each
other alone. Random play loses all of those games, so where the next bot stands above it is the prior's choice, and
every version's rating moves with it. Versions are what connects the two: early ones lose to random play now and then,
late ones win against a bot now and then. So all counts are fitted at once, random play at 0 and everybody else free.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dota.spaces import Layout
from five.ablation.config import AblationConfig
from five.agent.config import RatingConfig
from five.agent.ratings import RANDOM, Skill
from five.agent.skill_fit import fit_skills
from five.agent.standings import GameResult

Result = Mapping[str, Any]


class PairCounts(NamedTuple):
    """Games between two players: won by ``first``, drawn, lost."""

    first: str
    second: str
    won: int
    drawn: int
    lost: int

    def games(self) -> Iterable[GameResult]:
        """One by one, as `five.agent.skill_fit.fit_skills` takes them."""
        for score, count in ((1.0, self.won), (0.5, self.drawn), (0.0, self.lost)):
            yield from [(self.first, self.second, score)] * count


@dataclass(frozen=True)
class RatingScale:
    """``skills`` of all players by name, points of TrueSkill, random play at 0; ``draw_probability`` of a game between
    equals, estimated from the same games unless none of them was drawn; ``games`` there were, ``drawn`` of them."""

    skills: dict[str, Skill]
    draw_probability: float
    games: int
    drawn: int

    def of(self, result: Result, version: int) -> Skill:
        """A judged version's. Its σ holds what its own games and everybody else's leave open."""
        return self.skills[player(result, version)]

    def bots(self) -> dict[str, Skill]:
        """The bots', weakest first."""
        found = {name: skill for name, skill in self.skills.items() if "/" not in name}
        return dict(sorted(found.items(), key=lambda item: item[1].mu))


def player(result: Result, version: int) -> str:
    """What a run's version is called among the players of the whole ablation."""
    return f"{result['arm']}-seed{result['seed']}/{version}"


def fit_scale(results: Iterable[Result], anchors: Iterable[PairCounts], rating: RatingConfig,
        other_game: Mapping[str, str] | None = None) -> RatingScale:
    """The scale of all judged versions' games and the bots' own.

    ``other_game`` has an arm's game by the arm's name where it isn't the baseline's: a bot of another game is another
    player, all but random play.
    """
    counts = list(anchors)
    for result in results:
        game = (other_game or {}).get(result["arm"])
        for judged in result["judged"]:
            for bot, match in judged["matches"].items():
                name = bot if game is None or bot == RANDOM else f"{bot} of {game}"
                counts.append(PairCounts(player(result, judged["version"]), name, match["won"], match["drawn"],
                                     match["lost"]))
    games = [game for count in counts for game in count.games()]
    found = fit_skills(games, rating)
    return RatingScale(found.skills, found.draw_probability, len(games), sum(count.drawn for count in counts))


def other_games(config: AblationConfig) -> dict[str, str]:
    """The arms that are judged in a game of their own because their policies see other observations than the
    baseline's (`five.ablation.evaluation.evaluate_run`), each with a name for its game."""
    def layout(arm: str) -> str:
        return str(Layout(config.run_config(arm).game).hash)

    own = layout(config.baseline)
    found: dict[str, str] = {}
    arms: dict[str, str] = {}  # the first arm of each game, after which it is called
    for arm in config.arms:
        if (seen := layout(arm)) != own:
            found[arm] = f"{arms.setdefault(seen, arm)}'s game"
    return found


def count_games(games: Sequence[GameResult]) -> list[PairCounts]:
    """Games by pair of players, in the order in which the pairs come."""
    sums: dict[tuple[str, str], list[int]] = {}
    for first, second, score in games:
        sums.setdefault((first, second), [0, 0, 0])[{1.0: 0, 0.5: 1, 0.0: 2}[score]] += 1
    return [PairCounts(*pair, *row) for pair, row in sums.items()]

"""Common rating scale of an ablation, fitted to all games of all its results when they are reported.

A version's rating from its evaluation (``mu`` and ``sigma`` in a result) depends on bots that played only each
other. Random play loses all of these games, so that the prior decides the distance to the next bot, and every rating
moves with it. Versions connect the two: early ones sometimes lose to random play, late ones sometimes beat a bot. So
all counts are fitted at once, with random play at 0 and all other players free.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dota.spaces import Layout
from five.ablation.config import AblationConfig
from five.ablation.evaluated_game import needs_own_game
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
        """Yield the games one by one, in the form of `five.agent.skill_fit.fit_skills`."""
        for score, count in ((1.0, self.won), (0.5, self.drawn), (0.0, self.lost)):
            yield from [(self.first, self.second, score)] * count


@dataclass(frozen=True)
class RatingScale:
    """Fitted ``skills`` of all players by name, TrueSkill points with random play at 0. ``draw_probability`` of a game
    between equals, estimated from the games if any was drawn; ``games`` and ``drawn`` count them."""

    skills: dict[str, Skill]
    draw_probability: float
    games: int
    drawn: int

    def of(self, result: Result, version: int) -> Skill:
        """Return the skill of an evaluated version. Its σ covers the uncertainty of all players' games."""
        return self.skills[player(result, version)]

    def bots(self) -> dict[str, Skill]:
        """Return the skills of the bots, weakest first."""
        found = {name: skill for name, skill in self.skills.items() if "/" not in name}
        return dict(sorted(found.items(), key=lambda item: item[1].mu))


def player(result: Result, version: int) -> str:
    """Return the name of a run's version among the players of the ablation."""
    return f"{result['variant']}-seed{result['seed']}/{version}"


def fit_scale(results: Iterable[Result], anchors: Iterable[PairCounts], rating: RatingConfig,
              other_game: Mapping[str, str] | None = None) -> RatingScale:
    """Return the scale of all evaluated versions' games and the bots' own games.

    ``other_game`` maps a variant to its game if that is not the baseline's: a bot in another game is another player,
    except random play.
    """
    counts = list(anchors)
    for result in results:
        game = (other_game or {}).get(result["variant"])
        for evaluated in result["evaluated"]:
            for bot, match in evaluated["matches"].items():
                name = bot if game is None or bot == RANDOM else f"{bot} of {game}"
                counts.append(PairCounts(player(result, evaluated["version"]), name, match["won"], match["drawn"],
                                         match["lost"]))
    games = [game for count in counts for game in count.games()]
    found = fit_skills(games, rating)
    return RatingScale(found.skills, found.draw_probability, len(games), sum(count.drawn for count in counts))


def other_games(config: AblationConfig) -> dict[str, str]:
    """Return the variants that are evaluated in their own game (`five.ablation.evaluated_game`), each with a name of
    that game."""
    baseline = config.run_config(config.baseline).game
    found: dict[str, str] = {}
    first: dict[str, str] = {}  # by layout, the first variant with it, which names the game
    for variant in config.variants:
        own = config.run_config(variant).game
        if needs_own_game(baseline, own):
            found[variant] = f"{first.setdefault(str(Layout(own).hash), variant)}'s game"
    return found


def count_games(games: Sequence[GameResult]) -> list[PairCounts]:
    """Return the counts of games by pair of players, in order of appearance."""
    sums: dict[tuple[str, str], list[int]] = {}
    for first, second, score in games:
        sums.setdefault((first, second), [0, 0, 0])[{1.0: 0, 0.5: 1, 0.0: 2}[score]] += 1
    return [PairCounts(*pair, *row) for pair, row in sums.items()]

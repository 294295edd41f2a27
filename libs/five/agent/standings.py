"""Standings of a run's rated players, as stored rows that can be shown without fitting anything."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from five.agent.ratings import Skill
from rapid.malformed import MALFORMED

Rows = Mapping[str, Any]
GameResult = tuple[str, str, float]  # two players, and the first one's result: 1 won, 0.5 drawn, 0 lost
FORMAT = 2
FORMAT_ROW, RATED = "format", "rated:"
_VERSION = "version-"


def player_name(version: int) -> str:
    """Return the player name of a version."""
    return f"{_VERSION}{version}"


def player_version(player: str) -> int | None:
    """Return the version of a player name, or None for a bot."""
    number = player.removeprefix(_VERSION)
    return int(number) if player.startswith(_VERSION) and number.isdigit() else None


@dataclass
class Standing:
    """A rated player.

    Attributes:
        player: name of a version or bot.
        mu: rating.
        sigma: standard deviation of the rating.
        trial: number of the rating within the run.
        draw_probability: between equal players, as fitted.
        reference: whether others are rated against it.
        aborted: number of aborted games.
        results: games won, drawn and lost, by opponent.
        scores: mean score (a drawn game is half) with its 95 % interval over pairs of games, by opponent.
    """

    player: str
    mu: float
    sigma: float
    trial: int
    draw_probability: float
    reference: bool = False
    aborted: int = 0
    results: dict[str, list[int]] = field(default_factory=dict)
    scores: dict[str, list[float]] = field(default_factory=dict)

    @property
    def skill(self) -> Skill:
        """Mean and uncertainty."""
        return Skill(self.mu, self.sigma)

    @property
    def games(self) -> int:
        """Number of games that the rating is based on."""
        return sum(map(sum, self.results.values()))


def parse_standings(rows: Rows, on_damaged: Callable[[ValueError], None] | None = None) -> list[Standing]:
    """Return the standings in a run's rows, strongest first. Rows of an earlier release give none.

    ``on_damaged`` receives the error of each damaged row, which is left out. Without it, raise ValueError for the first
    one.
    """
    found = []
    for name, row in rows.items() if rows.get(FORMAT_ROW) == FORMAT else ():
        if not name.startswith(RATED):
            continue
        try:
            found.append(_parse_standing(name, row))
        except ValueError as error:
            if on_damaged is None:
                raise
            on_damaged(error)
    return sorted(found, key=lambda s: (-s.mu, s.player))


def _parse_standing(name: str, row: Any) -> Standing:
    try:
        found = Standing(**row)
        numbers = (found.mu, found.sigma, found.draw_probability, *itertools.chain(*found.scores.values()))
        if not isinstance(found.player, str) or not all(map(math.isfinite, numbers)):
            raise ValueError("a value is out of range")
        for counts in found.results.values():
            if len(counts) != 3 or not all(isinstance(count, int) and count >= 0 for count in counts):
                raise ValueError(f"results {counts} are not the numbers of games won, drawn and lost")
        return found
    except MALFORMED as error:
        raise ValueError(f"the rating {name!r} is damaged: {error}") from None


def list_games(standing: Standing) -> Iterable[GameResult]:
    """Yield a player's games one by one, as `five.agent.skill_fit.fit_skills` takes them."""
    for other, counts in standing.results.items():
        for score, count in zip((1.0, 0.5, 0.0), counts, strict=True):
            yield from [(standing.player, other, score)] * count

"""Standings of a run's rated players, as rows that are kept: what whoever shows ratings reads, without fitting any."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from five.agent.ratings import Skill

Rows = Mapping[str, Any]
GameResult = tuple[str, str, float]  # two players, and the first one's result: 1 won, 0.5 drawn, 0 lost
FORMAT = 2
FORMAT_ROW, RATED = "format", "rated:"
_VERSION = "version-"


def player_name(version: int) -> str:
    """What a version is called as a player."""
    return f"{_VERSION}{version}"


def player_version(player: str) -> int | None:
    """The version that a player is; None for a bot."""
    number = player.removeprefix(_VERSION)
    return int(number) if player.startswith(_VERSION) and number.isdigit() else None


@dataclass
class Standing:
    """A rated player. ``results`` by opponent: games won, drawn, lost. ``scores`` by opponent: mean score (a draw is
    half) and its 95 % interval over pairs of games. ``trial``: the how manieth rating of the run it is."""

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
        """Games that it was rated by."""
        return sum(map(sum, self.results.values()))


def parse_standings(rows: Rows) -> list[Standing]:
    """The standings in a run's rows, strongest first; none from an earlier release's."""
    found = [Standing(**row) for name, row in rows.items() if name.startswith(RATED)] if (
        rows.get(FORMAT_ROW) == FORMAT) else []
    return sorted(found, key=lambda s: (-s.mu, s.player))


def list_games(standing: Standing) -> Iterable[GameResult]:
    """A player's games one by one, as `five.agent.skill_fit.fit_skills` takes them."""
    for other, counts in standing.results.items():
        for score, count in zip((1.0, 0.5, 0.0), counts, strict=True):
            yield from [(standing.player, other, score)] * count

"""What is known of a win probability before a game: how often its heroes were played together and against each other in
training, and how often the win head was right about games of the same kind.

Made of training games' records (the run's series ``games``): ``lineup``, two lists of heroes by their number in the
registry, ``win_probability``, what the policies of both sides made of their first observation, and ``winner``. A record
that lacks one of them, as those of older releases do, is left out of what it would tell.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.ratings import wilson_interval

EVIDENCE_GAMES = 20_000  # training games that are looked back upon
BINS = 10  # of predicted probabilities, equally wide
SCORES = {"radiant": 1.0, "dire": 0.0, "draw": 0.5}
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CalibrationBin:
    """Games whose prediction lay between ``low`` and ``high``: how many, the mean prediction, the mean result (a draw
    being half) and its 95 % interval. The last four are None without games."""

    low: float
    high: float
    games: int
    predicted: float | None = None
    won: float | None = None
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class Calibration:
    """``games`` of self-play that were predicted and ended, played by the versions ``first`` to ``last``; ``brier``,
    the mean squared error of the prediction, ``brier_constant``, that of always saying the mean result, ``error``, the
    mean distance between prediction and result over the bins, weighted by games. None without games."""

    games: int
    first: int | None
    last: int | None
    brier: float | None
    brier_constant: float | None
    error: float | None
    bins: tuple[CalibrationBin, ...]


@dataclass
class DraftEvidence:
    """Counts over the games that were added. ``heroes`` are all that the registry names, in its order.

    ``allied`` and ``opposed`` int64 [N, N]: games in which a hero of the row stood beside, or against, one of the
    column; on the diagonal of ``allied`` the teams that the hero was in.
    """

    heroes: tuple[str, ...]
    games: int = 0
    allied: Ints = field(init=False)
    opposed: Ints = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.heroes)
        self.allied = np.zeros((n, n), np.int64)
        self.opposed = np.zeros((n, n), np.int64)
        self._bins = np.zeros((BINS, 3))  # games, sum of predictions, sum of results
        self._squares = np.zeros(3)  # sums of (p - y)², y, y²
        self._versions: tuple[int, int] | None = None

    def add(self, record: Mapping[str, Any]) -> None:
        """Takes a game's record in."""
        teams = _line_up(record.get("lineup"), len(self.heroes))
        if teams is not None:
            radiant, dire = teams
            self.games += 1
            for team in teams:
                self.allied[team[:, None], team] += 1
            self.opposed[radiant[:, None], dire] += 1
            self.opposed[dire[:, None], radiant] += 1
        p, result = _prediction(record.get("win_probability")), SCORES.get(str(record.get("winner")))
        if record.get("outcome") != "selfplay" or result is None or p is None:
            return  # past versions and bots are predicted by a head that takes both sides for equals
        self._bins[min(int(p * BINS), BINS - 1)] += (1.0, p, result)
        self._squares += ((p - result) ** 2, result, result * result)
        version = int(record.get("version", -1))
        first, last = self._versions or (version, version)
        self._versions = min(first, version), max(last, version)

    def teams_with(self, hero: str) -> int:
        """Teams that a hero was in."""
        at = self._index(hero)
        return 0 if at is None else int(self.allied[at, at])

    def games_together(self, hero: str, other: str) -> int:
        """Games in which both were in one team."""
        a, b = self._index(hero), self._index(other)
        return 0 if a is None or b is None else int(self.allied[a, b])

    def games_against(self, hero: str, other: str) -> int:
        """Games in which one was in each team."""
        a, b = self._index(hero), self._index(other)
        return 0 if a is None or b is None else int(self.opposed[a, b])

    def _index(self, hero: str) -> int | None:
        return self.heroes.index(hero) if hero in self.heroes else None

    def calibration(self) -> Calibration:
        """How often the win head was right."""
        games = int(self._bins[:, 0].sum())
        bins = []
        for i, (count, predicted, won) in enumerate(self._bins.tolist()):
            edges = i / BINS, (i + 1) / BINS
            if not count:
                bins.append(CalibrationBin(*edges, 0))
                continue
            low, high = wilson_interval(won, int(count))
            bins.append(CalibrationBin(*edges, int(count), predicted / count, won / count, low, high))
        if not games or self._versions is None:
            return Calibration(0, None, None, None, None, None, tuple(bins))
        square, mean, mean_square = (self._squares / games).tolist()
        error = sum(b.games * abs(b.predicted - b.won) for b in bins if b.predicted is not None and b.won is not None)
        return Calibration(games, *self._versions, square, max(mean_square - mean * mean, 0.0), error / games,
                           tuple(bins))

    def to_json(self) -> dict[str, Any]:
        """JSON values that `from_json` reads."""
        return {"heroes": list(self.heroes), "games": self.games, "allied": self.allied.tolist(),
                "opposed": self.opposed.tolist(), "bins": self._bins.tolist(), "squares": self._squares.tolist(),
                "versions": self._versions}

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> "DraftEvidence":
        """Raises ValueError for what is no such tree."""
        try:
            made = cls(tuple(tree["heroes"]), int(tree["games"]))
            for name in ("allied", "opposed"):
                array = np.array(tree[name], np.int64)
                if array.shape != made.allied.shape:
                    raise ValueError(f"{name} has shape {list(array.shape)}")
                setattr(made, name, array)
            made._bins = np.array(tree["bins"], np.float64).reshape(BINS, 3)
            made._squares = np.array(tree["squares"], np.float64).reshape(3)
            made._versions = None if tree["versions"] is None else (int(tree["versions"][0]), int(tree["versions"][1]))
            return made
        except (KeyError, TypeError) as error:
            raise ValueError(f"no counts of games: {error}") from None


def _line_up(said: Any, heroes: int) -> tuple[Ints, Ints] | None:
    if not (isinstance(said, list) and len(said) == 2):
        return None
    radiant, dire = (np.array([hero for hero in team if 0 <= hero < heroes], np.int64) for team in said)
    return (radiant, dire) if radiant.size and dire.size else None


def _prediction(said: Any) -> float | None:
    """The probability that Radiant wins, from what both sides said of themselves; as a leaf's."""
    if not isinstance(said, list) or len(said) != 2 or not all(isinstance(p, int | float) for p in said):
        return None
    ours, theirs = said
    return (float(ours) + 1.0 - float(theirs)) / 2.0 if 0.0 <= ours <= 1.0 and 0.0 <= theirs <= 1.0 else None

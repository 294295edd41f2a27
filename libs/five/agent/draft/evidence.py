"""Evidence behind a win probability: how often pairs of heroes were played, and how well the win head is calibrated.

It is computed from records of training games (series ``games``): ``lineup``, two lists of hero numbers of the registry;
``win_probability``, both sides' prediction at their first observation; and ``winner``. Records of older releases that
lack a field do not count where it is needed.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.ratings import wilson_interval
from rapid.malformed import MALFORMED

MAX_GAMES = 2**53  # whole numbers that a float64 can hold
EVIDENCE_GAMES = 20_000  # most recent training games that count
BINS = 10  # equally wide, of predicted probabilities
VERDICT_GAMES = 30  # fewest games from which `Calibration.is_informative` is decided
VERDICT_ERRORS = 2.0  # standard errors by which the head must be better than a constant prediction
SCORES = {"radiant": 1.0, "dire": 0.0, "draw": 0.5}
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PredictionBin:
    """Games whose prediction was between ``low`` and ``high``.

    Attributes:
        games: number of games. Without games the others are None.
        predicted: mean prediction.
        won: mean result, a drawn game being half.
        at_least: lower end of the result's 95 % interval.
        at_most: upper end.
    """

    low: float
    high: float
    games: int
    predicted: float | None = None
    won: float | None = None
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class Calibration:
    """Calibration of the win head on self-play games; None where there are no games.

    Attributes:
        games: number of predicted and finished games.
        first: oldest version that played them.
        last: newest version that played them.
        brier: mean squared error of the prediction.
        brier_constant: mean squared error of always predicting the mean result.
        gain_error: standard error of ``brier_constant - brier``, from the differences in the games; also None for
            counts of an earlier release.
        error: expected calibration error, the mean distance between prediction and result over the bins.
        bins: the bins.
    """

    games: int
    first: int | None
    last: int | None
    brier: float | None
    brier_constant: float | None
    gain_error: float | None
    error: float | None
    bins: tuple[PredictionBin, ...]

    @property
    def is_informative(self) -> bool | None:
        """Whether the head predicts better than the mean result, by more than `VERDICT_ERRORS` standard errors; None if
        `VERDICT_GAMES` games are not known."""
        if self.games < VERDICT_GAMES or self.gain_error is None or self.brier is None or self.brier_constant is None:
            return None
        return self.brier_constant - self.brier > VERDICT_ERRORS * self.gain_error


def calibration_json(found: Calibration) -> dict[str, Any]:
    """Return the attributes and `Calibration.is_informative` as JSON values."""
    return {**asdict(found), "is_informative": found.is_informative}


@dataclass
class DraftEvidence:
    """Counts over the added games. ``heroes`` are all heroes of the registry, in its order.

    ``allied`` and ``opposed`` int64 [N, N] count the games in which two heroes were in one team or in opposite teams.
    Each game counts once, also if both teams had the heroes. The diagonal of ``allied`` counts the teams with the hero.
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
        # Sums of u² and u y with u = y² - (p - y)²; None if some games were counted without them.
        self._products: npt.NDArray[np.float64] | None = np.zeros(2)
        self._versions: tuple[int, int] | None = None

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a game's record."""
        teams = _line_up(record.get("lineup"), len(self.heroes))
        if teams is not None:
            radiant, dire = teams
            self.games += 1
            self.allied += np.outer(radiant, radiant) | np.outer(dire, dire)
            np.fill_diagonal(self.allied, self.allied.diagonal() + (radiant & dire))  # the hero was in two teams
            self.opposed += np.outer(radiant, dire) | np.outer(dire, radiant)
        p, result = _prediction(record.get("win_probability")), SCORES.get(str(record.get("winner")))
        if record.get("outcome") != "selfplay" or result is None or p is None:
            return  # the head assumes equal opponents, which past versions and bots are not
        self._bins[min(int(p * BINS), BINS - 1)] += (1.0, p, result)
        self._squares += ((p - result) ** 2, result, result * result)
        if self._products is not None:
            u = result * result - (p - result) ** 2
            self._products += (u * u, u * result)
        version = int(record.get("version", -1))
        first, last = self._versions or (version, version)
        self._versions = min(first, version), max(last, version)

    def teams_with(self, hero: str) -> int:
        """Return the number of teams with a hero."""
        at = self._index(hero)
        return 0 if at is None else int(self.allied[at, at])

    def games_together(self, hero: str, other: str) -> int:
        """Return the number of games with both heroes in one team."""
        a, b = self._index(hero), self._index(other)
        return 0 if a is None or b is None else int(self.allied[a, b])

    def games_against(self, hero: str, other: str) -> int:
        """Return the number of games with the heroes in opposite teams."""
        a, b = self._index(hero), self._index(other)
        return 0 if a is None or b is None else int(self.opposed[a, b])

    def _index(self, hero: str) -> int | None:
        return self.heroes.index(hero) if hero in self.heroes else None

    def calibration(self) -> Calibration:
        """Return the calibration of the win head."""
        games = int(self._bins[:, 0].sum())
        bins = []
        for i, (count, predicted, won) in enumerate(self._bins.tolist()):
            edges = i / BINS, (i + 1) / BINS
            if not count:
                bins.append(PredictionBin(*edges, 0))
                continue
            low, high = wilson_interval(won, int(count))
            bins.append(PredictionBin(*edges, int(count), predicted / count, won / count, low, high))
        if not games or self._versions is None:
            return Calibration(0, None, None, None, None, None, None, tuple(bins))
        square, mean, mean_square = (self._squares / games).tolist()
        error = sum(b.games * abs(b.predicted - b.won) for b in bins if b.predicted is not None and b.won is not None)
        return Calibration(games, *self._versions, square, max(mean_square - mean * mean, 0.0), self._gain_error(games),
                           error / games, tuple(bins))

    def _gain_error(self, games: int) -> float | None:
        """Return the standard error of the mean of (m - y)² - (p - y)² over the games, with m the mean result.

        The difference is u + m² - 2 m y, so its variance is var u + 4 m² var y - 4 m cov(u, y).
        """
        if self._products is None or games < 2:
            return None
        square, m, mean_square = (self._squares / games).tolist()
        mean_u = mean_square - square
        u_square, u_y = (self._products / games).tolist()
        variance = u_square - mean_u**2 + 4 * m * m * (mean_square - m * m) - 4 * m * (u_y - mean_u * m)
        return math.sqrt(max(variance, 0.0) / (games - 1))

    def to_json(self) -> dict[str, Any]:
        """Return JSON values that `from_json` reads."""
        return {"heroes": list(self.heroes), "games": self.games, "allied": self.allied.tolist(),
                "opposed": self.opposed.tolist(), "bins": self._bins.tolist(), "squares": self._squares.tolist(),
                "products": None if self._products is None else self._products.tolist(), "versions": self._versions}

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> "DraftEvidence":
        """Read the result of `to_json`. Raise ValueError for other values."""
        try:
            made = cls(tuple(tree["heroes"]), int(tree["games"]))
            for name in ("allied", "opposed"):
                array = np.array(tree[name], np.int64)
                if array.shape != made.allied.shape:
                    raise ValueError(f"{name} has shape {list(array.shape)}")
                setattr(made, name, array)
            made._bins = np.array(tree["bins"], np.float64).reshape(BINS, 3)
            made._squares = np.array(tree["squares"], np.float64).reshape(3)
            products = tree.get("products")  # None before release 0.2
            made._products = None if products is None else np.array(products, np.float64).reshape(2)
            sums = made._squares if made._products is None else np.concatenate((made._squares, made._products))
            finite = np.isfinite(made._bins).all() and (np.abs(sums) <= MAX_GAMES).all()
            if not finite or (made._bins[:, 0] < 0).any() or (made._bins[:, 0] > MAX_GAMES).any():
                raise ValueError("a number of the calibration is out of range")
            made._versions = None if tree["versions"] is None else (int(tree["versions"][0]), int(tree["versions"][1]))
            return made
        except MALFORMED as error:
            raise ValueError(f"not draft evidence: {error}") from None


def _line_up(value: Any, heroes: int) -> tuple[Bools, Bools] | None:
    """Return which heroes each team has, bool [heroes], or None without a line-up."""
    if not (isinstance(value, list) and len(value) == 2):
        return None
    teams = np.zeros((2, heroes), np.bool_)
    for team, line_up in zip(teams, value, strict=True):
        team[[hero for hero in line_up if 0 <= hero < heroes]] = True
    return (teams[0], teams[1]) if teams.any(1).all() else None


def _prediction(value: Any) -> float | None:
    """Return the probability that Radiant wins from both sides' predictions, as
    `five.agent.draft.leaves.win_from_heads` does."""
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(p, int | float) for p in value):
        return None
    radiant, dire = value
    return (float(radiant) + 1.0 - float(dire)) / 2.0 if 0.0 <= radiant <= 1.0 and 0.0 <= dire <= 1.0 else None

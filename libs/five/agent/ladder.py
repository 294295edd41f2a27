"""The ladder on which versions are rated (Berner et al. 2019, appendix J).

Random play is 0: the first version is rated against it alone. Then the anchors, bots of known strengths, are rated once
against each other, and from then on one version after another plays the references near it: anchors, and past versions
that became references while the agent grew. A reference's rating never changes, but for once: where the anchors' games
do not tell how far they are from random play, all who are rated are fitted again when versions have measured it
(`five.agent.anchor_refit`).

Games are assigned before they are played, a set number for each pairing, in pairs with sides swapped and equal seeds.
Every one of them ends, or is counted as aborted: a rating that took what ended first would count short games more
often. A rating is fitted to all games of its round at once (`five.agent.skill_fit`), so their order is irrelevant.

Nothing here stores anything. What may happen is asked for and answered as rows to be written, all of them or none
(JSON values by name, None to remove one); `take` is told of what was.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from itertools import combinations
from typing import Any, NamedTuple

from five.agent.anchor_refit import anchors_are_measured, refit_standings
from five.agent.config import RatingConfig
from five.agent.ratings import PINNED_SIGMA, RANDOM, Skill, pairs_interval
from five.agent.skill_fit import FitError, fit_skills
from five.agent.standings import FORMAT, FORMAT_ROW, RATED, GameResult, Rows, Standing, list_games

log = logging.getLogger(__name__)
ANCHORS = "anchors"  # the player of the trial in which these are rated
WINDOW = 8  # versions rated last, whose games the share of draws is estimated from
MORE_ROUNDS = 4  # of a rating at most, for a version that was looked for far from where it is
_OPEN, _GAVE_UP = "open", "gave_up"
_UNMEASURED = "unmeasured"  # there while the anchors' distance from random play is the prior's; never in earlier runs
_GAME = "game:"


class AssignedGame(NamedTuple):
    """A game to be played: ``first`` plays ``side`` (0 Radiant, 1 Dire). Both games of a ``pair`` of these two players
    have the same seed."""

    id: str
    first: str
    second: str
    side: int
    seed: int
    pair: int


@dataclass
class RatingTrial:
    """A rating under way. ``pairings``: (first, second, pairs of games). ``ended`` by game: its row."""

    number: int
    player: str
    mu: float
    rounds: int
    pairings: list[tuple[str, str, int]]
    aborted: list[str] = field(default_factory=list)
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)


class RatingOutcome(NamedTuple):
    """How a trial ended: the rows to be written, who is rated by it, and the games that it ended with. ``again``: who
    had a rating before and has another one now."""

    rows: dict[str, Any]
    standings: list[Standing]
    games: list[dict[str, Any]]
    again: Sequence[Standing] = ()


class Ladder:
    """Standings of a run and the rating under way, as they follow from the rows that were taken. Not thread-safe.

    ``seed`` is what the games' seeds are made of.
    """

    def __init__(self, config: RatingConfig, seed: int = 0) -> None:
        self.config = config
        self.standings: dict[str, Standing] = {}
        self.trial: RatingTrial | None = None
        self.gave_up = ""
        self.unmeasured = False
        self._seed = seed
        self._made: tuple[Any, dict[str, AssignedGame]] = (None, {})
        self._foreign: list[str] = []
        self._stray: dict[str, dict[str, Any]] = {}  # games that came before their trial

    def take(self, rows: Rows, whole: bool) -> None:
        """Takes in rows that were written (None: removed), or all that there are."""
        if whole:
            self.standings, self.trial, self.gave_up, self._stray = {}, None, "", {}
            self.unmeasured = False
            # What an earlier release kept: ratings of another kind, on another scale.
            self._foreign = [] if rows.get(FORMAT_ROW) == FORMAT else sorted(rows)
            if self._foreign:
                return
        for name, row in rows.items():
            if name == _OPEN:
                self._take_open(row)
            elif name == _GAVE_UP:
                self.gave_up = row or ""
            elif name == _UNMEASURED:
                self.unmeasured = row is not None
            elif name.startswith(RATED):
                player = name.removeprefix(RATED)
                if row is None:
                    self.standings.pop(player, None)
                else:
                    self.standings[player] = Standing(**row)
            elif name.startswith(_GAME) and row is not None:
                games = self._stray if self.trial is None else self.trial.ended
                games[name.removeprefix(_GAME)] = row
            elif name in self._foreign and row is None:
                self._foreign.remove(name)
        if self.trial is not None and self._stray:
            self.trial.ended.update({k: v for k, v in self._stray.items() if k.startswith(f"{self.trial.number}.")})
            self._stray = {}

    def _take_open(self, row: dict[str, Any] | None) -> None:
        ended = self.trial.ended if self.trial is not None and row and self.trial.number == row["number"] else {}
        self.trial = None if row is None else RatingTrial(
            row["number"], row["player"], row["mu"], row["rounds"],
            [(first, second, int(pairs)) for first, second, pairs in row["pairings"]], list(row["aborted"]), ended)

    @property
    def anchored(self) -> bool:
        """Whether the anchors are rated."""
        return all(name in self.standings for name in self.config.anchors)

    @property
    def references(self) -> dict[str, Skill]:
        """Whom others are rated against."""
        return {name: s.skill for name, s in self.standings.items() if s.reference}

    @property
    def last(self) -> Standing | None:
        """The version that was rated last."""
        rated = self._versions()
        return rated[-1] if rated else None

    def _versions(self) -> list[Standing]:
        return sorted((s for s in self.standings.values() if s.player not in self.config.anchors),
                      key=lambda s: s.trial)

    # What may happen, as rows to be written.

    def begin(self, player: str, mu: float | None = None) -> dict[str, Any] | None:
        """Opens the rating of a player; before that of the second one, those of the anchors. None while one is open,
        and for who is rated already. To be asked until a rating is open: the scale's zero is noted first.
        ``mu`` is where the player is looked for, by default where the one rated last is."""
        if self.trial is not None or player in self.standings or player == self.gave_up:
            return None
        number = 1 + max((s.trial for s in self.standings.values()), default=-1)
        if RANDOM not in self.standings:  # known without a game: the first version need not wait for the other anchors
            zero = Standing(RANDOM, 0.0, PINNED_SIGMA, number, self.config.draw_probability, True)
            return {name: None for name in self._foreign} | {FORMAT_ROW: FORMAT} | self._rated([zero])
        if self.last is None:
            games = min(self.config.games_of_first, self.config.games_per_rating)
            return self._opened(RatingTrial(number, player, 0.0, 1, self._assignment(player, 0.0, {}, games, ())))
        if not self.anchored:
            pairs = (self.config.games_per_anchor_pair + 1) // 2
            return self._opened(RatingTrial(number, ANCHORS, 0.0, 1, [
                (str(first), str(second), pairs) for first, second in combinations(self.config.anchors, 2)]))
        mu = self.last.mu if mu is None else mu
        pairings = self._assignment(player, mu, {}, self.config.games_per_rating, self.config.always)
        return self._opened(RatingTrial(number, player, mu, 1, pairings))

    def left(self, players: Collection[str]) -> dict[str, Any] | None:
        """Players that nobody is to be rated against any more. Their ratings stand; a rating under way of one of them,
        or against one, ends without a result. None where there is nothing of that."""
        gone = [self.standings[name] for name in players if name in self.references]
        rows = self._rated([replace(standing, reference=False) for standing in gone])
        if self.trial is not None and any({first, second} & set(players) for first, second, _ in self.trial.pairings):
            rows |= self._closed(self.trial)
        return rows or None

    def reported(self, game: str, score: float, seconds: float, statistics: Sequence[float]) -> dict[str, Any] | None:
        """A game has ended: ``score`` of its first player 1 won, 0.5 drawn, 0 lost; ``seconds`` of game time;
        ``statistics`` of the first player, kept with it. None for a game told of before, and for one that is none of
        the trial's. Raises ValueError for another score."""
        if score not in (0.0, 0.5, 1.0):
            raise ValueError(f"a score is 1, 0.5 or 0, not {score}")
        if not self._awaited(game):
            return None
        return {f"{_GAME}{game}": {"score": float(score), "seconds": float(seconds),
                                   "statistics": [float(s) for s in statistics]}}

    def aborted(self, game: str) -> dict[str, Any] | None:
        """A game cannot be played: it is counted as aborted, and none is played in its place."""
        if self.trial is None or not self._awaited(game):
            return None
        return self._opened(RatingTrial(**{**vars(self.trial), "aborted": [*self.trial.aborted, game]}))

    def games(self) -> list[AssignedGame]:
        """Assigned games of the open trial that have neither ended nor been aborted, in order of their assignment."""
        return [] if self.trial is None else [g for g in self._all().values() if self._awaited(g.id)]

    def proceed(self) -> RatingOutcome | None:
        """What follows when every game of the round has ended: another round (no standings), or the rating. None
        before that."""
        if self.trial is None or self.games():
            return None
        if self.trial.player == ANCHORS:
            return self._anchors_rated(self.trial)
        standing = self._fitted(self.trial)
        if standing is None:
            return RatingOutcome(self._closed(self.trial) | {_GAVE_UP: self.trial.player}, [], [])
        met = {second: sum(p for _, s, p in self.trial.pairings if s == second) for _, second, _ in
               self.trial.pairings}
        target = self.config.games_per_rating if self.anchored else self.config.games_of_first
        left = min(target, self.config.games_per_rating) - len(self._all())
        far = not any(abs(self.standings[name].mu - standing.mu) <= self.config.nearby for name in met)
        unmet = [name for name in self.nearby(standing.mu) if name not in met]
        lost = far and bool(unmet) and self.trial.rounds < target / self.config.games_per_round + MORE_ROUNDS
        if left > 1 or lost:
            more = self._assignment(self.trial.player, standing.mu, met, max(left, self.config.games_per_round // 2, 2),
                                    ())
            grown = RatingTrial(**{**vars(self.trial), "rounds": self.trial.rounds + 1,
                             "pairings": [*self.trial.pairings, *more]})
            return RatingOutcome(self._opened(grown), [], [])
        fitted = refit_standings({**self.standings, standing.player: standing}, self.config) if self.unmeasured else None
        again = fitted or {}
        standing = again.pop(standing.player, standing)
        references = [again.get(name, self.standings[name]).mu for name in self.references]
        standing.reference = self._fills_a_gap(standing, references)
        done = self._closed(self.trial) | self._rated([standing, *again.values()])
        if fitted is not None:
            done[_UNMEASURED] = None
        return RatingOutcome(done, [standing], list(self.trial.ended.values()), list(again.values()))

    def nearby(self, mu: float) -> list[str]:
        """References within ``nearby`` points of a rating, nearest first; the nearest one when there is none."""
        order = sorted(self.references, key=lambda name: abs(self.references[name].mu - mu))
        within = [name for name in order if abs(self.references[name].mu - mu) <= self.config.nearby]
        return within or order[:1]

    # Assignment.

    def _assignment(self, player: str, mu: float, met: Mapping[str, int], games: int, always: Sequence[str]
                    ) -> list[tuple[str, str, int]]:
        """A round's pairings: its pairs of games in equal shares over the references that are near, the nearest first,
        those that were met least before the others."""
        pairs = (min(games, self.config.games_per_round) + 1) // 2
        near = self.nearby(mu)
        extra = [name for name in always if name not in near]
        names: list[str] = sorted([*near, *extra], key=lambda name: met.get(name, 0))
        share = {name: pairs // len(names) + (i < pairs % len(names)) for i, name in enumerate(names)}
        share.update({name: max(1, share[name]) for name in extra})
        return [(player, name, count) for name, count in share.items() if count]

    def _all(self) -> Mapping[str, AssignedGame]:
        """Every game assigned in the open trial, by id, in order. They are made once a round, not for every report."""
        assert self.trial is not None
        key = (self.trial.number, tuple(self.trial.pairings))
        if self._made[0] != key:
            self._made = key, {g.id: g for g in self._assigned(*key)}
        return self._made[1]

    def _assigned(self, number: int, pairings: Iterable[tuple[str, str, int]]) -> Iterable[AssignedGame]:
        begun = dict[tuple[str, str], int]()
        for first, second, pairs in pairings:
            start = begun.get((first, second), 0)
            begun[first, second] = start + pairs
            for pair in range(start, start + pairs):
                digest = blake2b(f"{self._seed}/{first}/{second}/{pair}".encode(), digest_size=8).digest()
                for side in (0, 1):
                    yield AssignedGame(f"{number}.{first}.{second}.{pair}.{side}", first, second, side,
                                   int.from_bytes(digest, "little"), pair)

    def _awaited(self, game: str) -> bool:
        """Whether a game is one of the open trial's that has neither ended nor been aborted."""
        return self.trial is not None and game in self._all() and game not in self.trial.ended and (
            game not in self.trial.aborted)

    # Rating.

    def _anchors_rated(self, trial: RatingTrial) -> RatingOutcome:
        standings = []
        try:
            fit = fit_skills(self._results(trial), self.config)
        except FitError:  # all games of random play were aborted: all are played again
            return RatingOutcome(self._closed(trial), [], [])
        for name in self.config.anchors:
            if name in fit.skills:
                skill = fit.skills[name]
                standings.append(Standing(name, skill.mu, skill.sigma, trial.number, fit.draw_probability, True,
                                          len(trial.aborted), *self._told(trial, name)))
        if len(standings) < len(self.config.anchors):  # all games of one were aborted: they are played again
            return RatingOutcome(self._closed(trial), [], [])
        rows = self._closed(trial) | self._rated(standings)
        if not anchors_are_measured({s.player: s for s in standings}, self.config):
            rows[_UNMEASURED] = True
        return RatingOutcome(rows, standings, list(trial.ended.values()))

    def _fitted(self, trial: RatingTrial) -> Standing | None:
        """Return the player's rating, or None if its games cannot be fitted or all were aborted."""
        if not trial.ended:
            return None
        games = self._results(trial)
        recent = self._versions()[-WINDOW:]
        known = {name: standing.skill for name, standing in self.standings.items()}
        others = [g for s in recent for g in list_games(s)]
        for name in self.config.anchors:  # each game stands with both players
            if name in self.standings:
                others += [g for g in list_games(self.standings[name]) if g[0] < g[1]]
        try:
            draws = fit_skills([*games, *others], self.config, known).draw_probability
            skill = fit_skills(games, self.config, known, draws).skills[trial.player]
        except FitError as error:
            log.warning("rating cannot be fitted player=%s: %s", trial.player, error)
            return None
        return Standing(trial.player, skill.mu, skill.sigma, trial.number, draws, False, len(trial.aborted),
                        *self._told(trial, trial.player))

    def _results(self, trial: RatingTrial) -> list[GameResult]:
        return [(g.first, g.second, trial.ended[g.id]["score"]) for g in self._all().values()
                if g.id in trial.ended]

    def _told(self, trial: RatingTrial, player: str) -> tuple[dict[str, list[int]], dict[str, list[float]]]:
        """A player's results and scores by opponent, of a trial's games."""
        results: dict[str, list[int]] = {}
        pairs: dict[str, dict[int, list[float]]] = {}
        for game in self._all().values():
            if game.id not in trial.ended or player not in (game.first, game.second):
                continue
            score = trial.ended[game.id]["score"]
            other, score = (game.second, score) if game.first == player else (game.first, 1.0 - score)
            results.setdefault(other, [0, 0, 0])[{1.0: 0, 0.5: 1, 0.0: 2}[score]] += 1
            pairs.setdefault(other, {}).setdefault(game.seed, []).append(score)
        scores = {}
        for other, (won, drawn, lost) in results.items():
            means = [sum(p) / len(p) for p in pairs[other].values()]
            scores[other] = [(won + 0.5 * drawn) / (won + drawn + lost), *pairs_interval(means)]
        return results, scores

    def _fills_a_gap(self, standing: Standing, references: Sequence[float]) -> bool:
        """Whether a version becomes a reference: none is near it, and it is known well enough to measure by. One that
        has left all behind becomes one however little is known: what comes after it would find nobody to play."""
        gaps = [standing.mu - mu for mu in references]
        known = standing.sigma <= self.config.nearby / 2 or min(gaps) > 0
        return self.anchored and min(map(abs, gaps)) >= self.config.reference_spacing and known

    # Rows.

    @staticmethod
    def _opened(trial: RatingTrial) -> dict[str, Any]:
        return {_OPEN: {"number": trial.number, "player": trial.player, "mu": trial.mu, "rounds": trial.rounds,
                        "pairings": [list(p) for p in trial.pairings], "aborted": trial.aborted}}

    @staticmethod
    def _closed(trial: RatingTrial) -> dict[str, Any]:
        return {_OPEN: None, **{f"{_GAME}{game}": None for game in trial.ended}}

    @staticmethod
    def _rated(standings: Iterable[Standing]) -> dict[str, Any]:
        return {f"{RATED}{s.player}": asdict(s) for s in standings}

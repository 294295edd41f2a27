"""The ladder, which schedules rating games and rates versions (Berner et al. 2019, appendix J).

Random play has rating 0, and the first version is rated against it alone. Then the anchors, scripted bots, are rated
once against each other. From then on each version plays the references near its rating: anchors, and past versions that
became references. A reference's rating changes at most once: if the anchors' own games leave their distance from random
play open, all ratings are fitted again when versions have measured it (`five.agent.anchor_refit`).

Games are assigned before they are played, a fixed number per pairing, in pairs with swapped sides and equal seeds. Each
of them ends or counts as aborted, because a rating from the games that end first would favour short games. A rating is
fitted to all games of its rounds at once (`five.agent.skill_fit`), so their order does not matter.

The ladder stores nothing itself. Its methods return rows to write atomically (JSON values by name, None to remove a
row), and `apply_rows` takes rows that were written.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from itertools import combinations
from typing import Any, NamedTuple

from five.agent.anchor_refit import anchors_are_measured, refit_standings
from five.agent.config import RatingConfig
from five.agent.ratings import PINNED_SIGMA, RANDOM, Skill, pairs_interval
from five.agent.skill_fit import FitError, fit_skills
from five.agent.standings import FORMAT, FORMAT_ROW, RATED, GameResult, Rows, Standing, list_games, player_version

log = logging.getLogger(__name__)
ANCHORS = "anchors"  # player name of the trial that rates the anchors
DRAW_WINDOW = 8  # last rated versions whose games estimate the draw probability
EXTRA_ROUNDS = 4  # at most, for a version whose rating is far from the expected one
_OPEN_ROW, _GAVE_UP_ROW = "open", "gave_up"
_UNMEASURED_ROW = "unmeasured"  # exists while the anchors' distance from random play is open
_GAME_PREFIX = "game:"


class AssignedGame(NamedTuple):
    """A game to play. ``first`` plays ``side`` (0 Radiant, 1 Dire). Both games of a ``pair`` have the same seed."""

    id: str
    first: str
    second: str
    side: int
    seed: int
    pair: int


@dataclass
class RatingTrial:
    """A rating in progress. ``pairings``: (first, second, pairs of games). ``ended``: rows of finished games by id."""

    number: int
    player: str
    mu: float
    rounds: int
    pairings: list[tuple[str, str, int]]
    aborted: list[str] = field(default_factory=list)
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)


class RatingOutcome(NamedTuple):
    """Result of a round: rows to write, new ``standings`` with their ``games``, and ``refitted`` older standings."""

    rows: dict[str, Any]
    standings: list[Standing]
    games: list[dict[str, Any]]
    refitted: Sequence[Standing] = ()


class Ladder:
    """Standings of a run and the rating in progress, derived from rows. Not thread-safe. ``seed`` seeds the games."""

    def __init__(self, config: RatingConfig, seed: int = 0) -> None:
        self.config = config
        self.standings: dict[str, Standing] = {}
        self.trial: RatingTrial | None = None
        self.gave_up = ""
        self.unmeasured = False
        self._seed = seed
        self._assigned_cache: tuple[Any, dict[str, AssignedGame]] = (None, {})
        self._obsolete_rows: list[str] = []
        self._early_games: dict[str, dict[str, Any]] = {}  # rows of games that arrived before their trial

    def apply_rows(self, rows: Rows, whole: bool) -> None:
        """Apply written rows (None: removed). ``whole``: they are all rows and replace the present state."""
        if whole:
            self.standings, self.trial, self.gave_up, self._early_games = {}, None, "", {}
            self.unmeasured = False
            # Rows of an earlier release hold ratings of another kind, on another scale.
            self._obsolete_rows = [] if rows.get(FORMAT_ROW) == FORMAT else sorted(rows)
            if self._obsolete_rows:
                return
        for name, row in rows.items():
            if name == _OPEN_ROW:
                self._apply_open_row(row)
            elif name == _GAVE_UP_ROW:
                self.gave_up = row or ""
            elif name == _UNMEASURED_ROW:
                self.unmeasured = row is not None
            elif name.startswith(RATED):
                player = name.removeprefix(RATED)
                if row is None:
                    self.standings.pop(player, None)
                else:
                    self.standings[player] = Standing(**row)
            elif name.startswith(_GAME_PREFIX) and row is not None:
                games = self._early_games if self.trial is None else self.trial.ended
                games[name.removeprefix(_GAME_PREFIX)] = row
            elif name in self._obsolete_rows and row is None:
                self._obsolete_rows.remove(name)
        if self.trial is not None and self._early_games:
            prefix = f"{self.trial.number}."
            self.trial.ended.update({k: v for k, v in self._early_games.items() if k.startswith(prefix)})
            self._early_games = {}

    def _apply_open_row(self, row: dict[str, Any] | None) -> None:
        ended = self.trial.ended if self.trial is not None and row and self.trial.number == row["number"] else {}
        self.trial = None if row is None else RatingTrial(
            row["number"], row["player"], row["mu"], row["rounds"],
            [(first, second, int(pairs)) for first, second, pairs in row["pairings"]], list(row["aborted"]), ended)

    @property
    def has_rated_anchors(self) -> bool:
        """Whether all anchors are rated."""
        return all(name in self.standings for name in self.config.anchors)

    @property
    def references(self) -> dict[str, Skill]:
        """Skills of the players that others are rated against."""
        return {name: s.skill for name, s in self.standings.items() if s.reference}

    @property
    def last_rated(self) -> Standing | None:
        """Standing of the version that was rated last."""
        rated = self._rated_versions()
        return rated[-1] if rated else None

    def _rated_versions(self) -> list[Standing]:
        # A bot that the configuration no longer names as an anchor keeps its rating.
        return sorted((s for s in self.standings.values() if player_version(s.player) is not None),
                      key=lambda s: s.trial)

    def begin_rating(self, player: str, mu: float | None = None) -> dict[str, Any] | None:
        """Return rows that open a player's rating, or None if one is open or the player is rated or given up.

        Earlier steps come first: the rating of random play, anchors that the configuration names again, and before the
        second version the anchors' ratings. So call it until a trial is open. ``mu`` is the expected rating, by default
        that of the last rated version.
        """
        if self.trial is not None or player in self.standings or player == self.gave_up:
            return None
        number = 1 + max((s.trial for s in self.standings.values()), default=-1)
        if RANDOM not in self.standings:  # needs no games, so the first version does not wait for the other anchors
            zero = Standing(RANDOM, 0.0, PINNED_SIGMA, number, self.config.draw_probability, True)
            return {name: None for name in self._obsolete_rows} | {FORMAT_ROW: FORMAT} | self._rating_rows([zero])
        retired = [s for name in self.config.anchors if (s := self.standings.get(name)) and not s.reference]
        if retired:  # anchors that an earlier configuration did not name
            return self._rating_rows([replace(standing, reference=True) for standing in retired])
        if self.last_rated is None:
            games = min(self.config.first_rating_games, self.config.games_per_rating)
            return self._open_rows(RatingTrial(number, player, 0.0, 1, self._plan_pairings(player, 0.0, {}, games, ())))
        if not self.has_rated_anchors:
            pairs = (self.config.games_per_anchor_pair + 1) // 2
            return self._open_rows(RatingTrial(number, ANCHORS, 0.0, 1, [
                (str(first), str(second), pairs) for first, second in combinations(self.config.anchors, 2)]))
        mu = self.last_rated.mu if mu is None else mu
        pairings = self._plan_pairings(player, mu, {}, self.config.games_per_rating, self.config.required_references)
        return self._open_rows(RatingTrial(number, player, mu, 1, pairings))

    def retire_references(self, players: Collection[str]) -> dict[str, Any] | None:
        """Return rows that stop ``players`` from being references, or None if nothing changes.

        Their ratings stay. A rating in progress of or against one of them is cancelled.
        """
        gone = [self.standings[name] for name in players if name in self.references]
        rows = self._rating_rows([replace(standing, reference=False) for standing in gone])
        if self.trial is not None and any({first, second} & set(players) for first, second, _ in self.trial.pairings):
            rows |= self._close_rows(self.trial)
        return rows or None

    def report_game(self, game: str, score: float, seconds: float, statistics: Sequence[float]
                    ) -> dict[str, Any] | None:
        """Return the row of a finished game, or None if it was reported before or is not assigned.

        Args:
            game: id of the game.
            score: 1 if the first player won, 0.5 for a drawn game, 0 if it lost. Raise ValueError for another value.
            seconds: game time.
            statistics: numbers of the first player, stored with the game.
        """
        if score not in (0.0, 0.5, 1.0):
            raise ValueError(f"score {score} of game {game}: 1, 0.5 or 0 is allowed")
        if not self._is_pending(game):
            return None
        return {f"{_GAME_PREFIX}{game}": {"score": float(score), "seconds": float(seconds),
                                          "statistics": [float(s) for s in statistics]}}

    def abort_game(self, game: str) -> dict[str, Any] | None:
        """Return rows that count a game as aborted, without a replacement, or None if it is not pending."""
        if self.trial is None or not self._is_pending(game):
            return None
        return self._open_rows(replace(self.trial, aborted=[*self.trial.aborted, game]))

    def pending_games(self) -> list[AssignedGame]:
        """Return the open trial's games that have neither ended nor been aborted, in order of assignment."""
        return [] if self.trial is None else [g for g in self._assigned_games().values() if self._is_pending(g.id)]

    def advance(self, barred: Collection[str] = ()) -> RatingOutcome | None:
        """Return the next round (no standings) or the rating once every game of the round has ended, else None.

        Players in ``barred`` do not become references.
        """
        if self.trial is None or self.pending_games():
            return None
        if self.trial.player == ANCHORS:
            return self._rate_anchors(self.trial)
        standing = self._fit(self.trial)
        if standing is None:
            return RatingOutcome(self._close_rows(self.trial) | {_GAVE_UP_ROW: self.trial.player}, [], [])
        met = Counter[str]()
        for _, opponent, pairs in self.trial.pairings:
            met[opponent] += pairs
        target = self.config.games_per_rating if self.has_rated_anchors else self.config.first_rating_games
        left = min(target, self.config.games_per_rating) - len(self._assigned_games())
        far = not any(abs(self.standings[name].mu - standing.mu) <= self.config.max_reference_distance for name in met)
        unmet = [name for name in self.nearby_references(standing.mu) if name not in met]
        misplaced = far and bool(unmet) and self.trial.rounds < target / self.config.games_per_round + EXTRA_ROUNDS
        if left > 1 or misplaced:
            games = max(left, self.config.games_per_round // 2, 2)
            more = self._plan_pairings(self.trial.player, standing.mu, met, games, ())
            next_round = replace(self.trial, rounds=self.trial.rounds + 1, pairings=[*self.trial.pairings, *more])
            return RatingOutcome(self._open_rows(next_round), [], [])
        rated = {**self.standings, standing.player: standing}
        fitted = refit_standings(rated, self.config) if self.unmeasured else None
        refitted = fitted or {}
        standing = refitted.pop(standing.player, standing)
        references = [refitted.get(name, self.standings[name]).mu for name in self.references]
        standing.reference = standing.player not in barred and self._becomes_reference(standing, references)
        done = self._close_rows(self.trial) | self._rating_rows([standing, *refitted.values()])
        if fitted is not None:
            done[_UNMEASURED_ROW] = None
        return RatingOutcome(done, [standing], list(self.trial.ended.values()), list(refitted.values()))

    def nearby_references(self, mu: float) -> list[str]:
        """Return the references within ``max_reference_distance`` of a rating, nearest first, at least the nearest
        one."""
        order = sorted(self.references, key=lambda name: abs(self.references[name].mu - mu))
        within = [name for name in order if abs(self.references[name].mu - mu) <= self.config.max_reference_distance]
        return within or order[:1]

    def _plan_pairings(self, player: str, mu: float, met: Mapping[str, int], games: int,
                       required: Sequence[str]) -> list[tuple[str, str, int]]:
        """Return a round's pairings: equal shares of its pairs of games for each near or ``required`` reference.

        References with the fewest games so far (``met``) come first, then the nearest.
        """
        pairs = (min(games, self.config.games_per_round) + 1) // 2
        near = self.nearby_references(mu)
        extra = [name for name in required if name not in near]
        names: list[str] = sorted([*near, *extra], key=lambda name: met.get(name, 0))
        share = {name: pairs // len(names) + (i < pairs % len(names)) for i, name in enumerate(names)}
        share.update({name: max(1, share[name]) for name in extra})
        return [(player, name, count) for name, count in share.items() if count]

    def _assigned_games(self) -> Mapping[str, AssignedGame]:
        """Return all games of the open trial by id, in order. They are cached for a round."""
        assert self.trial is not None
        key = (self.trial.number, tuple(self.trial.pairings))
        if self._assigned_cache[0] != key:
            self._assigned_cache = key, {g.id: g for g in self._generate_games(*key)}
        return self._assigned_cache[1]

    def _generate_games(self, number: int, pairings: Iterable[tuple[str, str, int]]) -> Iterable[AssignedGame]:
        begun = dict[tuple[str, str], int]()
        for first, second, pairs in pairings:
            start = begun.get((first, second), 0)
            begun[first, second] = start + pairs
            for pair in range(start, start + pairs):
                digest = blake2b(f"{self._seed}/{first}/{second}/{pair}".encode(), digest_size=8).digest()
                for side in (0, 1):
                    yield AssignedGame(f"{number}.{first}.{second}.{pair}.{side}", first, second, side,
                                       int.from_bytes(digest, "little"), pair)

    def _is_pending(self, game: str) -> bool:
        """Whether a game of the open trial has neither ended nor been aborted."""
        return self.trial is not None and game in self._assigned_games() and game not in self.trial.ended and (
            game not in self.trial.aborted)

    def _rate_anchors(self, trial: RatingTrial) -> RatingOutcome:
        standings = []
        try:
            fit = fit_skills(self._game_results(trial), self.config)
        except FitError:  # random play has no finished game, so all are played again
            return RatingOutcome(self._close_rows(trial), [], [])
        for name in self.config.anchors:
            if name in fit.skills:
                skill = fit.skills[name]
                standings.append(Standing(name, skill.mu, skill.sigma, trial.number, fit.draw_probability, True,
                                          len(trial.aborted), *self._opponent_results(trial, name)))
        if len(standings) < len(self.config.anchors):  # all games of one anchor were aborted, so all are played again
            return RatingOutcome(self._close_rows(trial), [], [])
        rows = self._close_rows(trial) | self._rating_rows(standings)
        if not anchors_are_measured({s.player: s for s in standings}, self.config):
            rows[_UNMEASURED_ROW] = True
        return RatingOutcome(rows, standings, list(trial.ended.values()))

    def _fit(self, trial: RatingTrial) -> Standing | None:
        """Return the player's rating, or None if its games cannot be fitted or all were aborted."""
        if not trial.ended:
            return None
        games = self._game_results(trial)
        recent = self._rated_versions()[-DRAW_WINDOW:]
        known = {name: standing.skill for name, standing in self.standings.items()}
        others = [g for s in recent for g in list_games(s)]
        for name, standing in self.standings.items():
            if player_version(name) is None:  # a game of two bots is stored with both
                others += [g for g in list_games(standing) if g[0] < g[1]]
        try:
            draws = fit_skills([*games, *others], self.config, known).draw_probability
            skill = fit_skills(games, self.config, known, draws).skills[trial.player]
        except FitError as error:
            log.warning("rating cannot be fitted player=%s: %s", trial.player, error)
            return None
        return Standing(trial.player, skill.mu, skill.sigma, trial.number, draws, False, len(trial.aborted),
                        *self._opponent_results(trial, trial.player))

    def _game_results(self, trial: RatingTrial) -> list[GameResult]:
        return [(g.first, g.second, trial.ended[g.id]["score"]) for g in self._assigned_games().values()
                if g.id in trial.ended]

    def _opponent_results(self, trial: RatingTrial, player: str) -> tuple[dict[str, list[int]], dict[str, list[float]]]:
        """Return a player's results and scores in a trial by opponent."""
        results: dict[str, list[int]] = {}
        pairs: dict[str, dict[int, list[float]]] = {}
        for game in self._assigned_games().values():
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

    def _becomes_reference(self, standing: Standing, references: Sequence[float]) -> bool:
        """Whether a version becomes a reference: none is near it, and its σ is small enough.

        A version stronger than all references becomes one with any σ, because later versions need an opponent.
        """
        gaps = [standing.mu - mu for mu in references]
        precise = standing.sigma <= self.config.max_reference_distance / 2 or min(gaps) > 0
        return self.has_rated_anchors and min(map(abs, gaps)) >= self.config.reference_spacing and precise

    @staticmethod
    def _open_rows(trial: RatingTrial) -> dict[str, Any]:
        return {_OPEN_ROW: {"number": trial.number, "player": trial.player, "mu": trial.mu, "rounds": trial.rounds,
                            "pairings": [list(p) for p in trial.pairings], "aborted": trial.aborted}}

    @staticmethod
    def _close_rows(trial: RatingTrial) -> dict[str, Any]:
        return {_OPEN_ROW: None, **{f"{_GAME_PREFIX}{game}": None for game in trial.ended}}

    @staticmethod
    def _rating_rows(standings: Iterable[Standing]) -> dict[str, Any]:
        return {f"{RATED}{s.player}": asdict(s) for s in standings}

"""Rating of one version after another during training: plays the ladder's games and persists the results."""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from five.agent.config import RatingConfig
from five.agent.ladder import ANCHORS, Ladder, RatingOutcome
from five.agent.standings import player_name, player_version
from five.services.evaluator.matches import Pairing, PairingResult, TeamPlayer
from rapid.store.errors import VersionMissing
from rapid.store.replicated_table import ReplicatedTable
from rapid.store.series import Series
from rapid.store.state import RunState

log = logging.getLogger(__name__)
TABLE = "ratings"
TRIES = 3  # attempts at a game before it is aborted


@dataclass
class RatingLoop:
    """Source of the ladder's pairings and sink of their results.

    Each step of the ladder is one atomic write: a game, or a rating with its record in the series. ``newest`` returns
    the next version to rate. ``pin`` is called for a version before it becomes a reference. ``in_lineage`` returns
    whether a version belongs to the run's current line. Other versions, and bots outside ``bots``, are no longer
    references and keep their ratings.
    """

    config: RatingConfig
    state: RunState
    series: Series
    bots: dict[str, TeamPlayer]
    statistic_names: tuple[str, ...]
    newest: Callable[[], int | None]
    pin: Callable[[int], None]
    in_lineage: Callable[[int], bool] = lambda version: True
    seed: int = 0
    ladder: Ladder = field(init=False)

    def __post_init__(self) -> None:
        self.ladder = Ladder(self.config, self.seed)
        self._table = ReplicatedTable(self.state, TABLE, self.ladder.apply_rows)
        self._table.refresh()
        known = {*self.ladder.references, *(p for pair in self._pairings() for p in pair[:2])}
        gone = [name for name in known if not self._may_be_reference(name)]
        if gone:
            self._table.update(lambda: self.ladder.retire_references(gone))
        self._in_progress: set[str] = set()
        self._tries: Counter[str] = Counter()

    def _may_be_reference(self, player: str) -> bool:
        version = player_version(player)
        return player in self.bots if version is None else self.in_lineage(version)

    def _pairings(self) -> list[tuple[str, str, int]]:
        return [] if self.ladder.trial is None else self.ladder.trial.pairings

    @property
    def version(self) -> int:
        """Version being rated or rated last; -1 before the first."""
        trial, last = self.ladder.trial, self.ladder.last_rated
        if trial is not None and trial.player != ANCHORS:
            return number(trial.player)
        return -1 if last is None else number(last.player)

    @property
    def games(self) -> int:
        """Number of ended games of the current rating."""
        trial = self.ladder.trial  # read once: the heartbeat's thread calls this while a rating may end
        return 0 if trial is None else len(trial.ended)

    def next_pairing(self) -> Pairing | None:
        """Return the next game; None if no version needs a rating, or all games of a round have begun."""
        self._advance_ladder()
        if self.ladder.trial is None:
            self._begin_rating()
        assigned = next((g for g in self.ladder.pending_games() if g.id not in self._in_progress), None)
        if assigned is None:
            return None
        self._in_progress.add(assigned.id)
        return Pairing(self._player(assigned.first), self._player(assigned.second), assigned.side, assigned.seed,
                       game=assigned.id)

    def _begin_rating(self) -> None:
        version = self.newest()
        if version is None:
            return
        while self._table.update(lambda: self.ladder.begin_rating(player_name(version))) and self.ladder.trial is None:
            pass  # this update recorded the scale's zero or an anchor that returns; the next one begins the rating
        self._tries.clear()

    def _player(self, name: str) -> TeamPlayer:
        return self.bots[name] if name in self.bots else TeamPlayer(name, version=number(name))

    def drop(self) -> int:
        """Assign the games in progress again; abort those lost TRIES times. Return the number of aborted games."""
        lost, self._in_progress = self._in_progress, set()
        aborted = 0
        for game in lost:
            self._tries[game] += 1
            if self._tries[game] >= TRIES:
                log.warning("game %s aborted after it was lost %d times", game, TRIES)
                aborted += self._table.update(partial(self.ladder.abort_game, game))
        return aborted

    def requeue(self) -> None:
        """Assign the games in progress again, any number of times, because the store or inference is unavailable."""
        self._in_progress.clear()

    def on_result(self, result: PairingResult) -> bool:
        """Record an ended game. Return whether it counts, which duplicates and abandoned games do not."""
        game = result.pairing.game
        self._in_progress.discard(game)
        counted = self._table.update(lambda: self.ladder.report_game(
            game, result.score, result.game_seconds, result.agent_statistics.tolist()))
        self._advance_ladder()
        return counted

    def _advance_ladder(self) -> None:
        """Advance the ladder when every game of the round has ended."""
        outcome: RatingOutcome | None = None

        def change() -> dict[str, Any] | None:
            nonlocal outcome
            outcome = self.ladder.advance(barred)
            return None if outcome is None else outcome.rows

        if self.ladder.trial is None or self.ladder.pending_games():
            return
        expected, barred = self.ladder.advance(), []
        for standing in () if expected is None else expected.standings:
            if standing.reference and standing.player not in self.bots:
                # Pinned first: a reference that cannot be loaded would be worse than an unused pin. A process that
                # dies between the two steps repeats both.
                try:
                    self.pin(number(standing.player))
                except VersionMissing as error:  # the archive was thinned since the rating began
                    log.warning("rated version cannot become a reference: %s", error)
                    barred.append(standing.player)
        if not self._table.update(change, also=lambda: self._records(outcome)):
            return
        assert outcome is not None
        for standing in outcome.standings:
            log.info("%s: TrueSkill %.1f ± %.1f after %d games, draws %.2f%s", standing.player, standing.mu,
                     standing.sigma, standing.games, standing.draw_probability,
                     "; a reference" if standing.reference else "")
        if outcome.refitted:
            log.info("anchors measured against random play, all ratings fitted again: %s",
                     ", ".join(f"{s.player} {s.mu:.1f} ± {s.sigma:.1f}" for s in outcome.refitted))

    def _records(self, outcome: RatingOutcome | None) -> list[tuple[str, ...]]:
        """Return the commands that append an outcome to the series: one for each rated version."""
        if outcome is None:
            return []
        return [self.series.command("ratings", self.record(outcome)) for s in outcome.standings
                if s.player not in self.bots]

    def record(self, outcome: RatingOutcome) -> dict[str, Any]:
        """Return the series' record of a version's rating, with statistics of its games and win rates by bot."""
        standing = outcome.standings[0]
        bots = {name: scores for name, scores in standing.scores.items() if name in self.bots}
        means = np.mean([g["statistics"] for g in outcome.games], axis=0)
        return {
            "version": number(standing.player), "mu": standing.mu, "sigma": standing.sigma, "games": standing.games,
            "aborted": standing.aborted, "draw_probability": standing.draw_probability,
            "reference": standing.reference,
            "win_rates": {name: scores[0] for name, scores in bots.items()},
            "win_intervals": {name: scores[1:] for name, scores in bots.items()},
            "statistics": dict(zip(self.statistic_names, means.tolist(), strict=True)),
            "game_seconds": float(np.mean([g["seconds"] for g in outcome.games]))}


def number(player: str) -> int:
    """Return a player's version number. Raises ValueError for a bot."""
    version = player_version(player)
    if version is None:
        raise ValueError(f"player {player!r} is a bot, not a version")
    return version

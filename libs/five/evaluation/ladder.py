"""Ratings of archived versions, played in this process on the scale of the run's evaluator."""

import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from dota.replay import Replay
from dota.rule_changes import REVISION
from dota.vec_game import BOTS
from five.agent.config import RatingConfig
from five.agent.ladder import AssignedGame, Ladder
from five.agent.standings import FORMAT, FORMAT_ROW, RATED, Standing, parse_standings, player_name, player_version
from five.evaluation.archived_versions import ArchivedVersions
from five.evaluation.journal import Journal
from five.evaluation.match import Contestant, MatchGame, play_planned

SEED_OFFSET = 15_485_000  # seeds differ from those of the evaluator's games
_SCALE = "scale"  # the journal's row of the run's anchor ratings at the time of its games
_RULES = "rules"  # the journal's row of the revision of the rules that its games were played by


class OfflineLadder:
    """Standings of a run: the evaluator's ``rows`` and the games played here (``journal``).

    The run's references do not change, and its rating of a version counts if it has at least as many games. If the run
    has rated its anchors on another scale, or fitted them again (`five.agent.anchor_refit`), or if the game's rules
    have changed, the games played here are discarded.
    """

    def __init__(self, rows: dict[str, Any], journal: Journal, config: RatingConfig) -> None:
        self._run = {n: r for n, r in rows.items() if n.startswith(RATED)} if rows.get(FORMAT_ROW) == FORMAT else {}
        self._journal = journal
        self._config = config
        anchors = [f"{RATED}{name}" for name in config.anchors if name != "random"]
        self._scale = {name: self._run[name]["mu"] for name in anchors if name in self._run}
        before = journal.rows.get(_SCALE)
        if (any(name in journal.rows for name in self._scale) or (before and before != self._scale)
                or (journal.rows and journal.rows.get(_RULES) != REVISION)):
            journal.forget()

    @property
    def _rows(self) -> dict[str, Any]:
        played = {s.player: s for s in parse_standings({FORMAT_ROW: FORMAT, **self._journal.rows})}
        outdated = {f"{RATED}{s.player}" for s in parse_standings({FORMAT_ROW: FORMAT, **self._run})
                    if (other := played.get(s.player)) is not None
                    and (s.reference or s.games + s.aborted >= other.games + other.aborted)}
        return {FORMAT_ROW: FORMAT, **self._run, **{n: r for n, r in self._journal.rows.items() if n not in outdated}}

    def standings(self) -> list[Standing]:
        """Return the standings of all rated players, strongest first."""
        return parse_standings(self._rows)

    def missing(self, versions: Iterable[int], games: int) -> list[int]:
        """Return the versions rated by fewer than ``games`` games, ascending. References are never among them."""
        known = {s.player: s for s in self.standings()}
        return sorted(v for v in versions if not (
            (s := known.get(player_name(v))) and (s.reference or s.games + s.aborted >= games)))

    def rate(self, archive: ArchivedVersions, version: int, games: int, say: Callable[[str], None]) -> Standing:
        """Rate a version by ``games`` games, after the anchors if they are unrated. An interrupted rating is resumed.

        Raises as ``ArchivedVersions.load``.
        """
        player = player_name(version)
        config = self._config.model_copy(update={"games_per_rating": games, "first_rating_games": games})
        ladder = Ladder(config)  # its games' seeds are those of `_play_round`
        opened = self._journal.rows.get("open")
        fresh = {n: r for n, r in self._rows.items() if n != f"{RATED}{player}"}
        if opened is not None and opened["player"] not in (player, "anchors"):  # another player's, of an earlier call
            self._write({"open": None, **{n: None for n in self._journal.rows if n.startswith("game:")}})
            fresh = {n: r for n, r in fresh.items() if n != "open" and not n.startswith("game:")}
        if self._journal.rows.get(_RULES) != REVISION:
            self._write({_RULES: REVISION})
        if self._scale and self._journal.rows.get(_SCALE) != self._scale:
            self._write({_SCALE: self._scale})
        ladder.apply_rows(fresh, True)
        rated = [(abs(other - version), s) for s in self.standings() if (other := player_version(s.player)) is not None]
        near = min(rated, key=lambda found: found[0])[1] if rated else None
        while player not in ladder.standings:
            if ladder.trial is None:
                self._apply_rows(ladder, ladder.begin_rating(player, None if near is None else near.mu))
                continue
            self._play_round(ladder, archive, say)
            outcome = ladder.advance()
            assert outcome is not None  # every game of the round has ended
            self._apply_rows(ladder, outcome.rows)
        return ladder.standings[player]

    def _play_round(self, ladder: Ladder, archive: ArchivedVersions, say: Callable[[str], None]) -> None:
        """Play the open games, one pairing after another. Each game is recorded when it ends."""
        groups: dict[tuple[str, str], list[AssignedGame]] = {}
        for game in ladder.pending_games():
            groups.setdefault((game.first, game.second), []).append(game)
        players: dict[str, Contestant] = {}
        for names, games in groups.items():
            first, second = (players.setdefault(name, contestant(archive, name)) for name in names)
            ids = {(game.pair, game.side): game.id for game in games}

            def on_game(game: MatchGame, ids: dict[tuple[int, int], str] = ids) -> None:
                self._apply_rows(ladder, ladder.report_game(ids[game.pair, game.side], game.score, game.seconds,
                                                            game.statistics[0].tolist()))

            path = archive.folder.path / "replays" / f"{names[0]}.replay"
            path.parent.mkdir(parents=True, exist_ok=True)
            wanted = player_version(names[0]) is not None and not path.exists()

            def record(replay: Replay, final: int, path: Path = path) -> None:
                replay.save(path, final)

            # Of the pairing, not of its first open game: a pair that was interrupted between its games keeps its seed.
            seed = zlib.crc32(f"{archive.config.seed + SEED_OFFSET}/{names[0]}/{names[1]}".encode())
            match = play_planned(archive.config.game, first, second, list(ids), seed, on_game=on_game,
                                 record=record if wanted else None)
            won, drawn, lost = match.counts
            say(f"{names[0]} against {names[1]}: {won} won, {drawn} drawn, {lost} lost")

    def _apply_rows(self, ladder: Ladder, rows: dict[str, Any] | None) -> None:
        if rows:
            self._write(rows)
            ladder.apply_rows(rows, False)

    def _write(self, rows: dict[str, Any]) -> None:
        self._journal.write(rows)


def contestant(archive: ArchivedVersions, name: str) -> Contestant:
    """Return the contestant of a ladder's player."""
    if name in BOTS:
        return Contestant.bot(name)
    version = player_version(name)
    if version is None:
        raise ValueError(f"player {name!r}: expected a bot or version-N")
    return Contestant(name, archive.load(version)[1])

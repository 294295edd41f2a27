"""Session: one game of a real client, played in lockstep by this process.

The client sends Radiant's world state, runs Radiant's bots, sends Dire's and runs Dire's (dotaservice 0.3.9, NOTES.md).
A bot that waits for its action file stops the game, so each team is ordered as soon as it is observed.
"""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from five.real_client.action_files import RELEASED, Action, ActionFile
from five.real_client.bot_folder import link_bots, unlink_bots, write_bots
from five.real_client.client_process import ClientOptions, ClientProcess
from five.real_client.console_log import BotReport, ClientFailure, ConsoleLog, Winner, parse_line
from five.real_client.errors import ClientFailed, ClientUnavailable
from five.real_client.frames import Frame
from five.real_client.installation import Installation
from five.real_client.missing_heroes import missing_players, with_moves
from five.real_client.world_state_reader import WorldStateReader

TEAMS = (2, 3)  # Radiant, Dire
_POLL_SECONDS = 0.05
_FINAL_LOG_SECONDS = 1.0  # for the log of a client that has ended


@dataclass(frozen=True)
class SessionOptions:
    """Options of a session.

    Attributes:
        control: "agent" (this process), "builtin" or "idle" by team, 2 Radiant and 3 Dire.
        heroes: names of five heroes by team, such as npc_dota_hero_sniper, in the order of the players.
        scripted: whether the client's own scripts buy, learn and use the courier for this process's heroes.
        lockstep: whether the game waits for orders. Otherwise it goes on, and orders that come late are lost.
        start_seconds: longest wait for the first world state.
        frame_seconds: longest wait for another one.
        stall_seconds: wait after which the bots may go on without orders: a world state was lost.
    """

    control: Mapping[int, str]
    heroes: Mapping[int, Sequence[str]]
    client: ClientOptions = field(default_factory=ClientOptions)
    scripted: bool = False
    lockstep: bool = True
    start_seconds: float = 300.0
    frame_seconds: float = 60.0
    stall_seconds: float = 2.0

    @property
    def teams(self) -> tuple[int, ...]:
        """Return the teams that this process plays."""
        return tuple(team for team in TEAMS if self.control[team] == "agent")


@dataclass
class Delivery:
    """Orders of a team: sent, and what its bots reported of them."""

    sent: int = 0
    executed: int = 0
    refused: int = 0
    ready: set[int] = field(default_factory=set)  # players whose bots think
    reasons: dict[str, int] = field(default_factory=dict)  # of refusals

    def add(self, report: BotReport) -> None:
        """Count a report."""
        if report.kind == "ready":
            self.ready.add(report.player)
            return
        self.executed += report.executed
        self.refused += report.refused
        if report.reason:
            self.reasons[report.reason] = self.reasons.get(report.reason, 0) + report.refused


@dataclass
class _Side:
    """State of a team that this process plays."""

    reader: WorldStateReader
    file: ActionFile
    delivery: Delivery = field(default_factory=Delivery)
    last: Frame | None = None
    heard: float = field(default_factory=time.monotonic)  # when the last world state came
    through: float = RELEASED
    missing: frozenset[int] = frozenset()


class Session:
    """Game of a client that this object starts, from the start of the program to its end. A context manager.

    Attributes:
        winner: 2 (Radiant) or 3 (Dire) once the game has ended.
        stalls: number of times that waiting bots were released because a world state did not arrive.
    """

    def __init__(self, installation: Installation, options: SessionOptions, folder: Path | None = None) -> None:
        """Link the bots and start the client. Files go to ``folder``, by default a temporary one, which ``close``
        removes. Raises ClientUnavailable."""
        self.options = options
        self.winner: int | None = None
        self.stalls = 0
        self._failure = ""
        self._arrived = threading.Event()
        self._cleanup = ExitStack()
        with self._cleanup:
            if folder is None:
                folder = Path(tempfile.mkdtemp(prefix="five-client-"))
                self._cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
            bots = folder.resolve() / "bots"  # the client, which gets the log's path, runs in another folder
            if bots.exists():
                raise ClientUnavailable(f"{bots} exists, perhaps of an earlier session: give a new folder")
            write_bots(bots, options.control, options.heroes, options.scripted)
            installation.vscripts.mkdir(parents=True, exist_ok=True)
            link_bots(installation.vscripts, bots)
            self._cleanup.callback(unlink_bots, installation.vscripts, bots)
            self._log = ConsoleLog(bots)
            self._process = ClientProcess(installation, options.client, self._log.path)
            self._cleanup.callback(self._process.stop)
            self._sides: dict[int, _Side] = {}
            for team in options.teams:
                reader = WorldStateReader(options.client.ports[TEAMS.index(team)], team, self._arrived)
                self._cleanup.callback(reader.close)
                self._sides[team] = _Side(reader, ActionFile(bots, team))
            self._cleanup = self._cleanup.pop_all()

    def observe(self) -> dict[int, list[Frame]]:
        """Return each team's world states since the last call, oldest first, waiting for one of any team.

        Order each returned team. The result is empty when the game has ended, and when a world state was lost: then
        the bots that wait for its answer go on without orders. Raises ClientFailed if the client ends without a winner
        or sends nothing for too long.
        """
        began = time.monotonic()
        while True:
            self._arrived.clear()
            found = {team: frames for team, side in self._sides.items() if (frames := self._receive(side))}
            self._read_log()
            if found or self.winner is not None:
                return found
            self._check_client()
            self._check_silence()
            if self.options.lockstep and time.monotonic() - began > self.options.stall_seconds and self._nudge():
                return {}
            self._arrived.wait(_POLL_SECONDS)

    def act(self, team: int, actions: Sequence[Action]) -> None:
        """Send a team's orders in answer to its last world state. Call it once for each, also without orders."""
        side = self._sides[team]
        if side.last is None:
            raise ValueError(f"team {team} has no world state yet: observe first")
        actions = with_moves(actions, side.missing)
        side.delivery.sent += len(actions)
        if self.options.lockstep:
            side.through = side.last.dota_time + self.options.client.period
        side.file.write(actions, side.last.dota_time, side.through)

    def delivery_of(self, team: int) -> Delivery:
        """Return the counts of a team's orders and of their reports in the log."""
        self._read_log()
        return self._sides[team].delivery

    def reader_of(self, team: int) -> WorldStateReader:
        """Return a team's reader, for its counts."""
        return self._sides[team].reader

    def close(self) -> None:
        """Let the bots go, end the client and remove the bots' link."""
        with self._cleanup, suppress(OSError):  # on a full disk the client is ended all the same
            for side in self._sides.values():
                side.file.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _read_log(self) -> None:
        for line in self._log.lines():
            match parse_line(line):
                case Winner(team) if self.winner is None:
                    self.winner = team
                case ClientFailure(text):
                    self._failure = text
                case BotReport() as report if report.team in self._sides:
                    self._sides[report.team].delivery.add(report)

    def _check_client(self) -> None:
        """Raise ClientFailed if the client has ended without a winner."""
        status = self._process.exit_status()
        if status is None:
            return
        time.sleep(_FINAL_LOG_SECONDS)
        self._read_log()
        if self.winner is None:
            raise ClientFailed(f"the client ended with status {status}: {self._failure or self._state()}")

    def _receive(self, side: _Side) -> list[Frame]:
        """Return a side's new playable frames."""
        frames = [frame for frame in side.reader.receive(0) if frame.is_playable]
        if frames:
            side.last, side.heard = frames[-1], time.monotonic()
            side.missing = missing_players(side.last)
        return frames

    def _check_silence(self) -> None:
        """Raise ClientFailed if a team has no world state for too long."""
        for team, side in self._sides.items():
            limit = self.options.start_seconds if side.last is None else self.options.frame_seconds
            if time.monotonic() - side.heard > limit:
                raise ClientFailed(f"no world state of team {team} for {limit:.0f} s: {self._state()}")

    def _nudge(self) -> bool:
        """Let the bots that have waited longest go on until the next world state: the one before it did not arrive.
        Return whether there are such bots."""
        side = min(self._sides.values(), key=lambda side: side.through)
        if side.last is None or side.through >= RELEASED:
            return False
        side.through += self.options.client.period
        side.file.write([], side.last.dota_time, side.through)
        self.stalls += 1
        return True

    def _state(self) -> str:
        """Return how far the game came, for an error."""
        parts = []
        for team, side in self._sides.items():
            time_text = "no world state" if side.last is None else f"last world state at {side.last.dota_time:.1f} s"
            parts.append(f"team {team}: {side.reader.connections} connections, {time_text}, "
                         f"{len(side.delivery.ready)} bots ready")
        return "; ".join([*parts, f"log {self._log.path}"])


class TeamPlayer(Protocol):
    """Player of a team's heroes."""

    def orders(self, frames: Sequence[Frame]) -> Sequence[Action]:
        """Return the orders that answer the last of the frames since the previous call, oldest first."""


def play(session: Session, players: Mapping[int, TeamPlayer], on_round: Callable[[], None] = lambda: None) -> int:
    """Play a session's game to its end and return the winner, 2 (Radiant) or 3 (Dire).

    ``players`` has one player for each team that the session controls. ``on_round`` is called whenever teams were
    ordered. Raises ClientFailed.
    """
    if players.keys() != set(session.options.teams):
        raise ValueError(f"players of teams {sorted(players)}: the session needs {list(session.options.teams)}")
    while session.winner is None:
        for team, frames in session.observe().items():
            session.act(team, players[team].orders(frames))
        on_round()
    return session.winner


def play_games(start: Callable[[], Session], players: Callable[[], Mapping[int, TeamPlayer]], games: int, restarts: int,
               say: Callable[[str], None]) -> list[int]:
    """Play games one after another and return their winners.

    ``start`` starts a session and ``players`` returns new players for each game. After a failure of the client, the
    game begins again in a new client, ``restarts`` times in all. Raises ClientFailed for the failure after those.
    """
    winners: list[int] = []
    failures = 0
    while len(winners) < games:
        try:
            with start() as session:
                winners.append(play(session, players()))
                orders = [session.delivery_of(team) for team in session.options.teams]
        except ClientFailed as error:
            failures += 1
            if failures > restarts:
                raise
            say(f"the game begins again in a new client: {error}")
            continue
        executed, refused = sum(d.executed for d in orders), sum(d.refused for d in orders)
        name = "Radiant" if winners[-1] == TEAMS[0] else "Dire"
        say(f"game {len(winners)}: {name} wins; {executed} orders executed, {refused} refused; {session.stalls} world "
            "states lost")
    return winners

"""RPC servicer of play: open, list and close games, and join them."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dota.config import GameConfig
from dota.vec_game import BOTS
from five.protos.v1 import play_pb2, play_pb2_grpc
from five.run.config.play import PlayConfig
from five.services.play import metrics as page
from five.services.play.agents import Inference
from five.services.play.hosted_game import HostedGame
from five.services.play.players import ConnectedPlayer, Filler, NewGame
from five.services.play.ratings import FinishedGame, Person
from five.services.play.recordings import RecordingStore
from five.services.play.seats import TEAM_HEROES, NoSeat
from rapid.rpc.errors import Conflict, Exhausted, NotFound, RpcError, Unavailable
from rapid.rpc.fencing_epoch import require_epoch

log = logging.getLogger(__name__)
MAX_NAME_LENGTH = 200
PIECE_BYTES = 1 << 20  # of a recording, in one response


@dataclass
class PlayService(play_pb2_grpc.PlayServiceServicer):
    """Servicer of one run's games in its fencing ``epoch``.

    ``versions`` returns the playable versions, newest first, and ``filler`` the player of a name (both query a store
    and block). ``inference`` is shared by all games. ``rate`` rates an ended game. ``active`` returns whether the run
    is active, ``draining`` whether this process ends. Recordings are stored in ``folder``; None: in memory.
    """

    run: str
    epoch: int
    config: GameConfig
    settings: PlayConfig
    inference: Inference
    versions: Callable[[], list[int]]
    filler: Callable[[str], Filler]
    rate: Callable[[FinishedGame], Mapping[str, Person]]
    active: Callable[[], bool] = lambda: True
    draining: Callable[[], bool] = lambda: False
    folder: Path | None = None
    matches: dict[str, HostedGame] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _opening: int = 0
    _is_ending: bool = False

    def __post_init__(self) -> None:
        self.recordings = RecordingStore(self.settings.recordings, self.settings.recordings_mebibytes << 20,
                                         self.folder)

    def _check(self, run: str) -> None:
        if run != self.run:
            raise ValueError(f"run {run!r}: this play service hosts run {self.run!r}")

    @property
    def is_idle(self) -> bool:
        """Return whether no game is in progress, or every game in progress is paused. Any thread may call it."""
        return all(not match.running for match in tuple(self.matches.values()))

    def stats(self) -> dict[str, int]:
        """Return the heartbeat's stats. Any thread may call it."""
        matches = tuple(self.matches.values())
        return {"games": len(matches), "late answers": sum(match.agents.late for match in matches)}

    def _refusal(self) -> RpcError | None:
        """Return the error of an attempt to open a game now; None if a game can be opened."""
        if self.draining():
            return Unavailable("the play service is restarting; try again in a few seconds")
        if not self.active():
            return Conflict("the run is paused; resume it, then open a game")
        if len(self.matches) + self._opening >= self.settings.games:
            return Exhausted(f"the limit of {self.settings.games} simultaneous game(s) is reached "
                             "(services.play.games); wait until a game ends, or end one")
        return None

    async def Offer(self, request: play_pb2.OfferRequest, context: Any) -> play_pb2.OfferResponse:
        """Return the playable versions, bots and heroes."""
        self._check(request.run)
        versions = await asyncio.to_thread(self.versions)
        return play_pb2.OfferResponse(
            hero_pool=self.config.hero_pool, heroes_per_team=self.config.heroes_per_team, mode=self.config.mode,
            patch=self.config.patch, versions=versions, bots=list(BOTS), games=self.settings.games,
            open=len(self.matches), spectator_delay_seconds=self.settings.spectator_delay_seconds,
            refused=str(self._refusal() or ""))

    async def Open(self, request: play_pb2.OpenRequest, context: Any) -> play_pb2.OpenResponse:
        """Open a game; the agent controls the opener's heroes until the opener joins."""
        self._check(request.run)
        if request.epoch:
            require_epoch(self.epoch, request.epoch)
        if request.team not in (0, 1):
            raise ValueError(f"team {request.team}: allowed are 0 (Radiant) and 1 (Dire)")
        _check_name(request.who)
        heroes = sorted(set(request.heroes))
        if not heroes or heroes[-1] >= self.config.heroes_per_team:
            raise ValueError(f"heroes {heroes}: at least one is required, from 0 to {self.config.heroes_per_team - 1}")
        if len(request.lineup) not in (0, 2):
            raise ValueError(f"lineup of {len(request.lineup)} team(s): give both teams, or none to sample them")
        if refusal := self._refusal():
            raise refusal
        self._opening += 1
        try:
            mate, foe = await asyncio.to_thread(
                lambda: (self.filler(request.mates or "agent"), self.filler(request.against or "newest")))
            begin = NewGame(
                secrets.token_hex(16), request.who, self.config,
                request.seed if request.HasField("seed") else secrets.randbits(53),
                [list(team.heroes) for team in request.lineup] or None,
                (mate, foe) if request.team == 0 else (foe, mate), self.run)
            store = self.recordings.store if self.settings.recordings else None
            match = await asyncio.to_thread(HostedGame, begin, self.settings, self.inference, self.active, self.rate,
                                            store)
        finally:
            self._opening -= 1
        if refusal := self._refusal():  # a pause or draining has begun meanwhile
            raise refusal
        match.seats.reserve(request.who, [request.team * TEAM_HEROES + hero for hero in heroes], time.monotonic())
        self.matches[begin.game] = match
        page.GAMES.set(len(self.matches))
        task = asyncio.get_running_loop().create_task(self._play(match), name=f"game {begin.game}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        log.info("game %s opened by %s: %s against %s", begin.game, request.who, mate.name, foe.name)
        return play_pb2.OpenResponse(game=begin.game, state=match.state())

    async def _play(self, match: HostedGame) -> None:
        try:
            await match.run()
        except Exception:
            log.exception("game %s failed", match.begin.game)
        finally:
            self.matches.pop(match.begin.game, None)
            page.GAMES.set(len(self.matches))
        await match.send_remaining(lambda: self._is_ending)

    async def List(self, request: play_pb2.ListGamesRequest, context: Any) -> play_pb2.ListGamesResponse:
        """Return the games in progress."""
        self._check(request.run)
        return play_pb2.ListGamesResponse(games=[match.state() for match in self.matches.values()])

    async def Recordings(self, request: play_pb2.RecordingsRequest, context: Any) -> play_pb2.RecordingsResponse:
        """Return the recordings of ended games."""
        self._check(request.run)
        return play_pb2.RecordingsResponse(recordings=[play_pb2.RecordedGame(
            game=r.game, size=r.size, players=r.players, people=r.people, seconds=r.seconds, at=r.at,
            winner=r.winner, kills=r.kills) for r in self.recordings.all()])

    async def Recording(self, request: play_pb2.RecordingRequest, context: Any) -> play_pb2.RecordingResponse:
        """Return a piece of a recording."""
        self._check(request.run)
        found = await asyncio.to_thread(self.recordings.piece, request.game, request.offset, PIECE_BYTES)
        if found is None:
            raise NotFound(f"game {request.game!r} has no recording; old recordings are removed "
                           "(services.play.recordings)")
        return play_pb2.RecordingResponse(data=found[0], size=found[1])

    async def Close(self, request: play_pb2.CloseRequest, context: Any) -> play_pb2.CloseResponse:
        """End a game without a result."""
        self._check(request.run)
        match = self._match(request.game)
        log.info("game %s closed by %s", request.game, request.who)
        match.end("closed")
        await match.ended.wait()
        return play_pb2.CloseResponse()

    def _match(self, game: str) -> HostedGame:
        match = self.matches.get(game)
        if match is None:
            raise NotFound(f"game {game!r} is not in progress")
        return match

    async def Join(self, request_iterator: AsyncIterator[play_pb2.JoinRequest], context: Any
                   ) -> AsyncIterator[play_pb2.JoinResponse]:
        """Handle a person's connection to a game until it ends."""
        first = await anext(aiter(request_iterator), None)
        if first is None or first.WhichOneof("what") != "join":
            raise ValueError("the first message of a stream must be a join")
        join = first.join
        self._check(join.run)
        _check_name(join.who)
        match = self._match(join.game)
        try:
            player = match.enter(join.who, join.spectate, list(join.heroes))
        except NoSeat as error:
            yield play_pb2.JoinResponse(refused=play_pb2.Refused(reason=str(error)))
            return
        reader = asyncio.get_running_loop().create_task(self._read(request_iterator, match, player))
        try:
            async for response in player.outbox:
                yield response
        finally:
            reader.cancel()
            match.leave(player)

    @staticmethod
    async def _read(requests: AsyncIterator[play_pb2.JoinRequest], match: HostedGame, player: ConnectedPlayer) -> None:
        try:
            async for request in requests:
                if player.outbox.ended:
                    return
                what = request.WhichOneof("what")
                if what == "order":
                    match.order(player, request.order)
                elif what == "ping":
                    match.ping(player, request.ping.at)
                elif what == "hand":
                    match.hand(player, request.hand.hero if request.hand.HasField("hero") else None, request.hand.held)
        finally:
            # The person can send nothing more, so the agent takes over the heroes.
            match.leave(player)
            player.outbox.end()

    async def drain(self) -> None:
        """End all games, and the broadcasts of ended ones, because the process ends."""
        self._is_ending = True
        for match in self.matches.values():
            match.end("drained")
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5.0)


def _check_name(who: str) -> None:
    if not 0 < len(who) <= MAX_NAME_LENGTH:
        raise ValueError(f"who: a name of 1 to {MAX_NAME_LENGTH} characters is required, not {len(who)}")

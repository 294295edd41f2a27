"""Game with people in real time: its clock, control of its heroes, and each person's view."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dota import registry
from dota.play import FRAMES, OFFERED, InteractiveGame
from dota.spectator.camera import UNIT_PER_STEP
from dota.spectator.console_events import console_events
from dota.tables import HERO_PREFIX
from five.protos.v1 import play_pb2
from five.run.config.play import PlayConfig
from five.services.play import metrics as page
from five.services.play.agents import Agents, AgentsLost, Inference
from five.services.play.broadcast import Broadcast
from five.services.play.clock import FrameClock
from five.services.play.orders import RateLimit, order_of
from five.services.play.outbox import Outbox
from five.services.play.players import ConnectedPlayer, NewGame
from five.services.play.ratings import FinishedGame, Person
from five.services.play.recordings import GameRecorder, GameRecording
from five.services.play.seats import TEAM_HEROES, NoSeat, Seats
from five.services.play.views import View, header_of, map_of

log = logging.getLogger(__name__)
STATE_SECONDS = 1.0  # between two messages of the game's state
PAUSE_SECONDS = 0.1  # between two checks whether a pause has ended
CLOSE_SECONDS = 2.0  # timeout for closing a game's sessions at inference


class HostedGame:
    """Game from its opening to its end. ``run`` plays it; call the other methods in the same event loop.

    ``active`` returns whether the run is active: the clock stops during a pause. ``rate`` rates the ended game and
    returns the people whose rating changed; ``store`` stores the recording of a game with people."""

    def __init__(self, begin: NewGame, settings: PlayConfig, inference: Inference, active: Callable[[], bool],
                 rate: Callable[[FinishedGame], Mapping[str, Person]],
                 store: Callable[[GameRecording], object] | None = None) -> None:
        self.begin = begin
        self._settings = settings
        self._active = active
        self._rate = rate
        self._store = store
        self.game = game = InteractiveGame(begin.config, begin.seed, begin.lineup)
        heroes = game.layout.heroes
        for side, filler in enumerate(begin.fillers):
            game.controllers[side] = filler.controller
        known = registry.load().names["build"]
        names = {side * TEAM_HEROES + i: known[int(game.lineup[side][i])].removeprefix(HERO_PREFIX)
                 for side in range(2) for i in range(heroes)}
        self.seats = Seats(names, settings.seat_reservation_seconds)
        self.agents = Agents(inference, {side: filler.version for side, filler in enumerate(begin.fillers)
                                         if not filler.controller}, heroes)
        self.broadcast = Broadcast(settings.spectator_delay_seconds)
        self._views = (View(0), View(1))
        self._whole = View(None, UNIT_PER_STEP)  # after each timestep
        self._events: list[dict[str, Any]] = []  # since the last timestep
        self._recorder = GameRecorder(settings.recordings_mebibytes << 20)
        self._participants: set[str] = set()  # people who have played
        self._players: list[ConnectedPlayer] = []
        self._pending: list[tuple[ConnectedPlayer, int]] = []  # numbers of orders that take effect in the next frame
        self._map = map_of(begin.config)
        self.opened_at = time.time()
        self._clock = FrameClock(time.monotonic())
        self._timestep = 0
        self._every = begin.config.frameskip // FRAMES  # timesteps between two choices of the agents
        self._answered = True  # whether the answer to the agents' last request has arrived
        self._empty_since = time.monotonic()
        self._state_sent_at = 0.0
        self._last_frame = -1  # number of the last engine frame sent
        self._ending = ""
        self._was_recorded = False
        self.running = True
        self.ended = asyncio.Event()

    # ------------------------------------------------------------------------------------------------ the game

    async def run(self) -> None:
        """Play the game until it has a winner, nobody is left, or it is ended."""
        how = "lost"
        try:
            self._clock = FrameClock(time.monotonic())
            self._send_frame()
            while self.winner == 0 and not self._ending:
                await self._step()
            how = self._ending or "played"
        except AgentsLost as error:
            log.warning("game %s ends, because its agents cannot act: %s", self.begin.game, error)
        finally:
            if how != "played":
                self._ending = how
            page.ENDED.labels(how).inc()
            await self._end()

    async def _step(self) -> None:
        """Play one timestep. Every ``frameskip`` frames the agents receive an observation, and compute their actions
        while frames are played."""
        game = self.game
        if not self._active():
            await self._wait_until_active()
            if self._ending:
                return
        if self._timestep % self._every == 0:
            self.agents.request(self._timestep, game.obs)
            self._answered = False
        game.begin(None)
        for frame in range(FRAMES):
            await self._until_due()
            if frame == FRAMES - 1 and not self._answered:
                answer = self.agents.take_answer(self._timestep)
                self._answered = answer is not None
                age = self._timestep - answer.timestep if answer is not None else OFFERED
                if answer is not None and age < OFFERED:
                    game.choose(answer.actions, age)
            game.frame()
            page.FRAMES.inc()
            self._acknowledge()
            self._send_frame()
            if self.winner:
                break
        self._timestep += 1
        self._check_abandonment()

    async def _until_due(self) -> None:
        while (left := self._clock.due - time.monotonic()) > 0:
            await asyncio.sleep(left)
        lag, late = self._clock.lag, self._clock.late
        if self._clock.begin(time.monotonic()) > 0:
            await asyncio.sleep(0)  # let connections send and receive between frames that run back to back
        page.LATE_FRAMES.inc(self._clock.late - late)
        page.CLOCK_LAG.inc(self._clock.lag - lag)

    async def _wait_until_active(self) -> None:
        self.running = False
        self._send_state()
        paused_at = time.monotonic()
        while not self._active() and not self._ending:
            await asyncio.sleep(PAUSE_SECONDS)
            self._check_abandonment()
        self.running = True
        now = time.monotonic()
        self._clock.resume(now)
        self.broadcast.postpone(now - paused_at)
        self._send_state()

    def _check_abandonment(self) -> None:
        """End the game if nobody has played it for a while, and send the state when it is due."""
        now = time.monotonic()
        if any(player.heroes for player in self._players):
            self._empty_since = now
        elif now - self._empty_since > self._settings.abandon_seconds:
            self.end("abandoned")
        if now - self._state_sent_at >= STATE_SECONDS:
            self._send_state()

    def _send_frame(self) -> None:
        """Send the current frame to everybody who may see it. A game that ends by its clock has no further frame."""
        game = self.game
        is_new, self._last_frame = game.engine_frame != self._last_frame, game.engine_frame
        for view in self._views if is_new else ():
            outboxes = [player.outbox for player in self._players if player.heroes and player.team == view.team]
            if outboxes:
                events = console_events(game.events(view.team))
                view.record(partial(game.write_seen, view.team), game.engine_frame, events)
            for outbox in outboxes:
                outbox.send_frame(view)
        self._events += console_events(game.events(None))
        if (is_new and game.engine_frame % FRAMES == 0) or self.winner:
            events, self._events = self._events, []
            self._whole.record(partial(game.write_seen, None), game.engine_frame, events)
            self.broadcast.add(self._whole, time.monotonic())
            if self._store is not None:
                self._recorder.add(self._whole)

    @property
    def winner(self) -> int:
        """Winner: 0 undecided, 1 Radiant, 2 Dire, 3 a draw."""
        return int(self.game.winner)

    def end(self, how: str) -> None:
        """End the game without a winner, unless it has one: "abandoned", "closed", "drained"."""
        self._ending = self._ending or ("" if self.winner else how)

    async def _end(self) -> None:
        winner = 0 if self._ending else self.winner
        rated: Mapping[str, Person] = {}
        if self._ending not in ("drained", "lost"):  # ends that the players did not cause
            try:
                rated = await asyncio.to_thread(self._rate, self._ended_game(winner))
            except Exception as error:  # an unavailable store costs the rating, not the end of the game
                log.warning("game %s is not rated: %s", self.begin.game, error)
        recorded = await self._store_recording(winner)
        for player in [p for p in self._players if p.heroes]:
            end = play_pb2.End(winner=winner, reason=self._ending, recorded=recorded)
            person = rated.get(player.who)
            if person is not None:
                end.rating.CopyFrom(play_pb2.Rating(mu=person.mu, sigma=person.sigma))
            self._send_end(player, end)
        self.running = False
        self.ended.set()
        try:
            await asyncio.wait_for(self.agents.close(self.game.obs), CLOSE_SECONDS)
        except TimeoutError:
            pass  # inference forgets the sessions by itself

    async def send_remaining(self, draining: Callable[[], bool]) -> None:
        """Send the remaining steps to spectators after the game's end, with the usual delay, until ``draining``."""
        while any(not p.outbox.ended for p in self._players) and self.broadcast.waits and not draining():
            self.broadcast.send(time.monotonic())
            await asyncio.sleep(0.1)
        for player in list(self._players):
            self._send_end(player, play_pb2.End(winner=0 if self._ending else self.winner, reason=self._ending,
                                                recorded=self._was_recorded))

    async def _store_recording(self, winner: int) -> bool:
        """Store the recording. Return False if nobody played or storing it failed."""
        if self._store is None or not self._participants:
            return False
        players = self.seats.sides([filler.name for filler in self.begin.fillers], self._participants)
        about = {**self._header_facts(), "players": players}

        def pack_and_store(store: Callable[[GameRecording], object]) -> None:
            store(self._recorder.recorded(self.begin, about, sorted(self._participants), winner))

        try:
            await asyncio.to_thread(pack_and_store, self._store)
        except Exception:  # an error costs the recording, not the end of the game
            log.exception("the recording of game %s is lost", self.begin.game)
        else:
            self._was_recorded = True
        return self._was_recorded

    @staticmethod
    def _send_end(player: ConnectedPlayer, end: play_pb2.End) -> None:
        player.outbox.send(play_pb2.JoinResponse(end=end))
        player.outbox.end()

    def _ended_game(self, winner: int) -> FinishedGame:
        people = self.seats.controlled()
        away = (self.seats.people() | self._participants) - {name for side in people for name in side}
        return FinishedGame(self.begin.game, winner, people, sorted(away),
                            [filler.name for filler in self.begin.fillers], self.game.layout.heroes)

    # ------------------------------------------------------------------------------------------------ people

    def enter(self, who: str, spectate: bool, wanted: Sequence[int]) -> ConnectedPlayer:
        """Add a person. Raises NoSeat when the game is full of spectators, or no hero is available to a player."""
        if spectate and len(self._players) >= self._settings.max_connections:
            raise NoSeat("full")
        if self.ended.is_set() or self._ending:
            raise NoSeat("over")
        now = time.monotonic()
        heroes = [] if spectate else self.seats.enter(who, wanted, now)
        rate = self._settings.orders_per_second
        player = ConnectedPlayer(who, Outbox(self._settings.client_backlog_kibibytes << 10), heroes, RateLimit(rate),
                                 RateLimit(max(rate / 12, 1.0)))
        for other in [p for p in self._players if not spectate and p.who == who and p.heroes]:
            # The same person has connected again: the newest connection replaces the others.
            other.outbox.send(play_pb2.JoinResponse(refused=play_pb2.Refused(reason="elsewhere")))
            other.outbox.end()
            self._remove(other)
        whose: dict[str, Any] = {"team": None if spectate else player.team, "hero": heroes[0] if heroes else None,
                                 "heroes": heroes}
        player.outbox.begin(header_of(self.begin.config, self._header_facts(), whose))
        self._add(player)
        if heroes:
            self._participants.add(who)
        if spectate:
            self.broadcast.enter(player.outbox)
        self._update_control()
        self._send_state()
        return player

    def leave(self, player: ConnectedPlayer) -> None:
        """Remove a connection: the agent controls the person's heroes at once."""
        if player not in self._players:
            return  # a newer connection of the person has replaced this one
        self._remove(player)
        if player.heroes:
            self.seats.leave(player.who, time.monotonic())
        self.broadcast.leave(player.outbox)
        if not self.ended.is_set():
            self._update_control()
            self._send_state()

    def order(self, player: ConnectedPlayer, message: play_pb2.Order) -> None:
        """Check a person's order and acknowledge it with the frame in which it takes effect."""
        reason = self._order(player, message)
        page.ORDERS.labels(reason or "done").inc()
        if reason:
            self._ack(player, message.n, reason)
        else:
            self._pending.append((player, message.n))

    def _order(self, player: ConnectedPlayer, message: play_pb2.Order) -> str:
        if not player.order_limit.take():
            return "rate"
        if message.n <= player.last:
            return "number"
        player.last = message.n
        if not player.heroes:
            return "spectator"
        hero = message.hero if message.HasField("hero") else player.heroes[0]
        if hero not in player.heroes:
            return "hero"
        if self.winner or self._ending:
            return "game_over"
        if not self.running:
            return "paused"
        if hero not in self.seats.held():
            return "agent"
        order = order_of(message, *self._map)
        if order is None:
            return "unknown"
        verdict = self.game.order(hero, order)
        return "" if verdict.ok else verdict.reason

    def ping(self, player: ConnectedPlayer, at: play_pb2.MapPoint) -> None:
        """Send a map ping to the people on the person's side."""
        if not player.heroes or not player.message_limit.take() or max(at.x, at.y) > 65535:
            return
        for other in self._players:
            if other.heroes and other.team == player.team:
                other.outbox.send(play_pb2.JoinResponse(ping=play_pb2.Ping(who=player.who, at=at)))

    def hand(self, player: ConnectedPlayer, hero: int | None, held: bool) -> None:
        """Give one of the person's heroes to the agent, or take it back."""
        try:
            if not player.heroes:
                raise NoSeat("spectator")
            if not player.message_limit.take():
                raise NoSeat("rate")
            self.seats.hand(player.who, hero, held)
        except NoSeat as error:
            player.outbox.send(play_pb2.JoinResponse(refused=play_pb2.Refused(reason=str(error))))
            return
        self._update_control()
        self._send_state()

    # ------------------------------------------------------------------------------------------------ messages

    def state(self) -> play_pb2.GameState:
        """Return the state of the game."""
        versions = [filler.version for filler in self.begin.fillers if filler.version >= 0]
        return play_pb2.GameState(
            game=self.begin.game, opened_by=self.begin.who, opened_at=self.opened_at,
            players=[filler.name for filler in self.begin.fillers],
            seats=[play_pb2.Seat(hero=hero, name=seat.name, team=hero // TEAM_HEROES, who=seat.who, held=seat.held)
                   for hero, seat in self.seats.seats.items()],
            time=self.game.time, engine_frame=self.game.engine_frame, running=self.running, winner=self.winner,
            version=max(versions, default=-1), late=self.agents.late, delay_ms=1000 * self.agents.seconds,
            late_frames=self._clock.late, watching=len(self._players))

    def _send_state(self) -> None:
        self._state_sent_at = time.monotonic()
        state = play_pb2.JoinResponse(state=self.state())
        for player in self._players:
            player.outbox.send(state if player.heroes else
                               play_pb2.JoinResponse(state=self._without_score(state.state)))

    @staticmethod
    def _without_score(state: play_pb2.GameState) -> play_pb2.GameState:
        """Return the state for a spectator, without the current time and winner."""
        found = play_pb2.GameState()
        found.CopyFrom(state)
        found.time = 0.0
        found.engine_frame = found.winner = 0
        return found

    def _update_control(self) -> None:
        """Set in the core whether a person or the agent controls each hero."""
        held = self.seats.held()
        for hero in self.seats.seats:
            self.game.take(hero, hero in held)

    def _acknowledge(self) -> None:
        for player, n in self._pending:
            self._ack(player, n)
        self._pending.clear()

    def _ack(self, player: ConnectedPlayer, n: int, reason: str = "") -> None:
        ack = play_pb2.Ack(n=n, frame=self.game.engine_frame, ok=not reason, reason=reason)
        player.outbox.send(play_pb2.JoinResponse(ack=ack))

    def _header_facts(self) -> dict[str, Any]:
        return {"run": self.begin.run, "kind": "played", "players": [f.name for f in self.begin.fillers],
                "game": self.begin.game}

    def _add(self, player: ConnectedPlayer) -> None:
        self._players.append(player)
        page.PEOPLE.labels("playing" if player.heroes else "watching").inc()

    def _remove(self, player: ConnectedPlayer) -> None:
        self._players.remove(player)
        page.PEOPLE.labels("playing" if player.heroes else "watching").dec()

"""A person's web socket to the play service: JSON and bytes on one side, five.v1.PlayService messages on the other."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import WebSocket
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.websockets import WebSocketDisconnect, WebSocketState

from five.clients.play import GameConnection
from five.protos.v1 import play_pb2
from five.services.controller.http.auth import Caller, Role
from five.services.controller.http.problems import Problem
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.telemetry.metrics import counter, gauge

REVALIDATE_SECONDS = 2.0  # between two checks that the caller is still valid
MAX_MESSAGE_BYTES = 4096  # of a browser's message
MAX_MESSAGES_PER_SECOND = 240  # a person sends fewer; the play service limits commands as well
# Close codes: no such game; the role no longer permits it; play service unavailable.
CODE_GAME_OVER, CODE_FORBIDDEN, CODE_SERVICE_UNAVAILABLE = 4004, 4003, 1011

SOCKETS = gauge("controller", "play_sockets", "instances", "Open web sockets of people who play or watch.")
FORWARDED = counter("controller", "play_forwarded_bytes", "Bytes of games forwarded to people who play or watch.")
UNREADABLE = counter("controller", "play_unreadable", "Invalid messages of people.")

Uint16 = Annotated[int, Field(ge=0, le=65535)]
Point = tuple[Uint16, Uint16]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CommandMessage(_Message):
    """A command to one hero (docs/play.md)."""

    type: Literal["order"]
    n: int = Field(ge=0, lt=2**53)
    hero: int | None = Field(None, ge=0, le=9)
    kind: str = Field(max_length=32)
    target: Point | None = None
    at: Point | None = None
    slot: int = Field(-1, ge=-1, le=63)
    to: int = Field(-1, ge=-1, le=63)
    item: str = Field("", max_length=64)
    queue: bool = False


class PingMessage(_Message):
    """A ping on the map."""

    type: Literal["ping"]
    at: Point


class ControlMessage(_Message):
    """A request to give a hero to the agent, or to take it back."""

    type: Literal["hand"]
    hero: int | None = Field(None, ge=0, le=9)
    held: bool


class LeaveMessage(_Message):
    """A message that the person leaves the game."""

    type: Literal["leave"]


_MESSAGES: TypeAdapter[CommandMessage | PingMessage | ControlMessage | LeaveMessage] = TypeAdapter(
    Annotated[CommandMessage | PingMessage | ControlMessage | LeaveMessage, Field(discriminator="type")])


def parse_message(text: str) -> play_pb2.JoinRequest | None:
    """Convert a browser's message to a request; None means leave. Raise ValueError if it is invalid."""
    if len(text) > MAX_MESSAGE_BYTES:
        raise ValueError(f"message has {len(text)} characters: at most {MAX_MESSAGE_BYTES} are allowed")
    try:
        message = _MESSAGES.validate_json(text)
    except ValidationError as error:
        raise ValueError(str(error)) from None
    match message:
        case CommandMessage():
            order = play_pb2.Order(n=message.n, kind=message.kind, slot=message.slot, to=message.to, item=message.item,
                                   queue=message.queue, hero=message.hero)
            if message.target is not None:
                order.target.CopyFrom(play_pb2.Target(slot=message.target[0], generation=message.target[1]))
            if message.at is not None:
                order.at.CopyFrom(_map_point(message.at))
            return play_pb2.JoinRequest(order=order)
        case PingMessage():
            return play_pb2.JoinRequest(ping=play_pb2.MapPing(at=_map_point(message.at)))
        case ControlMessage():
            return play_pb2.JoinRequest(hand=play_pb2.HeroControl(hero=message.hero, held=message.held))
    return None


def _map_point(at: Point) -> play_pb2.MapPoint:
    return play_pb2.MapPoint(x=at[0], y=at[1])


def response_json(response: play_pb2.JoinResponse) -> dict[str, Any]:
    """Convert a message of the play service to JSON values."""
    match response.WhichOneof("what"):
        case "ack":
            ack = response.ack
            return {"type": "ack", "n": ack.n, "frame": ack.frame, "ok": ack.ok, "reason": ack.reason}
        case "state":
            return {"type": "state", **game_state_json(response.state)}
        case "ping":
            return {"type": "ping", "who": response.ping.who, "at": [response.ping.at.x, response.ping.at.y]}
        case "end":
            end = response.end
            rating = {"mu": end.rating.mu, "sigma": end.rating.sigma} if end.HasField("rating") else None
            return {"type": "end", "winner": end.winner, "reason": end.reason, "rating": rating,
                    "recorded": end.recorded}
    return {"type": "refused", "reason": response.refused.reason}


def game_state_json(state: play_pb2.GameState) -> dict[str, Any]:
    """Convert a game's state to JSON values."""
    return {
        "game": state.game, "opened_by": state.opened_by, "opened_at": state.opened_at,
        "players": list(state.players), "time": round(state.time, 2), "frame": state.engine_frame,
        "running": state.running, "winner": state.winner, "version": state.version, "late": state.late,
        "late_frames": state.late_frames, "delay_ms": round(state.delay_ms, 1), "watching": state.watching,
        "seats": [{"hero": s.hero, "name": s.name, "team": s.team, "who": s.who or None, "held": s.held}
                  for s in state.seats]}


class PlaySocket:
    """Relays messages between an accepted web socket and a game until either ends, or the person's role is below
    ``role``. ``revalidate`` returns the present caller, and raises Problem once the token or session has ended; it
    blocks.
    """

    def __init__(self, socket: WebSocket, joined: GameConnection, revalidate: Callable[[], Caller], role: Role) -> None:
        self._socket = socket
        self._joined = joined
        self._revalidate = revalidate
        self._role = role
        self._code, self._reason = 1000, ""

    async def run(self) -> None:
        """Relay messages until either side ends, then close the socket."""
        SOCKETS.inc()
        tasks = [asyncio.create_task(work) for work in (self._forward_to_browser(), self._forward_to_game(),
                                                        self._watch_session())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            SOCKETS.dec()
            self._joined.leave()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)  # either side may close its connection at any time
            if self._socket.application_state is WebSocketState.CONNECTED:
                try:
                    await self._socket.close(self._code, self._reason)
                except (WebSocketDisconnect, RuntimeError):
                    pass  # closed by the browser

    async def _forward_to_browser(self) -> None:
        """Forward messages to the browser. A slow browser blocks this task, and the game skips frames for it.

        Raise WebSocketDisconnect or RuntimeError if the browser closes the socket.
        """
        try:
            async for response in self._joined:
                if response.WhichOneof("what") == "frame":
                    FORWARDED.inc(len(response.frame))
                    await self._socket.send_bytes(response.frame)
                else:
                    await self._send(response_json(response))
        except CallFailed as failure:
            self._code = CODE_GAME_OVER if failure.code is StatusCode.NOT_FOUND else CODE_SERVICE_UNAVAILABLE
            await self._send({"type": "refused", "reason": "over" if self._code == CODE_GAME_OVER else "away"})

    async def _forward_to_game(self) -> None:
        """Forward messages to the game.

        Raise WebSocketDisconnect if the browser closes the socket, and CallFailed if the game's connection is lost.
        """
        second, count = time.monotonic(), 0
        try:
            while True:
                text = await self._socket.receive_text()
                count += 1
                if (now := time.monotonic()) - second >= 1.0:
                    second, count = now, 1
                if count > MAX_MESSAGES_PER_SECOND:
                    self._code, self._reason = 1008, "too many messages"
                    return
                try:
                    request = parse_message(text)
                except ValueError:
                    UNREADABLE.inc()
                    await self._send({"type": "refused", "reason": "unreadable"})
                    continue
                if request is None:
                    return
                await self._joined.send(request)
        except KeyError:  # a binary message
            self._code, self._reason = 1003, "text messages only"

    async def _watch_session(self) -> None:
        """Return when the token or session is no longer valid, or its role too low."""
        while True:
            await asyncio.sleep(REVALIDATE_SECONDS)
            try:
                caller = await asyncio.to_thread(self._revalidate)
            except Problem:
                self._code, self._reason = 1008, "the session has ended"
                return
            except Exception:
                continue  # unknown while the store is unavailable; checked again
            if caller.role < self._role:
                self._code, self._reason = CODE_FORBIDDEN, f"{caller.name} is a viewer now: viewers may spectate only"
                return

    async def _send(self, what: dict[str, Any]) -> None:
        await self._socket.send_text(json.dumps(what, separators=(",", ":")))

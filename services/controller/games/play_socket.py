"""A person's web socket on its way to the play service: JSON and bytes here, messages of five.v1.PlayService there."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import WebSocket
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.websockets import WebSocketDisconnect, WebSocketState

from five.clients.play import Joined
from five.protos.v1 import play_pb2
from five.services.controller.http.problems import Problem
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.telemetry.metrics import counter, gauge

STILL_SECONDS = 2.0  # between two looks whether who plays still may
MOST_BYTES = 4096  # of a message from a browser
MOST_A_SECOND = 240  # of them; more is no person, and orders are bounded behind it
OVER, GONE = 4004, 1011  # close codes: there is no such game, or not any more; the play service is gone

SOCKETS = gauge("controller", "play_sockets", "instances", "People who play or watch through this controller.")
RELAYED = counter("controller", "play_relayed_bytes", "Bytes of games that were given to people who play or watch.")
UNREADABLE = counter("controller", "play_unreadable", "Messages of people that mean nothing, and were answered so.")

Units = Annotated[int, Field(ge=0, le=65535)]
Place = tuple[Units, Units]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid")


class OrderMessage(_Message):
    """An order to one hero (docs/play.md)."""

    type: Literal["order"]
    n: int = Field(ge=0, lt=2**53)
    hero: int | None = Field(None, ge=0, le=9)
    kind: str = Field(max_length=32)
    target: Place | None = None
    at: Place | None = None
    slot: int = Field(-1, ge=-1, le=63)
    to: int = Field(-1, ge=-1, le=63)
    item: str = Field("", max_length=64)
    queue: bool = False


class PingMessage(_Message):
    """A ping on the map."""

    type: Literal["ping"]
    at: Place


class HandMessage(_Message):
    """Gives a hero to the agent, or takes it back."""

    type: Literal["hand"]
    hero: int | None = Field(None, ge=0, le=9)
    held: bool


class LeaveMessage(_Message):
    """The person goes."""

    type: Literal["leave"]


_MESSAGES: TypeAdapter[OrderMessage | PingMessage | HandMessage | LeaveMessage] = TypeAdapter(
    Annotated[OrderMessage | PingMessage | HandMessage | LeaveMessage, Field(discriminator="type")])


def parsed(text: str) -> play_pb2.JoinRequest | None:
    """What a browser's message asks for; None: to leave. Raises ValueError for one that means nothing."""
    if len(text) > MOST_BYTES:
        raise ValueError(f"a message has {MOST_BYTES} characters at most")
    try:
        said = _MESSAGES.validate_json(text)
    except ValidationError as error:
        raise ValueError(str(error)) from None
    match said:
        case OrderMessage():
            order = play_pb2.Order(n=said.n, kind=said.kind, slot=said.slot, to=said.to, item=said.item,
                                   queue=said.queue, hero=said.hero)
            if said.target is not None:
                order.target.CopyFrom(play_pb2.Target(slot=said.target[0], generation=said.target[1]))
            if said.at is not None:
                order.at.CopyFrom(_place(said.at))
            return play_pb2.JoinRequest(order=order)
        case PingMessage():
            return play_pb2.JoinRequest(ping=play_pb2.MapPing(at=_place(said.at)))
        case HandMessage():
            return play_pb2.JoinRequest(hand=play_pb2.Hand(hero=said.hero, held=said.held))
    return None


def _place(at: Place) -> play_pb2.Place:
    return play_pb2.Place(x=at[0], y=at[1])


def as_json(response: play_pb2.JoinResponse) -> dict[str, Any]:
    """A message of the play service as JSON values."""
    match response.WhichOneof("what"):
        case "ack":
            ack = response.ack
            return {"type": "ack", "n": ack.n, "frame": ack.frame, "ok": ack.ok, "reason": ack.reason}
        case "state":
            return {"type": "state", **state_of(response.state)}
        case "ping":
            return {"type": "ping", "who": response.ping.who, "at": [response.ping.at.x, response.ping.at.y]}
        case "end":
            end = response.end
            rating = {"mu": end.rating.mu, "sigma": end.rating.sigma} if end.HasField("rating") else None
            return {"type": "end", "winner": end.winner, "reason": end.reason, "rating": rating,
                    "recorded": end.recorded}
    return {"type": "refused", "reason": response.refused.reason}


def state_of(state: play_pb2.GameState) -> dict[str, Any]:
    """How a game stands, as JSON values."""
    return {
        "game": state.game, "opened_by": state.opened_by, "opened_at": state.opened_at,
        "players": list(state.players), "time": round(state.time, 2), "frame": state.engine_frame,
        "running": state.running, "winner": state.winner, "version": state.version, "late": state.late,
        "late_frames": state.late_frames, "delay_ms": round(state.delay_ms, 1), "watching": state.watching,
        "seats": [{"hero": s.hero, "name": s.name, "team": s.team, "who": s.who or None, "held": s.held}
                  for s in state.seats]}


class Socket:
    """Relays between an accepted web socket and a game, until either ends. ``still`` raises Problem once the person's
    right to be here has ended; it blocks."""

    def __init__(self, socket: WebSocket, joined: Joined, still: Callable[[], object]) -> None:
        self._socket = socket
        self._joined = joined
        self._still = still
        self._code, self._reason = 1000, ""

    async def run(self) -> None:
        """To the end; closes the socket."""
        SOCKETS.inc()
        tasks = [asyncio.create_task(work) for work in (self._down(), self._up(), self._stay())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            SOCKETS.dec()
            self._joined.leave()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._socket.application_state is WebSocketState.CONNECTED:
                try:
                    await self._socket.close(self._code, self._reason)
                except (WebSocketDisconnect, RuntimeError, OSError):
                    pass  # the browser was faster

    async def _down(self) -> None:
        """From the game to the browser. A browser that is slow holds this back, and the game skips frames for it."""
        try:
            async for response in self._joined:
                if response.WhichOneof("what") == "frame":
                    RELAYED.inc(len(response.frame))
                    await self._socket.send_bytes(response.frame)
                else:
                    await self._send(as_json(response))
        except CallFailed as failure:
            self._code = OVER if failure.code is StatusCode.NOT_FOUND else GONE
            await self._send({"type": "refused", "reason": "over" if self._code == OVER else "away"})
        except (WebSocketDisconnect, RuntimeError, OSError):
            pass  # the browser is gone

    async def _up(self) -> None:
        """From the browser to the game."""
        second, count = time.monotonic(), 0
        try:
            while True:
                text = await self._socket.receive_text()
                count += 1
                if (now := time.monotonic()) - second >= 1.0:
                    second, count = now, 1
                if count > MOST_A_SECOND:
                    self._code, self._reason = 1008, "too many messages"
                    return
                try:
                    request = parsed(text)
                except ValueError:
                    UNREADABLE.inc()
                    await self._send({"type": "refused", "reason": "unreadable"})
                    continue
                if request is None:
                    return
                await self._joined.send(request)
        except KeyError:  # bytes
            self._code, self._reason = 1003, "text is expected"
        except (WebSocketDisconnect, CallFailed, RuntimeError):
            pass

    async def _stay(self) -> None:
        """Ends when the token or session holds no more."""
        while True:
            await asyncio.sleep(STILL_SECONDS)
            try:
                await asyncio.to_thread(self._still)
            except Problem:
                self._code, self._reason = 1008, "the session has ended"
                return
            except Exception:
                pass  # the store is away, and nobody knows: it is asked again

    async def _send(self, what: dict[str, Any]) -> None:
        await self._socket.send_text(json.dumps(what, separators=(",", ":")))

"""A small server of one game that is played, for tests of the page: it speaks the socket of docs/play.md with real
bytes, made by dota.spectator of a real game, and answers orders as it was told to.

It is no part of the product. The real service is tested in tests/console/test_training_run.py.
"""

import asyncio
import json
import struct
import time
import zlib
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from dota.config import GameConfig
from dota.spectator.chunks import ChunkWriter
from dota.spectator.happenings import happenings
from dota.spectator.header import make_header
from dota.spectator.schema import game_schema
from dota.vec_game import Controller, VecGame
from tests.services.live_controller import LiveController

FRAME_SECONDS = 1 / 30
FRAMES_A_STEP = 4
POOL = ["sniper", "lion", "nevermore", "sven", "viper", "crystal_maiden"]
GAME = "0123456789abcdef0123456789abcdef"
NAME = "<b>ada</b>"


class PlayedHere:
    """One game, a connection at a time. ``heard`` has every message of the page; ``refuse`` maps an order's kind to the
    reason for which it is refused, ``answer_after`` is how many frames it waits with its answers."""

    def __init__(self, config: GameConfig, hero: int = 0, seconds: float = 0, who: str = "ada") -> None:
        self.config, self.hero, self.who = config, hero, who
        self.vec = VecGame(config, 1, seed=3, observations=False)
        self.vec.controllers[:] = Controller.SCRIPTED
        for _ in range(round(seconds * 7.5)):
            self.vec.step()
        self.schema = game_schema(thoughts=True)
        self.frame = round(seconds * 30)
        self.heard: list[dict[str, Any]] = []
        self.opened: list[dict[str, Any]] = []
        self.refuse: dict[str, str] = {}
        self.answer_after = 1
        self.connections = 0
        self.held = True
        self.break_off = False
        self.game_over = False

    # What the page asks by HTTP.

    async def offer(self, _: Request) -> JSONResponse:
        """GET /v1/play."""
        return JSONResponse({"server": True, "why": "", "mode": self.config.mode, "patch": self.config.patch,
                             "heroes_per_team": self.config.heroes_per_team, "heroes": self.config.hero_pool,
                             "versions": [120, 100], "bots": ["scripted-hard", "random"],
                             "spectator_delay_seconds": 120})

    async def games(self, request: Request) -> JSONResponse:
        """GET and POST /v1/play/games."""
        if request.method == "POST":
            self.opened.append(await request.json())
            return JSONResponse({"game": GAME, "seat": self._seats()[0]}, 201)
        return JSONResponse({"games": [{"game": GAME, "running": True, "time": 61.0, "seats": self._seats(),
                                        "version": 120}] if self.opened else []})

    async def ratings(self, _: Request) -> JSONResponse:
        """GET /v1/play/ratings."""
        return JSONResponse({"ratings": [{"name": NAME, "mu": 27.5, "sigma": 4.1, "won": 2, "lost": 1, "drawn": 0,
                                           "abandoned": 1, "last_at": 1.0}]})

    def _seats(self) -> list[dict[str, Any]]:
        teams = self.config.heroes_per_team
        heroes = [(side, side * 5 + k) for side in (0, 1) for k in range(teams)]
        return [{"hero": hero, "name": self.config.hero_pool[hero % len(self.config.hero_pool)], "team": side,
                 "who": self.who if hero == self.hero else None, "held": hero == self.hero and self.held}
                for side, hero in heroes]

    # The socket.

    async def socket(self, socket: WebSocket) -> None:
        """Shows the game in real time until the page goes."""
        await socket.accept()
        self.connections += 1
        self.held, self.break_off = True, False
        header = {**make_header(self.config, self.schema, {"players": [NAME, "version-120"]}),
                  "team": self.hero // 5, "hero": self.hero}
        await socket.send_bytes(b"\x01" + zlib.compress(json.dumps(header).encode()))
        await self._state(socket)
        due: list[tuple[int, dict[str, Any]]] = []
        listening = asyncio.create_task(self._listen(socket, due))
        try:
            await self._show(socket, due)
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            self.held = False
            listening.cancel()

    async def _show(self, socket: WebSocket, due: list[tuple[int, dict[str, Any]]]) -> None:
        writer, out, began, first = ChunkWriter(self.schema), self.schema.empty(), time.monotonic(), self.frame
        team = self.hero // 5
        kind = 2
        while not self.break_off:
            self.frame += 1
            await asyncio.sleep(max(began + (self.frame - first) * FRAME_SECONDS - time.monotonic(), 0))
            events: list[dict[str, Any]] = []
            if self.frame % FRAMES_A_STEP == 0 and not self.vec.winner[0]:
                self.vec.step()
                self.vec.write_seen(0, out)
                out["dire_fog" if team == 0 else "radiant_fog"][...] = 0
                events = happenings(self.vec.events(0))
            while due and due[0][0] <= self.frame:
                await self._answer(socket, due.pop(0)[1])
            writer.add(out, self.frame, events)
            raw = b"".join(writer._parts)
            writer._parts.clear()
            await socket.send_bytes(bytes([kind]) + struct.pack("<I", self.frame) + raw)
            kind = 3
            if self.game_over:
                await socket.send_text(json.dumps({"type": "end", "winner": 1, "reason": "",
                                                   "rating": {"mu": 26.0, "sigma": 7.5}}))
                await socket.close()
                return
        await socket.close(1011)

    async def _listen(self, socket: WebSocket, due: list[tuple[int, dict[str, Any]]]) -> None:
        while True:
            message = json.loads(await socket.receive_text())
            self.heard.append(message)
            if message["type"] == "order":
                due.append((self.frame + self.answer_after, message))
            elif message["type"] == "hand":
                self.held = message["held"]
                await self._state(socket)
            elif message["type"] == "ping":
                await socket.send_text(json.dumps({"type": "ping", "who": self.who, "at": message["at"]}))

    async def _answer(self, socket: WebSocket, order: dict[str, Any]) -> None:
        reason = self.refuse.get(order["kind"], "")
        await socket.send_text(json.dumps({"type": "ack", "n": order["n"], "frame": self.frame, "ok": not reason,
                                           "reason": reason}))

    async def _state(self, socket: WebSocket) -> None:
        await socket.send_text(json.dumps({"type": "state", "running": True, "winner": 0, "seats": self._seats(),
                                           "version": 120, "late": 0, "delay_ms": 12.5}))

    # What tests ask.

    def orders(self, kind: str) -> list[dict[str, Any]]:
        """The orders of that kind that the page has given."""
        return [message for message in self.heard if message["type"] == "order" and message["kind"] == kind]

    def serve_at(self, rest: LiveController) -> None:
        """Answers in the place of the controller's own addresses."""
        rest.app.router.routes[:0] = [
            Route("/v1/play", self.offer), Route("/v1/play/games", self.games, methods=["GET", "POST"]),
            Route("/v1/play/ratings", self.ratings), WebSocketRoute(f"/v1/play/games/{GAME}/socket", self.socket)]

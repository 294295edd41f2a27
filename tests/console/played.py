"""Small server of one played game, for tests of the page: it speaks the protocol of docs/play-protocol.md with frames
of a real game, encoded by dota.spectator.

It is not part of the product. tests/console/test_training_run.py tests the real service.
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
from dota.play import InteractiveGame, Order
from dota.spectator.chunks import ChunkWriter
from dota.spectator.console_events import console_events
from dota.spectator.header import make_header
from dota.spectator.schema import game_schema
from dota.vec_game import Controller
from tests.services.live_controller import LiveController

FRAME_SECONDS = 1 / 30
POOL = ["sniper", "lion", "nevermore", "sven", "viper", "crystal_maiden"]
LOW, EXTENT = -8320, 16640  # world units: the map's corner and its side
GAME = "0123456789abcdef0123456789abcdef"
NAME = "<b>ada</b>"


class PlayedHere:
    """Server of one game for one connection at a time; bots played its first ``seconds``.

    ``heard`` holds every message of the page; ``refuse`` maps an order's kind to a reason for which it is refused;
    ``break_off`` ends each connection; ``silent`` stops the messages of one, which stays open. Lists of ended games and
    ratings contain the person ``name``.
    """

    def __init__(self, config: GameConfig, hero: int = 0, seconds: float = 0, who: str = "ada", name: str = NAME
                 ) -> None:
        self.config, self.hero, self.who, self.name = config, hero, who, name
        teams = config.heroes_per_team
        self.lineup = [config.hero_pool[:teams], config.hero_pool[-teams:]]
        self.game = InteractiveGame(config, 3, self.lineup)
        self.game.controllers[:] = Controller.SCRIPTED
        for _ in range(round(seconds * 7.5)):
            self.game.step()
        self.schema = game_schema(policy_debug=True)
        self.held = False
        self.heard: list[dict[str, Any]] = []
        self.opened: list[dict[str, Any]] = []
        self.refuse: dict[str, str] = {}
        self.connections = 0
        self.break_off = False
        self.silent = False
        self.taken_elsewhere = False
        self.game_over = False

    # Requests of the page by HTTP.

    async def offer(self, _: Request) -> JSONResponse:
        """Handle GET /v1/play."""
        return JSONResponse({"server": True, "why": "", "mode": self.config.mode, "patch": self.config.patch,
                             "heroes_per_team": self.config.heroes_per_team, "heroes": self.config.hero_pool,
                             "versions": [120, 100], "bots": ["scripted-hard", "random"],
                             "spectator_delay_seconds": 120})

    async def games(self, request: Request) -> JSONResponse:
        """Handle GET and POST /v1/play/games."""
        if request.method == "POST":
            self.opened.append(await request.json())
            return JSONResponse({"game": GAME, "seat": self._seats()[0]}, 201)
        return JSONResponse({"games": [{"game": GAME, "running": True, "time": 61.0, "seats": self._seats(),
                                        "version": 120}] if self.opened else []})

    async def ratings(self, _: Request) -> JSONResponse:
        """Handle GET /v1/play/ratings."""
        return JSONResponse({"ratings": [{"name": self.name, "mu": 27.5, "sigma": 4.1, "won": 2, "lost": 1, "drawn": 0,
                                          "abandoned": 1, "last_at": 1.0}]})

    async def recordings(self, _: Request) -> JSONResponse:
        """Handle GET /v1/play/recordings."""
        return JSONResponse({"recordings": [{"game": GAME, "bytes": 1000, "players": [self.name, "version-120"],
                                             "people": [self.name], "seconds": 61.0, "at": time.time(), "winner": 1,
                                             "kills": [2, 1]}]})

    def _seats(self) -> list[dict[str, Any]]:
        found = [{"hero": side * 5 + k, "name": name, "team": side, "who": None, "held": False}
                 for side in (0, 1) for k, name in enumerate(self.lineup[side])]
        mine = next(seat for seat in found if seat["hero"] == self.hero)
        mine["who"], mine["held"] = self.who, self.held
        return found

    # The socket.

    async def socket(self, socket: WebSocket) -> None:
        """Send the game in real time until the page disconnects."""
        await socket.accept()
        self.connections += 1
        self._hold(True)
        header = {**make_header(self.config, self.schema, {"players": [self.name, "version-120"]}),
                  "team": self.hero // 5, "hero": self.hero}
        await socket.send_bytes(b"\x01" + zlib.compress(json.dumps(header).encode()))
        await self._state(socket)
        due: list[dict[str, Any]] = []
        listening = asyncio.create_task(self._listen(socket, due))
        try:
            await self._show(socket, due)
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            self._hold(False)
            listening.cancel()

    def _hold(self, held: bool) -> None:
        self.held = held
        self.game.take(self.hero, held)

    async def _show(self, socket: WebSocket, due: list[dict[str, Any]]) -> None:
        game, writer, out = self.game, ChunkWriter(self.schema), self.schema.empty()
        began, first, kind, team = time.monotonic(), game.engine_frame, 2, self.hero // 5
        while not self.break_off:
            while self.silent and not self.break_off:
                await asyncio.sleep(FRAME_SECONDS)
            await asyncio.sleep(max(began + (game.engine_frame - first) * FRAME_SECONDS - time.monotonic(), 0))
            if not game.frames_left:
                game.begin()
            game.frame()
            for order in due:
                await self._answer(socket, order, "")
            due.clear()
            game.write_seen(team, out)
            writer.add(out, game.engine_frame, console_events(game.events(team)))
            raw = b"".join(writer._parts)
            writer._parts.clear()
            await socket.send_bytes(bytes([kind]) + struct.pack("<I", game.engine_frame) + raw)
            kind = 3
            if self.taken_elsewhere:
                self.taken_elsewhere = False
                await socket.send_text(json.dumps({"type": "refused", "reason": "elsewhere"}))
                await socket.close()
                return
            if self.game_over:
                await socket.send_text(json.dumps({"type": "end", "winner": 1, "reason": "",
                                                   "rating": {"mu": 26.0, "sigma": 7.5},
                                                   "recorded": True}))
                await socket.close()
                return
        await socket.close(1011)

    async def _listen(self, socket: WebSocket, due: list[dict[str, Any]]) -> None:
        while True:
            message = json.loads(await socket.receive_text())
            self.heard.append(message)
            if message["type"] == "order":
                reason = self.refuse.get(message["kind"]) or self.game.order(self.hero, self._order(message)).reason
                if reason:
                    await self._answer(socket, message, reason)
                else:
                    due.append(message)  # it takes effect in the next frame
            elif message["type"] == "hand":
                self._hold(message["held"])
                await self._state(socket)
            elif message["type"] == "ping":
                await socket.send_text(json.dumps({"type": "ping", "who": self.who, "at": message["at"]}))

    def _order(self, message: dict[str, Any]) -> Order:
        at = message.get("at")
        place = (LOW + at[0] / 65535 * EXTENT, LOW + at[1] / 65535 * EXTENT) if at else None
        target = tuple(message["target"]) if "target" in message else None
        return Order(message["kind"], target, place, message["slot"], message["to"], message["item"], message["queue"])

    async def _answer(self, socket: WebSocket, order: dict[str, Any], reason: str) -> None:
        await socket.send_text(json.dumps({"type": "ack", "n": order["n"], "frame": self.game.engine_frame,
                                           "ok": not reason, "reason": reason}))

    async def _state(self, socket: WebSocket) -> None:
        await socket.send_text(json.dumps({"type": "state", "running": True, "winner": 0, "seats": self._seats(),
                                           "version": 120, "late": 0, "delay_ms": 12.5}))

    # Requests of tests.

    def orders(self, kind: str) -> list[dict[str, Any]]:
        """Return the received orders of that kind."""
        return [message for message in self.heard if message["type"] == "order" and message["kind"] == kind]

    def serve_at(self, rest: LiveController) -> None:
        """Replace the controller's own routes."""
        rest.app.router.routes[:0] = [
            Route("/v1/play", self.offer), Route("/v1/play/games", self.games, methods=["GET", "POST"]),
            Route("/v1/play/ratings", self.ratings), Route("/v1/play/recordings", self.recordings),
            WebSocketRoute(f"/v1/play/games/{GAME}/socket", self.socket)]

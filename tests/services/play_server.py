"""Complete play system for tests: the play service with real games, a real inference server, and the controller's REST
API and WebSockets."""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import redis
from websockets.asyncio.client import ClientConnection, connect

from dota.config import GameConfig
from dota.spectator.chunks import read_step
from dota.spectator.schema import Frame, FrameSchema, parse_schema
from dota.vec_game import BOTS
from five.agent.config import RatingConfig
from five.clients.inference import InferenceClient
from five.clients.play import PlayClient
from five.protos.v1 import play_pb2_grpc
from five.run.config.controller import LimitsConfig
from five.run.config.play import PlayConfig
from five.services.play.players import Filler
from five.services.play.ratings import RatedPeople
from five.services.play.service import PlayService
from five.services.play.views import CHANGES, HEADER, KEYFRAME, frame_of
from rapid.rpc.server import serve
from rapid.store.state import RunState
from tests.services.counting import GAME, LAYOUT, Versions
from tests.services.inference_server import RPC, InferenceServer
from tests.services.live_controller import OPERATOR, RUN, LiveController, bearer, live

SHORT = GAME.model_copy(update={"start_seconds": 0.0, "max_game_seconds": 3.0, "neutrals": False})
VERSION = 7


@dataclass
class Played:
    """Running play system: ``service`` in the test's event loop, ``rest`` the controller, ``inference`` the agents'
    server."""

    service: PlayService
    rest: LiveController
    inference: InferenceServer
    people: RatedPeople

    async def ask(self, method: str, path: str, token: str = OPERATOR, **given: Any) -> httpx.Response:
        """Send a REST request while the event loop keeps running."""
        return await asyncio.to_thread(self.rest.ask, method, path, token, **given)

    async def open(self, **wish: Any) -> str:
        """Open a game and return its id."""
        answer = await self.ask("POST", "/v1/play/games", json=wish)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["game"])

    def socket(self, game: str, token: str = OPERATOR, query: str = "", **headers: str) -> connect:
        """Return a WebSocket of a game, as a context manager."""
        return connect(f"ws://127.0.0.1:{self.rest.port}/v1/play/games/{game}/socket{query}",
                       additional_headers={**(bearer(token) if token else {}), **headers}, compression=None)


def filler(name: str) -> Filler:
    if name in BOTS:
        return Filler(name, int(BOTS[name]))
    return Filler(f"version-{VERSION}", version=VERSION)


@asynccontextmanager
async def playing(redis_url: str, config: GameConfig = GAME, limits: LimitsConfig | None = None,
                  folder: Path | None = None, **settings: Any) -> AsyncIterator[Played]:
    """Start a run with human play; recordings are stored in ``folder``, None: in memory."""
    state = RunState(redis.Redis.from_url(redis_url), RUN)
    people = RatedPeople(state, RatingConfig())
    async with InferenceServer(Versions(0, VERSION)) as inference, \
            InferenceClient([inference.address], RPC, LAYOUT.hash, sparse=("shared", "private"), epoch=1) as client:
        service = PlayService(RUN, 1, config, PlayConfig(**settings), client, lambda: [VERSION], filler, people.rate,
                              folder=folder)
        server = await serve("127.0.0.1:0", [(play_pb2_grpc.add_PlayServiceServicer_to_server, service)], RPC)
        target = f"127.0.0.1:{server.port}"
        made: list[PlayClient] = []

        def client_of() -> PlayClient:
            made[:] = made or [PlayClient(target, RPC, RUN)]  # in the controller's own loop
            return made[0]

        found = live(redis_url, limits, play=client_of)
        rest = await asyncio.to_thread(found.__enter__)
        try:
            yield Played(service, rest, inference, people)
        finally:
            await service.drain()
            await asyncio.to_thread(found.__exit__, None, None, None)
            await server.stop(0)


@dataclass
class Browser:
    """Client that reconstructs a game from its WebSocket."""

    socket: ClientConnection
    header: dict[str, Any] = field(default_factory=dict)
    schema: FrameSchema | None = None
    frame: Frame = field(default_factory=dict)
    engine_frame: int = -1
    frames: int = 0
    keyframes: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    words: list[dict[str, Any]] = field(default_factory=list)
    sent: int = 0

    async def read(self) -> dict[str, Any] | None:
        """Process one message; return it if it is text."""
        message = await asyncio.wait_for(self.socket.recv(), 10)
        if isinstance(message, str):
            self.words.append(json.loads(message))
            return self.words[-1]
        if message[0] == HEADER:
            self.header = json.loads(zlib.decompress(message[1:]))
            self.schema = parse_schema(self.header["schema"])
            return None
        assert self.schema is not None
        kind, engine_frame = frame_of(message)
        assert kind in (KEYFRAME, CHANGES) and engine_frame > self.engine_frame
        if kind == KEYFRAME:
            self.frame = self.schema.empty()
            self.keyframes += 1
        self.events += read_step(message[5:], self.schema, self.frame)
        self.engine_frame = engine_frame
        self.frames += 1
        return None

    async def word(self, kind: str, **where: Any) -> dict[str, Any]:
        """Return the next text message of a kind with these values."""
        while True:
            said = await self.read()
            if said is not None and said["type"] == kind and where.items() <= said.items():
                return said

    async def play(self, frames: int) -> None:
        """Process that many more frames."""
        until = self.frames + frames
        while self.frames < until:
            await self.read()

    async def order(self, kind: str, **order: Any) -> int:
        """Send an order and return its number."""
        self.sent += 1
        await self.socket.send(json.dumps({"type": "order", "n": self.sent, "kind": kind, **order}))
        return self.sent

    async def say(self, kind: str, **what: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **what}))

    def units(self, *fields: str) -> list[dict[str, int]]:
        """Return the visible units with their slots."""
        assert self.schema is not None
        table = self.schema.table("unit")
        rows = self.frame["unit"]
        return [{"slot": slot, **{name: int(rows[slot, table.column(name)]) for name in fields}}
                for slot in range(len(rows)) if rows[slot, table.column("type")]]

"""Games behind the environment service, beside the same games in this process."""

import asyncio
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import numpy as np

from dota.config import GameConfig
from dota.spaces import Layout
from dota.vec_game import Controller, VecGame
from five.cli.benchmarks import game
from five.cli.benchmarks.child import RPC, Child, prepare, serve_until_closed
from five.cli.benchmarks.table import Row, machine, median_rate, row
from five.protos.v1 import env_pb2_grpc
from five.services.dota_env.env_loop import GameBatch
from five.services.dota_env.service import EnvService
from rapid.clients.environment import EnvironmentClient


@dataclass(frozen=True)
class Size:
    """How much is measured; games as in the benchmark of the game, all in one message."""

    stretch: game.Size = field(default_factory=lambda: game.Size(games=8, steps=1 << 30))


def _serve(pipe: Connection, config: GameConfig, saved: list[bytes]) -> None:
    async def create(config: GameConfig, games: int, seed: int, threads: int) -> GameBatch:
        players = VecGame(config, games, seed, threads, observations="packed")
        players.controllers[:] = Controller.SCRIPTED
        for i, snapshot in enumerate(saved):
            players.restore(i, snapshot)
        return GameBatch(players)

    service = EnvService(config, 1, len(saved), 1, 600.0, create=create)
    serve_until_closed(pipe, [(env_pb2_grpc.add_EnvServiceServicer_to_server, service)])


def through_service(size: game.Size, saved: list[bytes]) -> float:
    """Timesteps of a game a second through gRPC, the observations of both teams with each."""
    layout = Layout(size.game)
    games = np.arange(len(saved), dtype=np.int32)
    actions = np.zeros((len(saved), 2, layout.heroes, 6), np.int16)
    with Child(_serve, size.game, saved) as server, asyncio.Runner() as runner:

        async def connect() -> EnvironmentClient:
            client = EnvironmentClient(server.first[0], RPC, layout.heroes, layout.hash, epoch=1)
            await client.open(len(saved), 1, size.game.model_dump_json())
            return client

        client = runner.run(connect())

        async def steps() -> float:
            for _ in range(4):
                await client.step(games, actions)
            return 4.0 * len(saved)

        rate = median_rate(lambda: runner.run(steps()), size.seconds, size.repeats)
        runner.run(client.close())
    return rate


def measure(size: Size | None = None) -> list[Row]:
    """Row ``env.hero_steps``: hero-steps/s through the service; the reference is the same in this process."""
    prepare()
    stretch = (size or Size()).stretch
    conditions = machine(game=stretch.game.mode, heroes_per_team=stretch.game.heroes_per_team, threads=1,
                         games=stretch.games, from_seconds=stretch.from_seconds, encoding="sparse")
    saved = game.snapshots(stretch.game, stretch.games, stretch.from_seconds)
    heroes = 2 * stretch.game.heroes_per_team
    local = median_rate(game.Stretch(stretch, saved, True).step, stretch.seconds, stretch.repeats)
    remote = through_service(stretch, saved)
    return [row("env.hero_steps", heroes * remote, "hero-steps/s", heroes * local, conditions)]

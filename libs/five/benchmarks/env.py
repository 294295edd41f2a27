"""Games behind the environment service, compared with the same games in this process."""

import asyncio
import os
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import numpy as np

from dota.config import GameConfig
from dota.spaces import Layout
from dota.vec_game import VecGame
from five.benchmarks import game
from five.benchmarks.child_process import RPC, ChildProcess, prepare, serve_until_closed
from five.benchmarks.results import BenchmarkRow, machine, median_rate, row
from five.clients.environment import EnvironmentClient
from five.protos.v1 import env_pb2_grpc
from five.services.dota_env.game_batch import GameBatch
from five.services.dota_env.service import EnvService
from five.services.rollout.step_buffer import split_team_rows
from rapid.packed_array import PackedArray


@dataclass(frozen=True)
class EnvWorkload:
    """Workload of the benchmark ``env``: games as in the benchmark ``game``, all in one message of a stream."""

    workload: game.GameWorkload = field(default_factory=lambda: game.GameWorkload(games=8, steps=1 << 30))


def _serve(pipe: Connection, config: GameConfig, shares: list[list[bytes]]) -> None:
    if len(shares) > 1 and hasattr(os, "sched_setaffinity"):  # a thread each, on one core as the reference
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    left = list(shares)

    async def create(config: GameConfig, games: int, seed: int, threads: int) -> GameBatch:
        players = VecGame(config, games, seed, threads, observations="packed")
        players.controllers[:] = game.BOTS
        for i, snapshot in enumerate(left.pop()):
            players.restore(i, snapshot)
        return GameBatch(players)

    service = EnvService(config, 1, sum(map(len, shares)), len(shares), 600.0, create=create)
    serve_until_closed(pipe, [(env_pb2_grpc.add_EnvServiceServicer_to_server, service)])


def through_service(size: game.GameWorkload, saved: list[bytes], streams: int) -> float:
    """Return the timesteps of a game a second through gRPC, with packed observations of both teams.

    ``streams`` share the games evenly, as a rollout's groups do: one stream's games are played while another's are
    read, on one core of the server.
    """
    layout = Layout(size.game)
    shares = [saved[i::streams] for i in range(streams)]
    with ChildProcess(_serve, size.game, shares) as server, asyncio.Runner() as runner:

        async def connect(games: int) -> EnvironmentClient:
            client = EnvironmentClient(server.first[0], RPC, layout.heroes, layout.hash, epoch=1, packed=True)
            await client.open(games, 1, size.game.model_dump_json())
            return client

        async def play(client: EnvironmentClient) -> float:
            games = np.arange(client.games, dtype=np.int32)
            actions = np.zeros((client.games, 2, layout.heroes, 6), np.int16)
            for _ in range(4):
                step = await client.step(games, actions)
                for array in step.observations.values():
                    if isinstance(array, PackedArray):
                        split_team_rows(array)
            return 4.0 * client.games

        async def play_all() -> float:
            return sum(await asyncio.gather(*map(play, clients)))

        # In the order in which the server pops the shares.
        clients = [runner.run(connect(len(share))) for share in reversed(shares)]
        rate = median_rate(lambda: runner.run(play_all()), size.seconds, size.repeats)
        for client in clients:
            runner.run(client.close())
    return rate


def measure(size: EnvWorkload | None = None) -> list[BenchmarkRow]:
    """Return the rows ``env.hero_steps`` and ``env.hero_steps.streams2``: hero-steps/s through the service by one
    stream, which waits for each answer, and by two. The reference is the same games in one thread of this process."""
    prepare()
    workload = (size or EnvWorkload()).workload
    conditions = machine(game=workload.game.mode, heroes_per_team=workload.game.heroes_per_team, threads=1,
                         games=workload.games, from_seconds=workload.from_seconds, encoding="sparse")
    saved = game.snapshots(workload.game, workload.games, workload.from_seconds)
    heroes = 2 * workload.game.heroes_per_team
    local = median_rate(game.LoopedGames(workload, saved, True).step, workload.seconds, workload.repeats)
    return [row(name, heroes * through_service(workload, saved, streams), "hero-steps/s", heroes * local,
                {**conditions, "streams": streams})
            for name, streams in (("env.hero_steps", 1), ("env.hero_steps.streams2", 2))]

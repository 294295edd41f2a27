"""Ports of the server of dotaservice's protocol: one game each."""

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from five.protos.valve import dotaservice_pb2_grpc
from five.run.config import RunConfig
from five.services.dotaservice.service import DotaService
from five.services.dotaservice.session import Session
from rapid.address import join_address
from rapid.config import RpcConfig
from rapid.rpc.server import RpcServer, serve

MAX_REQUEST_MEBIBYTES = 1


@dataclass
class DotaServiceServer:
    """Started servers. A client of dotaservice knows only a host and a port, so each game has its own port."""

    servers: list[RpcServer] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    threads: ThreadPoolExecutor = field(default_factory=ThreadPoolExecutor)

    @property
    def ports(self) -> list[int]:
        """Return the ports in the order of the games."""
        return [server.port for server in self.servers]

    async def stop(self, grace: float) -> None:
        """End all games and calls."""
        await asyncio.gather(*(server.stop(grace) for server in self.servers))
        for session in self.sessions:
            session.close()
        self.threads.shutdown(wait=False)


async def start_server(config: RunConfig, port: int | None = None) -> DotaServiceServer:
    """Start the server of a configuration; ``port`` replaces that of the first game.

    Raises OSError when a port is taken.
    """
    settings = config.services.dotaservice
    first = settings.port if port is None else port
    rpc = open_rpc(config.rpc)
    started = DotaServiceServer(threads=ThreadPoolExecutor(settings.threads, "games"))
    try:
        for game in range(settings.games):
            session = Session(settings, started.threads, _seeds(config.seed, game))
            servicer = DotaService(config.game, settings, session)
            started.servers.append(await serve(
                join_address(settings.host, first + game if first else 0),
                [(dotaservice_pb2_grpc.add_DotaServiceServicer_to_server, servicer)], rpc))
            started.sessions.append(session)
    except OSError:
        await started.stop(0)
        raise
    return started


def open_rpc(config: RpcConfig) -> RpcConfig:
    """Return the RPC settings for clients that have neither tokens nor certificates and send small requests."""
    return config.model_copy(update={"require_token": False, "tls": None,
                                     "max_message_mebibytes": MAX_REQUEST_MEBIBYTES})


def _seeds(seed: int, game: int) -> Callable[[], int]:
    """Return the seeds of a port's games, one after another."""
    dice = random.Random(f"{seed}/{game}")
    return lambda: dice.getrandbits(53)

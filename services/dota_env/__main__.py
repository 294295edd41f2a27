"""The environment service: many games in one process, for rollouts elsewhere."""

import asyncio

from dota import packing
from protos.five.v1 import env_pb2_grpc
from rapid import wire
from rapid.rpc.server import serve
from rapid.service import Service, start
from run.config import RunConfig
from run.load import load
from services.dota_env.service import EnvService


async def serve_games(service: Service[RunConfig]) -> None:
    config, settings = service.config, service.config.services.dota_env
    face = EnvService(config.game, settings.threads, settings.max_games, settings.max_streams, settings.idle_seconds)
    server = await serve(service.listen_address(settings.port), [(env_pb2_grpc.add_EnvServiceServicer_to_server, face)],
                         config.rpc, service.token)
    service.stats = lambda: {"games": face.games}
    service.announce(server.port)
    service.not_ready = lambda: ""
    await service.lifecycle.drained()
    # Rollouts begin new games elsewhere; there is nothing to wait for.
    await server.stop(1.0)


def main() -> None:
    wire.register_sparse(packing.pack_f16, packing.unpacked_f16)
    with start("dota_env", load) as service:
        asyncio.run(serve_games(service))


if __name__ == "__main__":
    main()

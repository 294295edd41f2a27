"""Environment service: many games in one process, for rollouts on other machines. It has no store, because each request
for games carries their configuration."""

import logging

from dota import packing
from five.protos.v1 import env_pb2_grpc
from five.run.config import RunConfig
from five.run.config.address import own_port
from five.run.load import load
from five.services.dota_env.service import EnvService
from rapid import codec
from rapid.rpc.server import serve
from rapid.standalone_service import StandaloneService, start_standalone

log = logging.getLogger("five.services.dota_env")


async def serve_games(service: StandaloneService[RunConfig]) -> None:
    """Serve until the process drains."""
    config, settings = service.config, service.config.services.dota_env
    servicer = EnvService(config.game, settings.threads, settings.max_games, settings.max_streams,
                          settings.idle_seconds)
    server = await serve(service.listen_address(own_port(settings.addresses)),
                         [(env_pb2_grpc.add_EnvServiceServicer_to_server, servicer)], config.rpc, service.callers)
    log.info("serving games port=%d", server.port)
    service.report_with(lambda: "")
    await service.lifecycle.wait_drained()
    # Rollouts start new games at other servers, so there is nothing to wait for.
    await server.stop(1.0)


def main() -> None:
    """Run the service."""
    codec.register(packing.pack_f16, packing.unpacked_f16, packing.pack_changes)
    with start_standalone("dota_env", load) as service:
        service.critical_tasks.run(serve_games(service))


if __name__ == "__main__":
    main()

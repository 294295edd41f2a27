"""Server of dotaservice's protocol: games of the simulator for trainers that were written for Dota 2's own client. It
has no store and calls no other service."""

import logging

from five.run.config import RunConfig
from five.run.load import load
from five.services.dotaservice.server import start_server
from rapid.standalone_service import StandaloneService, start_standalone

log = logging.getLogger("five.services.dotaservice")


async def serve_games(service: StandaloneService[RunConfig]) -> None:
    """Serve until the process drains."""
    server = await start_server(service.config, service.arguments.port)
    log.info("serving games host=%s ports=%s", service.config.services.dotaservice.host,
             ",".join(map(str, server.ports)))
    service.report_with(lambda: "")
    await service.lifecycle.wait_drained()
    await server.stop(1.0)


def main() -> None:
    """Run the service."""
    with start_standalone("dotaservice", load) as service:
        service.critical_tasks.run(serve_games(service))


if __name__ == "__main__":
    main()

"""Section of the environment service."""

from pydantic import Field

from five.run.config.address import Address
from rapid.section import Section


class EnvServiceConfig(Section):
    """Environment servers: games for rollouts that do not run their own."""

    addresses: list[Address] = Field(
        [], description="Addresses of the servers, host:port. One address may stand for many servers behind it. "
        "Empty: a local cluster starts one server on a free port if services.rollout.environment is remote.")
    threads: int = Field(1, ge=1, le=1024, description="Threads of the core that step one stream's games; a stream "
                         "may request fewer.")
    max_games: int = Field(1024, ge=1, description="Games of all streams together. A stream that needs more is "
                           "refused.")
    max_streams: int = Field(64, ge=1, description="Streams served at once.")
    idle_seconds: float = Field(600.0, gt=0, description="A stream without a request for this long is closed with its "
                                "games.")

"""Configuration of the environment service."""

from pydantic import Field

from five.run.config.section import Section


class EnvServiceConfig(Section):
    """Games for rollouts that do not run their own."""

    addresses: list[str] = Field(
        [], description="Where the servers are reached, host:port; one of them may stand for many servers behind it. "
        "Empty in a local cluster: it starts one on a free port if services.rollout.environment is remote.")
    threads: int = Field(1, ge=1, le=1024, description="Threads of the core that step one stream's games, at most "
                         "what the stream asked for.")
    max_games: int = Field(1024, ge=1, description="Games of all streams together; a stream that asks for more is "
                           "refused.")
    max_streams: int = Field(64, ge=1, description="Streams served at once.")
    idle_seconds: float = Field(600.0, gt=0, description="A stream without a request for this long is ended, and its "
                                "games with it.")

    @property
    def port(self) -> int:
        """The port of the one address; 0, any free one, where there are several or none."""
        return int(self.addresses[0].rpartition(":")[2]) if len(self.addresses) == 1 else 0

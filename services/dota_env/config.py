"""Configuration of the environment service."""

from pydantic import BaseModel, ConfigDict, Field


class EnvServiceConfig(BaseModel):
    """Games for rollouts that do not run their own."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    addresses: list[str] = Field(
        [], description="host:port of every server; a local cluster starts one for each. None are needed where "
        "rollouts run their games themselves (services.rollout.environment: local).")
    threads: int = Field(1, ge=1, le=1024, description="Threads of the core that step one stream's games, at most "
                         "what the stream asked for.")
    max_games: int = Field(1024, ge=1, description="Games of all streams together; a stream that asks for more is "
                           "refused.")
    max_streams: int = Field(64, ge=1, description="Streams served at once.")
    idle_seconds: float = Field(600.0, gt=0, description="A stream without a request for this long is ended, and its "
                                "games with it.")

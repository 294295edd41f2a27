"""Configuration of the environment service."""

from pydantic import BaseModel, ConfigDict, Field


class EnvServiceConfig(BaseModel):
    """Games for rollouts that do not run their own."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

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

    def listen(self, identity: str) -> str:
        """Where the server of that id listens: at its own address on this machine, else on every interface."""
        index = int(identity) if identity.isdigit() and int(identity) < len(self.addresses) else 0
        host, _, port = (self.addresses[index] if self.addresses else "127.0.0.1:0").rpartition(":")
        return f"{host if host in ('127.0.0.1', 'localhost', '[::1]') else '0.0.0.0'}:{port}"

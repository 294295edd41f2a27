"""Configuration of the opponents service."""

from pydantic import BaseModel, ConfigDict, Field


class OpponentsConfig(BaseModel):
    """The keeper of the pool of past selves."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: str = Field("127.0.0.1:7400", description="Where the service listens. host:port.")

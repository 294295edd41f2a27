"""Configuration of the opponents service."""

from pydantic import BaseModel, ConfigDict, Field


class OpponentsConfig(BaseModel):
    """The keeper of the pool of past selves."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: str = Field("", description="Where the service is reached, host:port. Empty in a local cluster: it picks "
                         "a free port.")

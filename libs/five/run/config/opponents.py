"""Configuration of the opponents service."""

from pydantic import Field

from five.run.config.section import Section


class OpponentsConfig(Section):
    """The keeper of the pool of past selves."""

    address: str = Field("", description="Where the service is reached, host:port. Empty in a local cluster: it picks "
                         "a free port.")

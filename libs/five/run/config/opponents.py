"""Section of the opponents service."""

from pydantic import Field

from five.run.config.address import Address
from rapid.section import Section


class OpponentsConfig(Section):
    """Opponents service: the pool of past versions."""

    address: Address = Field("", description="Address of the service, host:port. Empty: a local cluster picks a free "
                             "port.")

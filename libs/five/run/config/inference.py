"""Configuration of the inference service."""

from typing import Literal

from pydantic import Field

from five.run.config.section import Section


class InferenceConfig(Section):
    """Batched policy evaluation for games."""

    addresses: list[str] = Field(
        [], description="Where the servers are reached, host:port; one of them may stand for many servers behind it. "
        "Empty in a local cluster: it starts one on a free port.")
    past_addresses: list[str] = Field(
        [], description="Servers that play past versions (opponents, rated games), host:port; empty: those of "
        "addresses. Of several servers each past version belongs to one, found by its number.")
    device: Literal["cpu", "cuda"] = Field("cpu", description="Where the forward pass runs.")
    threads: int = Field(1, ge=1, le=256, description="Torch threads of the forward pass on the CPU.")
    max_batch: int = Field(256, ge=1, le=65536, description="Team-steps of one forward pass at most; a request "
                           "larger than this is refused. The paper runs at about 60.")
    queue_delay_us: int = Field(
        1000, ge=0, le=1_000_000, description="Microseconds that the oldest waiting request may wait for others to "
        "join its batch. Tune max_batch first.")
    request_timeout_seconds: float = Field(
        15.0, gt=0, description="A request that waited longer (for its batch or its version) is given up.")
    max_sessions: int = Field(65536, ge=1, description="Sessions whose recurrent state is kept at most.")
    session_seconds: float = Field(
        120.0, gt=0, description="Lease of a session: without a request for this long its state is dropped.")
    past_mebibytes: int = Field(
        256, ge=1, description="Memory for past versions beside the newest; the least recently used leaves first. "
        "Where model.precision is bfloat16 their layers are kept in it, half of what the newest takes.")
    poll_seconds: float = Field(2.0, gt=0, description="Longest time between two looks for a newer version.")
    spread_seconds: float = Field(
        0.0, ge=0, description="A server begins to read a new version after a random part of this: of hundreds that "
        "read at once each has it late, one after another the first have it soon.")
    seed: int = Field(0, ge=0, description="Seed of action sampling, mixed with the server's id; 0: from the system.")

    @property
    def port(self) -> int:
        """The port of the one address; 0, any free one, where there are several or none."""
        return int(self.addresses[0].rpartition(":")[2]) if len(self.addresses) == 1 else 0

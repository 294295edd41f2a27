"""Section of the inference service."""

from typing import Literal

from pydantic import Field

from five.run.config.address import Address
from rapid.section import Section


class InferenceConfig(Section):
    """Inference servers: batched forward passes of the newest and past versions."""

    addresses: list[Address] = Field(
        [], description="Addresses of the servers, host:port. One address may stand for many servers behind it. "
        "Empty: a local cluster starts one server on a free port.")
    past_addresses: list[Address] = Field(
        [], description="Addresses of the servers that play past versions (opponents, rated games), host:port. "
        "Empty: those of addresses. Of several servers, a version's number selects one.")
    device: Literal["cpu", "cuda"] = Field("cpu", description="Device of the forward pass.")
    threads: int = Field(1, ge=1, le=256, description="PyTorch threads of the forward pass on the CPU.")
    max_batch: int = Field(256, ge=1, le=65536, description="Largest batch of one forward pass. A larger request is "
                           "refused. The paper uses about 60.")
    queue_delay_us: int = Field(
        1000, ge=0, le=1_000_000, description="Time that the oldest request may wait for others to join its batch. "
        "Tune max_batch first.")
    request_timeout_seconds: float = Field(
        15.0, gt=0, description="Longest time that a request waits for its batch or its version.")
    max_sessions: int = Field(65536, ge=1, description="Sessions whose recurrent state is kept.")
    session_seconds: float = Field(
        120.0, gt=0, description="Lease of a session. Its state is dropped after this time without a request.")
    past_mebibytes: int = Field(
        256, ge=1, description="Memory for past versions. The least recently used version is evicted first. With "
        "model.precision bfloat16 a GPU stores their layers in bfloat16, half of the newest version's size.")
    poll_seconds: float = Field(2.0, ge=0.01, description="Longest interval between two checks for a newer version.")
    load_jitter_seconds: float = Field(
        0.0, ge=0, description="A server starts to read a new version after a random part of this time. Of hundreds "
        "of servers the first then have it early, instead of all of them late.")
    seed: int = Field(0, ge=0, description="Seed of action sampling, mixed with the server's id; 0: from the system.")

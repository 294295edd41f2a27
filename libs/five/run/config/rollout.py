"""Section of the rollout service."""

from typing import Literal

from pydantic import Field

from dota.config import MAX_GAME_SECONDS
from rapid.section import Section


class RolloutConfig(Section):
    """Rollout processes: each plays a vector of games with the newest and past versions and sends the experience."""

    processes: int = Field(1, ge=0, le=65536, description="Rollout processes of a local cluster.")
    environment: Literal["local", "remote"] = Field(
        "local", description="Where games run. local: in the rollout process. remote: on the servers of "
        "services.dota_env, one group per server in turn.")
    games: int = Field(24, ge=1, le=4096, description="Games of one process, split over its groups.")
    groups: int = Field(2, ge=1, le=8, description="Groups of games of one process. One group steps while another "
                        "waits for inference.")
    game_threads: int = Field(1, ge=1, le=1024, description="Threads of the core that step one group's games.")
    scripted_bots: list[Literal["random", "scripted-easy", "scripted", "scripted-hard"]] = Field(
        ["scripted"], min_length=1, description="Bots of the games against scripted bots "
        "(schedules.scripted_fraction); schedules.scripted_bot may choose one.")
    snapshots: int = Field(
        32, ge=1, le=10_000, description="Newest snapshots that a process keeps, of its games or of games of bots "
        "(snapshot_bots), from which games begin in the middle (schedules.middle_fraction). Each takes about 1 MB of "
        "memory; none is taken while the share is 0.")
    snapshot_bots: list[Literal["random", "scripted-easy", "scripted", "scripted-hard"]] = Field(
        [], description="Bots whose games against each other are snapshotted in place of the policy's. A thread of "
        "the rollout process plays them, and about two games begin with each snapshot. [] snapshots the policy's "
        "games, which only services.rollout.environment local can.")
    snapshot_interval_seconds: float = Field(
        300.0, ge=1, le=MAX_GAME_SECONDS, description="Game time from one snapshot of a game to the next.")
    games_per_past_opponent: int = Field(
        0, ge=0, description="Games that a group plays against a past version after sampling it; 0: as many as the "
        "group has. The paper samples for every game. A larger number keeps fewer versions in play and makes "
        "inference batches larger.")
    max_unsent_segments: int = Field(
        8, ge=1, description="Segments that may wait to be sent. Above this number games stop until the optimizers "
        "take segments.")
    in_flight_segments: int = Field(
        2, ge=1, description="Segments sent to one optimizer and not yet acknowledged.")
    optimizers_per_process: int = Field(
        8, ge=1, description="Optimizers that one process sends to. Each optimizer has equally many senders, plus or "
        "minus one; processes that are too few for all of them send to more. Sending to hundreds would leave minutes "
        "of stale experience in flight and need as many connections.")
    encoding: Literal["raw", "sparse", "zstd", "sparse_zstd"] = Field(
        "sparse", description="Encoding of observations sent to inference. sparse leaves out zeros; zstd compresses. "
        "Segments are always sent as changes from timestep to timestep; zstd compresses these as well.")
    schedule_poll_seconds: float = Field(
        2.0, ge=0.01, description="Interval at which the schedules are read from the run's state.")
    drain_seconds: float = Field(
        10.0, ge=0, description="Time to send finished segments after SIGTERM, at most half of "
        "lifecycle.grace_seconds.")
    seed: int = Field(0, ge=0, description="Seed of the games, mixed with the process's id.")

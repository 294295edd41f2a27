"""Configuration of the rollout service."""

from typing import Literal

from pydantic import Field

from five.run.config.section import Section


class RolloutConfig(Section):
    """A vector of games that plays the newest version against itself and its past, and sends what it saw."""

    processes: int = Field(1, ge=0, description="Rollout processes that a local cluster starts.")
    environment: Literal["local", "remote"] = Field(
        "local", description="local: games run in this process. remote: on the servers of services.dota_env, a group "
        "on each in turn.")
    games: int = Field(24, ge=1, le=4096, description="Games of one process, split over its groups.")
    groups: int = Field(2, ge=1, le=8, description="Groups in flight: while one waits for inference another steps.")
    game_threads: int = Field(1, ge=1, le=1024, description="Threads of the core that step one group's games.")
    scripted_fraction: float = Field(
        0.0, ge=0, le=1, description="Share of games played against a scripted bot instead of a version. The paper "
        "plays none.")
    scripted_bots: list[Literal["random", "scripted-easy", "scripted", "scripted-hard"]] = Field(
        ["scripted"], min_length=1, description="Bots of those games, drawn uniformly.")
    games_per_past_opponent: int = Field(
        0, ge=0, description="Games that a group plays against a past version once it is drawn; 0: as many as it has "
        "games. The paper draws for every game; with more, fewer versions are in play at a time and inference batches "
        "are larger.")
    max_unsent_segments: int = Field(
        8, ge=1, description="Segments that wait to be sent; beyond it games stop, so that they run at the pace of "
        "learning.")
    in_flight_segments: int = Field(
        2, ge=1, description="Segments sent to one optimizer and not yet acknowledged.")
    optimizers_each: int = Field(
        8, ge=1, description="Optimizers that one process sends to, drawn by its id. All of hundreds would each hold "
        "in_flight_segments of it, minutes of old play, behind as many connections.")
    encoding: Literal["raw", "sparse", "zstd", "sparse_zstd"] = Field(
        "sparse", description="How observations travel to inference: sparse leaves zeros out, zstd compresses on top. "
        "Segments always travel as what changes from timestep to timestep, with zstd compressed on top.")
    schedule_poll_seconds: float = Field(
        2.0, gt=0, description="How often team spirit and the advantage horizon are read from the run's state.")
    drain_seconds: float = Field(
        10.0, ge=0, description="How long finished segments may still be sent after SIGTERM.")
    seed: int = Field(0, ge=0, description="Seed of the games; the process's id is mixed in.")

"""Root section of a run's configuration.

Defaults are the paper's values where it prints them, so that a preset lists only its differences.
"""

import math
from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from dota.config import FRAMES_PER_SECOND, GameConfig, RewardConfig
from five.agent.config import (
    BufferConfig,
    ComputeConfig,
    LeagueConfig,
    LearnerConfig,
    ModelConfig,
    RatingConfig,
    SchedulesConfig,
)
from five.run.config.controller import ControllerConfig
from five.run.config.dota_env import EnvServiceConfig
from five.run.config.dotaservice import DotaServiceConfig
from five.run.config.evaluator import EvaluatorConfig
from five.run.config.inference import InferenceConfig
from five.run.config.opponents import OpponentsConfig
from five.run.config.optimizer import OptimizerConfig
from five.run.config.play import PlayConfig
from five.run.config.rollout import RolloutConfig
from rapid.config import (
    AllocatorConfig,
    BlobConfig,
    LifecycleConfig,
    RpcConfig,
    StoreConfig,
    TelemetryConfig,
    TracingConfig,
)
from rapid.section import Section


class ServicesConfig(Section):
    """Sections of the services."""

    dota_env: EnvServiceConfig = Field(
        default_factory=EnvServiceConfig, description="Environment servers: games behind gRPC.")
    rollout: RolloutConfig = Field(default_factory=RolloutConfig, description="Rollouts: play games, label experience.")
    inference: InferenceConfig = Field(
        default_factory=InferenceConfig, description="Inference: batched forward passes.")
    optimizer: OptimizerConfig = Field(
        default_factory=OptimizerConfig, description="Optimizers: gradient steps, new versions.")
    opponents: OpponentsConfig = Field(
        default_factory=OpponentsConfig, description="Opponents: the pool of past versions.")
    evaluator: EvaluatorConfig = Field(default_factory=EvaluatorConfig, description="Evaluator: rates versions.")
    controller: ControllerConfig = Field(default_factory=ControllerConfig, description="Controller: the REST API.")
    play: PlayConfig = Field(default_factory=PlayConfig, description="Play: games with people.")
    dotaservice: DotaServiceConfig = Field(
        default_factory=DotaServiceConfig, description="Dotaservice: games for trainers that speak its protocol.")


class RunConfig(Section):
    """Configuration of a run."""

    name: str = Field("five", pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="Name of the run: lowercase letters, "
                      "digits and dashes. Redis keys, folders and metrics carry it.")
    seed: int = Field(0, ge=0, description="Seed of all random number generators of the run.")
    game: GameConfig = Field(default_factory=GameConfig, description="Rules and setup of the game.")
    rewards: RewardConfig = Field(default_factory=RewardConfig, description="Reward weights.")
    model: ModelConfig = Field(default_factory=ModelConfig, description="Sizes of the network.")
    compute: ComputeConfig = Field(default_factory=ComputeConfig, description="Precision of a GPU's matrix products.")
    learning: LearnerConfig = Field(default_factory=LearnerConfig, description="PPO and its optimizer.")
    schedules: SchedulesConfig = Field(
        default_factory=SchedulesConfig, description="Hyperparameters that change over versions.")
    buffer: BufferConfig = Field(default_factory=BufferConfig, description="Experience buffer and its pacing.")
    league: LeagueConfig = Field(default_factory=LeagueConfig, description="Selection of opponents.")
    rating: RatingConfig = Field(default_factory=RatingConfig, description="TrueSkill ratings.")
    rpc: RpcConfig = Field(default_factory=RpcConfig, description="gRPC between the services.")
    store: StoreConfig = Field(default_factory=StoreConfig, description="Redis: the run's state and parameters.")
    blobs: BlobConfig = Field(
        default_factory=BlobConfig, description="Blob store: past versions, checkpoints, replays.")
    telemetry: TelemetryConfig = Field(default_factory=TelemetryConfig, description="Metrics and logs.")
    tracing: TracingConfig = Field(default_factory=TracingConfig, description="OpenTelemetry traces.")
    allocator: AllocatorConfig = Field(default_factory=AllocatorConfig, description="Memory allocator.")
    lifecycle: LifecycleConfig = Field(default_factory=LifecycleConfig, description="Heartbeats and shutdown.")
    services: ServicesConfig = Field(default_factory=ServicesConfig, description="The services.")

    @model_validator(mode="before")
    @classmethod
    def _without_retired_keys(cls, given: Any) -> Any:
        """Drop ``learning.timestep_seconds``, which files older than ``game.frameskip`` have, if it agrees with the
        frameskip. Otherwise it is refused as an unknown key."""
        learning = given.get("learning") if isinstance(given, Mapping) else None
        if not isinstance(learning, Mapping) or "timestep_seconds" not in learning:
            return given
        game, seconds = given.get("game", {}), learning["timestep_seconds"]
        frameskip = game.get("frameskip", 4) if isinstance(game, Mapping) else getattr(game, "frameskip", None)
        if not (isinstance(frameskip, int) and isinstance(seconds, int | float)
                and math.isclose(seconds, frameskip / FRAMES_PER_SECOND, abs_tol=1e-4)):
            return given
        return {**given, "learning": {k: v for k, v in learning.items() if k != "timestep_seconds"}}

    @model_validator(mode="after")
    def _consistent(self) -> "RunConfig":
        archive = self.store.archive_every
        if archive == 0 or self.league.add_every_versions % archive:
            raise ValueError(f"league.add_every_versions {self.league.add_every_versions} must be a multiple "
                             f"of store.archive_every {archive}: past opponents are loaded from the archive")
        rollout = self.services.rollout
        if (rollout.environment == "remote" and not rollout.snapshot_bots
                and max(self.schedules.middle_fraction.values) > 0):
            raise ValueError("schedules.middle_fraction is above 0, but the policy's games cannot be snapshotted with "
                             "services.rollout.environment remote: set it to local, or name bots in "
                             "services.rollout.snapshot_bots")
        self._require_batches_that_fit()
        segment = self.learning.samples_per_segment
        if self.buffer.capacity_samples < segment:
            raise ValueError(f"buffer.capacity_samples {self.buffer.capacity_samples} is below one segment "
                             f"(learning.samples_per_segment {segment})")
        if self.learning.batch_samples > self.buffer.capacity_samples:
            raise ValueError(f"learning.batch_samples {self.learning.batch_samples} is above buffer.capacity_samples "
                             f"{self.buffer.capacity_samples}: no batch would ever be full")
        return self

    def _require_batches_that_fit(self) -> None:
        """Raise ValueError if games that step together send inference more team-steps than it takes in a request."""
        largest, rollout = self.services.inference.max_batch, self.services.rollout
        for keys, games in (("services.rollout.games / groups", -(-rollout.games // rollout.groups)),
                            ("services.evaluator.games", self.services.evaluator.games)):
            if 2 * games > largest:
                raise ValueError(f"services.inference.max_batch {largest} is below the {2 * games} team-steps that "
                                 f"{games} games send in one request ({keys}): raise it to {2 * games}, or play fewer "
                                 "games at a time")

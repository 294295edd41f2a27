"""A run's configuration: `RunConfig` and every section below it, one module a section.

The sections of the game, the agent and the platform are defined beside the code that reads them (dota.config,
five.agent.config, rapid.config) and exported here.
"""

from dota.config import GameConfig, RewardConfig
from five.agent.config import (
    BufferConfig,
    ComputeConfig,
    LeagueConfig,
    LearnerConfig,
    ModelConfig,
    RatingConfig,
    SchedulesConfig,
)
from five.run.config.autoscaler import AutoscalerConfig
from five.run.config.controller import ControllerConfig, LimitsConfig, OperationsConfig
from five.run.config.dota_env import EnvServiceConfig
from five.run.config.dotaservice import DotaServiceConfig
from five.run.config.evaluator import EvaluatorConfig
from five.run.config.inference import InferenceConfig
from five.run.config.opponents import OpponentsConfig
from five.run.config.optimizer import OptimizerConfig
from five.run.config.play import PlayConfig
from five.run.config.rollout import RolloutConfig
from five.run.config.run import RunConfig, ServicesConfig
from rapid.config import AllocatorConfig, BlobConfig, LifecycleConfig, RpcConfig, StoreConfig, TelemetryConfig

__all__ = [
    "AllocatorConfig", "AutoscalerConfig", "BlobConfig", "BufferConfig", "ComputeConfig", "ControllerConfig",
    "DotaServiceConfig", "EnvServiceConfig", "EvaluatorConfig", "GameConfig", "InferenceConfig", "LeagueConfig",
    "LearnerConfig", "LifecycleConfig", "LimitsConfig", "ModelConfig", "OperationsConfig", "OpponentsConfig",
    "OptimizerConfig", "PlayConfig", "RatingConfig", "RewardConfig", "RolloutConfig", "RpcConfig", "RunConfig",
    "SchedulesConfig", "ServicesConfig", "StoreConfig", "TelemetryConfig",
]

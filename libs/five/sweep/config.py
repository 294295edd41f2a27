"""Configuration of a sweep: the keys to search, the sampler, the pruner and the budget."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from five.ablation.config import AblationConfig
from five.ablation.experiment import ExperimentConfig, Seed, flow_text, read_file
from five.run.load import ConfigError
from five.sweep.objective import TRUESKILL, Objective
from rapid.section import Section

DEFAULT = "default"  # variant with the preset's own values
_MISSING = object()


class SearchConfig(Section):
    """Values to try for one key: a range from ``low`` to ``high``, or ``choices``."""

    low: int | float | None = Field(None, description="Least value. A key that takes whole numbers is sampled in whole "
                                    "numbers.")
    high: int | float | None = Field(None, description="Greatest value.")
    log: bool = Field(False, description="Sample the logarithm uniformly; low must be above 0.")
    step: int | float | None = Field(None, gt=0, description="Distance between values; not with log. By default 1 for "
                                     "whole numbers, none for others.")
    choices: list[Any] | None = Field(None, min_length=2, description="Values without an order, instead of low and "
                                      "high.")

    @model_validator(mode="after")
    def _check(self) -> "SearchConfig":
        if self.choices is not None:
            if (self.low, self.high, self.log, self.step) != (None, None, False, None):
                raise ValueError("choices exclude low, high, log and step")
            if len(set(map(flow_text, self.choices))) != len(self.choices):
                raise ValueError("choices must be unique")
            return self
        if self.low is None or self.high is None:
            raise ValueError("low and high, or choices, are needed")
        if self.low >= self.high:
            raise ValueError(f"low {self.low} must be below high {self.high}")
        if self.log and self.low <= 0:
            raise ValueError(f"low {self.low}: with log it must be above 0")
        if self.step is not None:
            if self.log:
                raise ValueError("step and log exclude each other")
            steps = (self.high - self.low) / self.step
            if abs(steps - round(steps)) > 1e-9 or round(steps) < 1:
                raise ValueError(f"step {self.step}: high - low ({self.high - self.low:g}) must be a multiple of it")
        return self

    def values(self) -> dict[str, Any]:
        """Return the values to validate by their path: both ends or all choices."""
        if self.choices is not None:
            return {f"choices.{i}": value for i, value in enumerate(self.choices)}
        return {"low": self.low, "high": self.high}


class SamplerConfig(Section):
    """Sampler of the variants (`optuna.samplers`)."""

    kind: Literal["tpe", "gp", "random"] = Field("tpe", description="tpe: tree-structured Parzen estimator, which also "
                                                 "learns from pruned variants. gp: Gaussian process, which learns from "
                                                 "complete ones only. random: independent values.")
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of the sampler.")
    random_variants: int = Field(10, ge=0, le=10_000, description="Variants that tpe and gp first sample randomly.")


class PrunerConfig(Section):
    """Early stopping of variants (`optuna.pruners`), after every evaluated version of the first run and after each
    later run. Its clock is the processor time that is reserved for the runs."""

    kind: Literal["asha", "median", "none"] = Field("asha", description="asha: at 1, factor, factor², ... evaluated "
                                                    "versions, continue the best 1/factor (asynchronous successive "
                                                    "halving). median: stop below the median of the complete variants. "
                                                    "none: complete all runs of each variant.")
    factor: int = Field(3, ge=2, le=100, description="Reduction factor of asha.")
    complete_variants: int = Field(5, ge=1, le=10_000, description="Complete variants that median needs before it "
                                   "stops one.")


class ConfirmationConfig(Section):
    """Ablation of the best variants and the preset's own values with seeds that the search has not used. The best of
    many noisy results is too high; results of other seeds are not."""

    best: int = Field(3, ge=0, le=50, description="Number of variants to confirm; 0: no confirmation.")
    seeds: list[Seed] = Field([101, 102, 103], min_length=1, description="Seeds; every one of these variants is "
                              "trained with each.")


class SweepConfig(ExperimentConfig):
    """Configuration of a sweep. Keys of ``search`` are paths of the run's configuration (a.b.c).

    ``seeds`` are a variant's runs in their order: the pruner decides after each whether the next one starts.
    """

    LABELS: ClassVar[frozenset[str]] = frozenset({"question", "max_variants", "core_hours", "confirmation"})

    search: dict[str, SearchConfig] = Field(min_length=1, description="Values to try of each key.")
    objective: Objective = Field(TRUESKILL, description="Figure to maximise, of a run's last version: trueskill, or "
                                 "the mean score against a list of bots.")
    sampler: SamplerConfig = Field(default_factory=SamplerConfig, description="Sampler of the variants.")
    pruner: PrunerConfig = Field(default_factory=PrunerConfig, description="Early stopping of variants.")
    max_variants: int | None = Field(None, ge=1, le=100_000, description="Number of variants after which no other "
                                     "starts.")
    core_hours: float | None = Field(None, gt=0, description="Processor time of all trainings after which no other "
                                     "variant starts, hours of one processor.")
    confirmation: ConfirmationConfig = Field(default_factory=ConfirmationConfig, description="Repetition of the best "
                                             "variants with other seeds.")

    @model_validator(mode="after")
    def _check_sweep(self) -> "SweepConfig":
        if self.max_variants is None and self.core_hours is None:
            raise ValueError("max_variants or core_hours is needed")
        if shared := set(self.seeds) & set(self.confirmation.seeds):
            raise ValueError(f"confirmation.seeds must differ from seeds: {', '.join(map(str, sorted(shared)))}")
        if len(set(self.confirmation.seeds)) != len(self.confirmation.seeds):
            raise ValueError("confirmation.seeds must be unique")
        for bot in self.objective if isinstance(self.objective, list) else ():
            if bot not in self.evaluation.against:
                raise ValueError(f"objective {bot!r}: evaluation.against lacks it")
        for key in ("name", "seed"):
            if key in self.search:
                raise ValueError(f"search.{key}: every run has its own")
        return self

    def ablation(self, variants: Mapping[str, Mapping[str, Any]], seeds: Sequence[int]) -> AblationConfig:
        """Return an ablation of variants' overrides against the preset's own values, with this configuration."""
        shared = {name: getattr(self, name) for name in ExperimentConfig.model_fields}
        return AblationConfig(**{**shared, "seeds": list(seeds)},
                              variants={DEFAULT: {}, **{name: dict(values) for name, values in variants.items()}})

    def validate_search(self) -> None:
        """Validate both ends and every choice of each key in the run's configuration. Raises ConfigError."""
        self.build_run_config({}, "set")
        for key, searched in self.search.items():
            for part, value in searched.values().items():
                self.build_run_config({key: value}, f"search.{key}.{part}")
            if searched.choices is None:
                self.is_integer(key)

    def is_integer(self, key: str) -> bool:
        """Return whether a key with a range takes whole numbers. Raises ConfigError for one that takes no numbers."""
        searched = self.search[key]
        value = self._value_at(key, {key: searched.low})
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"search.{key}: this key takes no numbers; use choices")
        if isinstance(value, int) and searched.step is not None and not isinstance(searched.step, int):
            raise ConfigError(f"search.{key}.step {searched.step}: this key takes whole numbers")
        return isinstance(value, int)

    def default_values(self) -> dict[str, Any] | None:
        """Return the values of the searched keys in the preset with ``set``. None if one has no value there."""
        found = {key: self._value_at(key, {}) for key in self.search}
        return None if _MISSING in found.values() else found

    def _value_at(self, key: str, values: Mapping[str, Any]) -> Any:
        node: Any = self.build_run_config(values, f"search.{key}").model_dump(mode="json", by_alias=True)
        for part in key.split("."):
            node = node.get(part, _MISSING) if isinstance(node, dict) else _MISSING
        return node


def read(path: Path) -> SweepConfig:
    """Return the sweep of a file with its search validated. Raises ConfigError naming each invalid key."""
    config = read_file(path, SweepConfig, "sweep")
    config.validate_search()
    return config

"""Configuration of an ablation: variants, seeds, training time and evaluation."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import yaml
from pydantic import Field, ValidationError, model_validator

from dota.vec_game import BOTS
from five import yaml_core
from five.run.config import RunConfig
from five.run.load import ConfigError, apply_overrides, load, validate
from five.run.renamed_keys import refusal
from rapid.section import MAX_LARGE_INTEGER, Section

_NAME = r"^[a-z0-9][a-z0-9-]{0,40}$"
RENAMED = {"arms": "variants", "at_once": "parallel_runs", "judge": "evaluation"}
Seed = Annotated[int, Field(ge=0, le=MAX_LARGE_INTEGER)]


class EvaluationConfig(Section):
    """Evaluation of a run's versions after it has ended, so that training loses no time to it."""

    points: int = Field(5, ge=1, le=100, description="Versions of each run to evaluate, evenly spaced over its time; "
                        "the last one is among them.")
    pairs: int = Field(20, ge=1, le=5000, description="Pairs of games, sides swapped, of each evaluated version "
                       "against each opponent.")
    final_pairs: int = Field(50, ge=1, le=5000, description="Pairs of games of the last version.")
    against: list[str] = Field(["random", "scripted-easy", "scripted"], min_length=1,
                               description="Bots to play against; random play is the rating's zero.")
    anchor_pairs: int = Field(40, ge=1, le=5000, description="Pairs of games of each two of these bots, by which they "
                              "are rated once.")
    greedy: bool = Field(False, description="Versions take their most probable action instead of sampling.")

    @model_validator(mode="after")
    def _check_bots(self) -> "EvaluationConfig":
        for name in self.against:
            if name not in BOTS:
                raise ValueError(f"against {name!r}: allowed are {', '.join(BOTS)}")
        if "random" not in self.against:
            raise ValueError("against must contain random, which is the rating's zero")
        return self


class AblationConfig(Section):
    """Configuration of an ablation. Keys of ``set`` and of each variant are paths of the run's configuration (a.b.c).
    """

    name: str = Field(pattern=_NAME, description="Name of the ablation and of its folder.")
    question: str = Field("", description="Question that the ablation answers; heads the page.")
    preset: str = Field("laptop-1v1", description="Preset or file that every run is based on.")
    minutes: float = Field(20.0, gt=0, description="Training time of each run, minutes of wall clock.")
    seeds: list[Seed] = Field([1, 2, 3], min_length=1, description="Seeds; every variant is trained with each.")
    set: dict[str, Any] = Field({}, description="Overrides of every variant.")
    variants: dict[str, dict[str, Any]] = Field(min_length=1, description="Overrides of each variant by name; the "
                                                "first one is the baseline.")
    parallel_runs: int = Field(1, ge=1, le=64, description="Parallel runs, each on its own share of the processors.")
    evaluation: EvaluationConfig = Field(default_factory=EvaluationConfig, description="Evaluation of versions.")

    @model_validator(mode="after")
    def _check_seeds(self) -> "AblationConfig":
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("seeds must be unique")
        return self

    @property
    def baseline(self) -> str:
        """The variant that the others are compared with."""
        return next(iter(self.variants))

    @property
    def digest(self) -> str:
        """16 hex digits of everything that a result depends on. The question is not part of it."""
        tree = self.model_dump(mode="json", exclude={"question"})
        return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:16]

    def trials(self) -> "Iterator[Trial]":
        """Yield every trial, seed by seed, so that early results compare all variants."""
        for seed in self.seeds:
            for variant in self.variants:
                yield Trial(variant, seed)

    def overrides(self, variant: str) -> list[str]:
        """Return a variant's overrides in the form of `five train --set`."""
        return [f"{key}={yaml_core.dump(value, default_flow_style=True).removesuffix('...' + chr(10)).strip()}"
                for key, value in {**self.set, **self.variants[variant]}.items()]

    def run_config(self, variant: str) -> RunConfig:
        """Return the configuration of a variant's runs. Raises ConfigError naming the variant and each invalid key."""
        base = load(self.preset).model_dump(mode="json", by_alias=True)
        return validate(apply_overrides(base, self.overrides(variant)), f"variant {variant!r} on {self.preset}")


class Trial(NamedTuple):
    """Run of an ablation: a variant's name and a seed."""

    variant: str
    seed: int

    @property
    def name(self) -> str:
        """Name of the trial's folder."""
        return f"{self.variant}-seed{self.seed}"

    @classmethod
    def named(cls, name: str) -> "Trial":
        """Return the trial of that name. Raises ValueError for another name."""
        variant, found, seed = name.rpartition("-seed")
        if not found:
            raise ValueError(f"run {name!r}: expected VARIANT-seedN")
        return cls(variant, int(seed))


def read(path: Path) -> AblationConfig:
    """Return the ablation of a file, with every variant validated. Raises ConfigError naming each invalid key."""
    try:
        tree = yaml_core.load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    try:
        config = AblationConfig.model_validate(tree)
    except ValidationError as error:
        raise ConfigError("\n".join([f"{path}: the ablation is not valid", *map(_explain, error.errors())])) from None
    for variant in config.variants:
        config.run_config(variant)
    return config


def _explain(problem: Mapping[str, Any]) -> str:
    path = ".".join(map(str, problem["loc"])) or "(top)"
    renamed = refusal(path, RENAMED) if problem["type"] == "extra_forbidden" else None
    return f"  {renamed or path + ': ' + problem['msg'].removeprefix('Value error, ')}"

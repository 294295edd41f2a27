"""Configuration that ablations and sweeps share: what is trained, for how long, and how it is evaluated."""

import hashlib
import json
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

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
Config = TypeVar("Config", bound="ExperimentConfig")
Seed = Annotated[int, Field(ge=0, le=MAX_LARGE_INTEGER)]


class EvaluationConfig(Section):
    """Evaluation of a run's versions while it does not train, so that training loses no time to it."""

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
        if len(set(self.against)) != len(self.against):
            raise ValueError("against must be unique")
        if "random" not in self.against:
            raise ValueError("against must contain random, which is the rating's zero")
        return self


class ExperimentConfig(Section):
    """Configuration of an experiment. Keys of ``set`` are paths of the run's configuration (a.b.c)."""

    # Keys that results do not depend on.
    LABELS: ClassVar[frozenset[str]] = frozenset({"question"})

    name: str = Field(pattern=_NAME, description="Name of the experiment and of its folder.")
    question: str = Field("", description="Question that the experiment answers; heads the page.")
    preset: str = Field("laptop-1v1", description="Preset or file that every run is based on.")
    minutes: float = Field(20.0, gt=0, description="Training time of each run, minutes of wall clock.")
    seeds: list[Seed] = Field([1, 2, 3], min_length=1, description="Seeds; every variant is trained with each.")
    set: dict[str, Any] = Field({}, description="Overrides of every variant.")
    parallel_runs: int = Field(1, ge=1, le=64, description="Parallel runs, each on an equal share of the processors.")
    evaluation: EvaluationConfig = Field(default_factory=EvaluationConfig, description="Evaluation of versions.")

    @model_validator(mode="after")
    def _check_seeds(self) -> Self:
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("seeds must be unique")
        return self

    @property
    def digest(self) -> str:
        """16 hex digits of everything that a result depends on. `LABELS` are not part of it."""
        tree = self.model_dump(mode="json", exclude=set(self.LABELS))
        return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:16]

    def mismatch(self, earlier: Self, begun: Collection[str]) -> str:
        """Return why results of the experiment ``earlier`` are not results of this one; "" if they are.

        ``begun``: names of the variants with results.
        """
        before, now = (config.model_dump(mode="json", exclude=set(self.LABELS)) for config in (earlier, self))
        return next((f"{key} was {before[key]}" for key in now if before[key] != now[key]), "")

    def build_run_config(self, values: Mapping[str, Any], where: str) -> RunConfig:
        """Return the configuration of a run with ``values`` by key path after those of ``set``.

        Raises ConfigError naming ``where`` and each invalid key.
        """
        return validate(apply_overrides(self.preset_values, overrides({**self.set, **values})),
                        f"{where} on {self.preset}")

    @cached_property
    def preset_values(self) -> dict[str, Any]:
        """The preset's whole configuration."""
        return load(self.preset).model_dump(mode="json", by_alias=True)


def overrides(values: Mapping[str, Any]) -> list[str]:
    """Return values by key path in the form of `five train --set`."""
    return [f"{key}={flow_text(value)}" for key, value in values.items()]


def flow_text(value: Any) -> str:
    """Return a value as YAML on one line."""
    text = yaml_core.dump(value, default_flow_style=True, width=float("inf"))
    return text.removesuffix("...\n").strip()


def read_file(path: Path, kind: type[Config], noun: str) -> Config:
    """Return the experiment of a YAML file. Raises ConfigError naming each invalid key."""
    try:
        tree = yaml_core.load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        raise ConfigError("\n".join([f"{path}: the {noun} is not valid", *map(_explain, error.errors())])) from None


def _explain(problem: Mapping[str, Any]) -> str:
    path = ".".join(map(str, problem["loc"])) or "(top)"
    renamed = refusal(path, RENAMED) if problem["type"] == "extra_forbidden" else None
    return f"  {renamed or path + ': ' + problem['msg'].removeprefix('Value error, ')}"

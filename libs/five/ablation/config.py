"""Configuration of an ablation: variants on an experiment's configuration."""

import itertools
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import Field, model_validator

from five.ablation import experiment
from five.ablation.experiment import ExperimentConfig, read_file
from five.ablation.factorial import MAX_FACTORS, combinations
from five.run.config import RunConfig
from five.run.load import ConfigError, rename


class AblationConfig(ExperimentConfig):
    """Configuration of an ablation. Keys of each variant and factor are paths of the run's configuration (a.b.c)."""

    # Results depend on the variants that the factors make.
    LABELS: ClassVar[frozenset[str]] = ExperimentConfig.LABELS | {"factors"}

    variants: dict[str, dict[str, Any]] = Field({}, description="Overrides of each variant by name; the first one is "
                                                "the baseline.")
    factors: dict[str, dict[str, Any]] = Field({}, description="In place of variants: overrides of each factor by "
                                               "name. The variants are combinations of factors, each factor in half "
                                               "of them.")

    @model_validator(mode="after")
    def _combine_factors(self) -> Self:
        if not self.factors:
            if not self.variants:
                raise ValueError("variants or factors must have an entry")
            return self
        if len(self.factors) > MAX_FACTORS:
            raise ValueError(f"factors has {len(self.factors)} entries; at most {MAX_FACTORS} are compared at once")
        for (first, values), (second, others) in itertools.combinations(self.factors.items(), 2):
            for key, other in itertools.product(values, others):
                if f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}."):
                    raise ValueError(f"factors.{first}.{key} and factors.{second}.{other} set the same values: in runs "
                                     "with both, one would have no effect")
        runs = combinations(list(self.factors))
        combined = {"-".join(names) or Path(self.preset).stem:
                    {key: value for name in names for key, value in self.factors[name].items()} for names in runs}
        if len(combined) < len(runs):
            raise ValueError("factors: two combinations have the same name, made of those of their factors: rename one "
                             "that is the preset's name or contains another's")
        if self.variants and self.variants != combined:
            raise ValueError("variants and factors exclude each other: remove one")
        self.__dict__["variants"] = combined  # the model is frozen
        return self

    @property
    def baseline(self) -> str:
        """The variant that the others are compared with."""
        return next(iter(self.variants))

    def mismatch(self, earlier: Self, begun: Collection[str]) -> str:
        """Return why results of the ablation ``earlier`` are not results of this one; "" if they are.

        Seeds may be added and removed, and variants too, unless they have results. All results depend on the baseline,
        because all variants are evaluated in its game.
        """
        if earlier.baseline != self.baseline:
            return f"the first of variants, the baseline, was {earlier.baseline}"
        for name in dict.fromkeys((self.baseline, *begun)):
            if self.variants.get(name) != earlier.variants.get(name):
                return f"variants.{name} was {earlier.variants.get(name)}"
        return super().mismatch(earlier.model_copy(update={"variants": self.variants, "seeds": self.seeds}), begun)

    def trials(self) -> "Iterator[Trial]":
        """Yield every trial, seed by seed, so that early results compare all variants."""
        for seed in self.seeds:
            for variant in self.variants:
                yield Trial(variant, seed)

    def overrides(self, variant: str) -> list[str]:
        """Return a variant's overrides in the form of `five train --set`."""
        return experiment.overrides({**self.set, **self.variants[variant]})

    def run_config(self, variant: str) -> RunConfig:
        """Return the configuration of a variant's runs. Raises ConfigError naming the variant and each invalid key."""
        return self.build_run_config(self.variants[variant], f"variant {variant!r}")


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
    """Return the ablation of a file, with every variant validated.

    Raises ConfigError naming each invalid key, a variant whose name no run may have, or two variants that are the same.
    """
    config = read_file(path, AblationConfig, "ablation")
    seen: dict[str, str] = {}
    for variant in config.variants:
        run = config.run_config(variant)
        rename(run, Trial(variant, max(config.seeds)).name)
        same = seen.setdefault(run.model_dump_json(), variant)
        if same != variant:
            raise ConfigError(f"{path}: variants.{variant} has the settings of variants.{same}; a preset may have "
                              "these values already (`five config KEY`)")
    return config

"""Optuna study of a sweep, stored as JSON lines in ``journal.jsonl`` of its folder.

Optuna reads this file with its JSON parser. Its CMA-ES sampler is not offered, because it stores pickled objects.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from five import yaml_core
from five.ablation.experiment import flow_text
from five.run.load import ConfigError
from five.sweep.config import SamplerConfig, SweepConfig

FILE = "journal.jsonl"
STUDY = "sweep"
State = Literal["running", "complete", "pruned", "failed"]
_STATES: dict[TrialState, State] = {TrialState.RUNNING: "running", TrialState.COMPLETE: "complete",
                                    TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}
_FAILURE, _CORES, _UNIT = "failure", "cores", "core_seconds"

optuna.logging.set_verbosity(optuna.logging.WARNING)


@dataclass(frozen=True)
class Variant:
    """A sampled configuration. ``values``: the objective by core-seconds reserved until then; ``failure``: why it
    failed."""

    number: int
    state: State
    overrides: dict[str, Any]
    values: dict[int, float] = field(default_factory=dict)
    failure: str = ""

    @property
    def name(self) -> str:
        """Name of the variant."""
        return f"v{self.number}"

    @property
    def value(self) -> float | None:
        """The last reported objective."""
        return self.values[max(self.values)] if self.values else None


class SweepStudy:
    """Study of a sweep. Its methods may be called by several threads; one process at a time may change it."""

    def __init__(self, config: SweepConfig, storage: JournalStorage, study: optuna.Study) -> None:
        self._config, self._storage, self._study = config, storage, study
        self._space = distributions(config)
        self._lock = threading.Lock()

    @classmethod
    def open(cls, config: SweepConfig, folder: Path, cores: int) -> "SweepStudy":
        """Open or create the study of runs with ``cores`` processors each. The caller holds the folder's lock.

        Raises ConfigError if it began with another number of processors, because minutes would not compare.
        """
        path = folder / FILE
        _repair(path)
        storage = JournalStorage(JournalFileBackend(str(path)))
        study = optuna.create_study(storage=storage, study_name=STUDY, direction="maximize", load_if_exists=True)
        began = study.user_attrs.get(_CORES, cores)
        if began != cores:
            raise ConfigError(f"{folder} began with {began} processors a run, now {cores}: give the sweep as many, "
                              "or change the file's name key")
        opened = cls(config, storage, study)
        study.set_user_attr(_CORES, cores)
        if not study.get_trials(deepcopy=False) and (default := opened._default()) is not None:
            study.enqueue_trial(default)
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if trial.params.keys() != opened._space.keys():  # the process ended while it sampled
                study.tell(trial.number, state=TrialState.FAIL)
        study.pruner = opened._pruner()
        return opened

    @classmethod
    def read(cls, config: SweepConfig, folder: Path) -> "SweepStudy | None":
        """Open a study without changing it. Return None if it does not exist."""
        if not (folder / FILE).exists():
            return None
        storage = JournalStorage(JournalFileBackend(str(folder / FILE)))
        try:
            return cls(config, storage, optuna.load_study(study_name=STUDY, storage=storage))
        except KeyError:
            return None

    @property
    def cores(self) -> int:
        """Processors of each run."""
        return int(self._study.user_attrs.get(_CORES, 1))

    def core_seconds(self, points: int) -> int:
        """Return the processor time that is reserved for training to so many evaluated versions of all seeds."""
        return max(1, round(60 * self._config.minutes * self.cores / self._config.evaluation.points)) * points

    def variants(self) -> list[Variant]:
        """Return all variants in order of their numbers."""
        return [self._variant(trial) for trial in self._study.get_trials(deepcopy=False)
                if trial.state in _STATES and trial.params.keys() == self._space.keys()]

    def sample(self) -> Variant:
        """Sample a new variant."""
        with self._lock:
            number = len(self._study.get_trials(deepcopy=False))
            self._study.sampler = sampler(self._config.sampler, number)
            return self._variant(self._frozen(self._study.ask(self._space).number))

    def report(self, variant: Variant, points: int, value: float) -> bool:
        """Store the objective after so many evaluated versions. Return whether the pruner stops the variant.

        Points before the last stored one, which a resumed sweep reports again, change nothing.
        """
        with self._lock:
            step, last = self.core_seconds(points), self._frozen(variant.number).last_step or 0
            if step < last:
                return False
            if step > last:
                self._storage.set_trial_intermediate_value(self._id(variant.number), step, value)
            return self._study.pruner.prune(self._study, self._frozen(variant.number))

    def complete(self, variant: Variant, value: float) -> None:
        """End a variant whose runs are all evaluated."""
        self._study.tell(variant.number, value)

    def prune(self, variant: Variant) -> None:
        """End a variant that the pruner stops."""
        self._study.tell(variant.number, state=TrialState.PRUNED)

    def fail(self, variant: Variant, reason: str) -> None:
        """End a variant that cannot be trained."""
        self._storage.set_trial_user_attr(self._id(variant.number), _FAILURE, reason)
        self._study.tell(variant.number, state=TrialState.FAIL)

    def _default(self) -> dict[str, Any] | None:
        """Return the preset's own values as Optuna's parameters; None if the search does not contain them."""
        found = self._config.default_values()
        if found is None:
            return None
        default = parameters(self._space, found)
        return default if all(_contains(self._space[key], value) for key, value in default.items()) else None

    def _variant(self, trial: FrozenTrial) -> Variant:
        overrides = {key: yaml_core.load(trial.params[key]) if isinstance(space, CategoricalDistribution)
                     else trial.params[key] for key, space in self._space.items()}
        return Variant(trial.number, _STATES[trial.state], overrides, dict(trial.intermediate_values),
                       str(trial.user_attrs.get(_FAILURE, "")))

    def _id(self, number: int) -> int:
        study = self._storage.get_study_id_from_name(STUDY)
        return self._storage.get_trial_id_from_study_id_trial_number(study, number)

    def _frozen(self, number: int) -> FrozenTrial:
        return self._storage.get_trial(self._id(number))

    def _pruner(self) -> optuna.pruners.BasePruner:
        config = self._config.pruner
        if config.kind == "asha":
            return optuna.pruners.SuccessiveHalvingPruner(self.core_seconds(1), config.factor)
        if config.kind == "median":
            return optuna.pruners.MedianPruner(config.complete_variants)
        return optuna.pruners.NopPruner()


def distributions(config: SweepConfig) -> dict[str, BaseDistribution]:
    """Return Optuna's distribution of each searched key. Choices are YAML texts, because Optuna stores only scalars."""
    found: dict[str, BaseDistribution] = {}
    for key, searched in config.search.items():
        low, high, step = searched.low, searched.high, searched.step
        if searched.choices is not None:
            found[key] = CategoricalDistribution([flow_text(choice) for choice in searched.choices])
        elif low is not None and high is not None and config.is_integer(key):
            found[key] = IntDistribution(int(low), int(high), searched.log, int(step or 1))
        elif low is not None and high is not None:
            found[key] = FloatDistribution(float(low), float(high), searched.log, None if step is None else float(step))
    return found


def parameters(space: Mapping[str, BaseDistribution], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides as Optuna's parameters."""
    return {key: flow_text(overrides[key]) if isinstance(distribution, CategoricalDistribution) else overrides[key]
            for key, distribution in space.items()}


def sampler(config: SamplerConfig, number: int) -> optuna.samplers.BaseSampler:
    """Return the sampler of variant ``number``. It has its own seed, so that a resumed sweep repeats no sample."""
    seed = (config.seed * 1_000_003 + number) % 2**32
    if config.kind == "tpe":
        return optuna.samplers.TPESampler(n_startup_trials=config.random_variants, multivariate=True, seed=seed)
    if config.kind == "gp":
        return optuna.samplers.GPSampler(n_startup_trials=config.random_variants, seed=seed)
    return optuna.samplers.RandomSampler(seed=seed)


def importance(space: Mapping[str, BaseDistribution], points: Sequence[tuple[Mapping[str, Any], float]]
               ) -> dict[str, float]:
    """Return the share of each key in what distinguishes the best quarter of the points from all (PED-ANOVA).

    ``points``: parameters and their objective.
    """
    study = optuna.create_study(direction="maximize")
    study.add_trials([optuna.trial.create_trial(params=dict(params), distributions=dict(space), value=value)
                      for params, value in points])
    return optuna.importance.get_param_importances(
        study, evaluator=optuna.importance.PedAnovaImportanceEvaluator(target_quantile=0.25))


def _contains(space: BaseDistribution, value: Any) -> bool:
    if isinstance(space, CategoricalDistribution):
        return value in space.choices
    if not isinstance(space, IntDistribution | FloatDistribution) or not space.low <= value <= space.high:
        return False
    steps = 0.0 if space.step is None else (value - space.low) / space.step
    return bool(abs(steps - round(steps)) < 1e-9)


def _repair(path: Path) -> None:
    """Remove what a killed process left: an incomplete last line, and Optuna's lock of the file."""
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    if path.exists():
        data = path.read_bytes()
        if not data.endswith(b"\n"):
            with path.open("r+b") as file:
                file.truncate(data.rfind(b"\n") + 1)

"""Search of a sweep: variants are sampled, trained and evaluated by the ablation's runner, and pruned on the way.

``sweep.json`` describes the sweep, ``journal.jsonl`` holds Optuna's study, and the rest of the folder is an ablation's:
``ablation.json`` with the variants so far, ``anchors.json``, and ``runs/``.
"""

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from five.ablation import parallel
from five.ablation.conditions import Conditions
from five.ablation.config import AblationConfig, Trial
from five.ablation.runner import (
    Ablation,
    TrialFailed,
    evaluated_points,
    open_folder,
    require_same,
    require_same_machine,
    write_description,
)
from five.run.load import ConfigError
from five.sweep.config import SweepConfig
from five.sweep.objective import version_objective
from five.sweep.study import SweepStudy, Variant

MAX_FAILURES = 5  # in a row


class SweepFolder:
    """A sweep's configuration with its ``folder``."""

    def __init__(self, config: SweepConfig, folder: Path) -> None:
        self.config, self.folder = config, folder

    def open(self) -> None:
        """Create the folder, or open it to run further variants. Raises ConfigError as
        `five.ablation.runner.open_folder`, and for a folder that another kind of processor began."""
        require_same_machine(self.description, ("cpu",))  # `SweepStudy.open` compares the processors of a run
        open_folder(self.description, self.config)

    def check(self) -> None:
        """Raise ConfigError if the folder holds another sweep."""
        require_same(self.description, self.config)

    @property
    def description(self) -> Path:
        """Description of the sweep."""
        return self.folder / "sweep.json"

    @property
    def runs(self) -> Ablation:
        """The runs in this folder."""
        return Ablation(self.config.ablation({}, self.config.seeds), self.folder)

    def core_hours(self, variant: Variant) -> float:
        """Return the processor time of a variant's trainings until their last evaluations."""
        results = [self.runs.result(Trial(variant.name, seed)) for seed in self.config.seeds]
        return sum(Conditions(**result["conditions"]).core_hours for result in results if result)

    def confirmation(self, variants: list[Variant]) -> Ablation | None:
        """Return the ablation of the best variants with new seeds, or None without one. A variant of the preset's own
        values is not among them, because the ablation's baseline has these values."""
        config, own = self.config.confirmation, self.config.default_values()
        others = [variant for variant in ranked(variants) if variant.overrides != own]
        best = {variant.name: variant.overrides for variant in others[:config.best]}
        return Ablation(self.config.ablation(best, config.seeds), self.folder) if best else None


class Search:
    """Search of a sweep. ``say`` receives lines; ``ended`` is called after each variant, by one thread at a time."""

    def __init__(self, sweep: SweepFolder, say: Callable[[str], None] = print,
                 ended: Callable[[], None] = lambda: None) -> None:
        self._sweep, self._say, self._ended = sweep, say, ended
        self._lock = threading.Lock()
        self._failures = 0
        self._stopped = threading.Event()

    def run(self) -> None:
        """Continue variants that were interrupted and try new ones until the budget is spent.

        A variant that cannot be trained is stored as failed. After an error no further run starts. Raises TrialFailed
        after `MAX_FAILURES` of them in a row, TrialInterrupted if a run was interrupted, and ConfigError for more
        parallel runs than processors.
        """
        config = self._sweep.config
        parts = parallel.shares(config.parallel_runs)
        study = SweepStudy.open(config, self._sweep.folder, len(parts[0]) or 1)
        interrupted = deque(variant for variant in study.variants() if variant.state == "running")
        self._describe(study)
        self._sweep.runs.anchors(self._say)

        def work() -> bool:
            with self._lock:
                if interrupted:
                    variant = interrupted.popleft()
                elif self._is_spent(study):
                    return False
                else:
                    variant = study.sample()
                    self._describe(study)
            try:
                self._try(study, variant)
            except BaseException:
                self._stopped.set()
                raise
            with self._lock:
                self._ended()
            return True

        parallel.work_on_shares(parts, work)

    def _is_spent(self, study: SweepStudy) -> bool:
        config, variants = self._sweep.config, study.variants()
        if config.max_variants is not None and len(variants) >= config.max_variants:
            return True
        return config.core_hours is not None and sum(map(self._sweep.core_hours, variants)) >= config.core_hours

    def _describe(self, study: SweepStudy) -> None:
        """Write the variants so far for the processes of runs."""
        config: AblationConfig = self._sweep.config.ablation(
            {variant.name: variant.overrides for variant in study.variants()}, self._sweep.config.seeds)
        write_description(self._sweep.runs.description, config)

    def _try(self, study: SweepStudy, variant: Variant) -> None:
        self._say(f"{variant.name}: {variant.overrides}")
        try:
            self._sweep.config.build_run_config(variant.overrides, f"variant {variant.name!r}")
            self._train(study, variant)
            self._failures = 0
        except parallel.TrialInterrupted:
            raise
        except (TrialFailed, ConfigError) as error:
            self._say(f"{variant.name}: failed: {error}")
            study.fail(variant, str(error))
            self._failures += 1
            if self._failures >= MAX_FAILURES:
                raise TrialFailed(f"{MAX_FAILURES} variants in a row have failed; the last one: {error}") from None

    def _train(self, study: SweepStudy, variant: Variant) -> None:
        """Train and evaluate a variant's runs, report its objective on the way, and end it."""
        config, runs = self._sweep.config, self._sweep.runs
        points, earlier_total = config.evaluation.points, 0.0
        for index, seed in enumerate(config.seeds):
            trial = Trial(variant.name, seed)
            # Half of a later run would not compare with the whole first one.
            for stage in range(1, points + 1) if index == 0 else [points]:
                result = runs.result(trial)
                if result is None or evaluated_points(result) < stage:
                    if self._stopped.is_set():
                        raise parallel.TrialInterrupted(f"{trial.name}: not started, because the sweep ends")
                    parallel.run_process(self._sweep.folder, trial, self._say, stage)
                    result = self._result(trial)
                latest = version_objective(config.objective, result["evaluated"][stage - 1]).value
                value = (earlier_total + latest) / (index + 1)  # mean over the seeds so far
                stops = study.report(variant, index * points + stage, value)
                self._say(f"{variant.name}: {value:.4g} at point {stage} of seed {seed}")
                if stops and (index, stage) != (len(config.seeds) - 1, points):
                    study.prune(variant)
                    self._say(f"{variant.name}: pruned")
                    return
            earlier_total = value * (index + 1)
        study.complete(variant, value)

    def _result(self, trial: Trial) -> dict[str, Any]:
        result = self._sweep.runs.result(trial)
        if result is None:
            raise TrialFailed(f"{trial.name}: no result was stored")
        return result


def ranked(variants: list[Variant]) -> list[Variant]:
    """Return the evaluated variants, best first: those trained longest, and among them those of the best objective."""
    evaluated = [variant for variant in variants if variant.state in ("complete", "pruned") and variant.values]
    return sorted(evaluated, key=lambda variant: (max(variant.values), variant.value or 0.0), reverse=True)

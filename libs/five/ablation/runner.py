"""Trials of an ablation: each is a `five train` with its result stored in the trial's folder.

A trial with a result is not run again, so that an interrupted ablation resumes. The files that this depends on are
synced to disk: after a power failure an empty one would mean another state of the trial. A trial may train in stages,
with an evaluation after each, so that a sweep can end it early. `five.ablation.parallel` runs several at once.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dota.rule_changes import REVISION
from five.ablation.conditions import Conditions, monitor_process
from five.ablation.config import AblationConfig, Trial
from five.ablation.evaluation import Anchors, evaluate_run, rate_anchors
from five.ablation.experiment import ExperimentConfig
from five.benchmarks.results import machine
from five.evaluation.archived_versions import ArchivedVersions
from five.local.run_folder import RunFolder
from five.local.run_lock import RunInUse, RunLock
from five.local.run_origin import source_commit
from five.run.effective import differences
from five.run.load import ConfigError
from rapid.atomic_file import replace_text
from rapid.child_process import launcher
from rapid.redaction import redact_tree

RESULT, CONDITIONS = "result.json", "conditions.json"
FINISHED = "finished"  # holds the minutes trained; missing while a training is incomplete
GRACE_SECONDS = 300.0  # of a trial beyond its minutes: start, shutdown, last report


class TrialFailed(RuntimeError):
    """A trial ended without versions to evaluate. The message has the end of its log."""


class Ablation:
    """An ablation in its ``folder``: ``ablation.json`` its description, ``anchors.json`` the bots' skills,
    ``runs/`` a folder for each trial with its ``result.json``."""

    def __init__(self, config: AblationConfig, folder: Path) -> None:
        self.config = config
        self.folder = folder

    def open(self) -> None:
        """Create the folder, or open it to run further trials. The description becomes that of this ablation.

        Raises ConfigError as `check` and `require_same_source` do, and for a folder that another kind of machine began:
        its minutes would not compare.
        """
        require_same_machine(self.description, ("cpu", "cores"))
        open_folder(self.description, self.config, self._begun())

    def check(self) -> None:
        """Raise ConfigError if the folder has no ablation, or another one, whose results would be mixed in."""
        if not self.description.exists():
            raise ConfigError(f"{self.folder} holds no ablation: run it first, without --report")
        require_same(self.description, self.config, self._begun())

    @property
    def description(self) -> Path:
        """File from which the trials' processes read the configuration."""
        return self.folder / "ablation.json"

    @property
    def anchors_file(self) -> Path:
        """File of the bots' skills and games."""
        return self.folder / "anchors.json"

    def result(self, trial: Trial) -> dict[str, Any] | None:
        """Return a finished trial's result; None if it has none."""
        return _read_json(self._folder(trial).path / RESULT)

    def records(self, trial: Trial) -> list[dict[str, Any]]:
        """Return the optimizer's record of each version; empty if the run's folder has lost them."""
        return list((_read_json(self._folder(trial).records) or {}).get("versions", []))

    def missing(self) -> list[Trial]:
        """Return the trials without a result, in order of execution."""
        return [trial for trial in self.config.trials() if self.result(trial) is None]

    def run_trial(self, trial: Trial, say: Callable[[str], None] = print, stage: int | None = None) -> None:
        """Train and evaluate one trial and store its result. Raises TrialFailed.

        With ``stage`` the training pauses at each of the evaluation's points, where one version is evaluated, and ends
        at point ``stage``. A later call continues it. A training that was interrupted is discarded.
        """
        self._discard_incomplete(trial)
        if stage is None:
            self._train(trial, self.config.minutes, say)
            self._evaluate(trial, say)
            return
        points = self.config.evaluation.points
        for point in range(evaluated_points(self.result(trial)) + 1, stage + 1):
            self._train(trial, self.config.minutes * point / points, say)
            self._evaluate(trial, say, point)

    def anchors(self, say: Callable[[str], None] = print) -> Anchors:
        """Return the bots' skills in the baseline's game. The first call plays their games."""
        path = self.anchors_file
        found = Anchors.read(path)
        if found is None:
            say("rating the bots against each other")  # deterministic, so that it may run again
            config = self.config.run_config(self.config.baseline)
            found = rate_anchors(config.game, self.config.evaluation, config.rating)
            found.save(path)
        return found

    def _folder(self, trial: Trial) -> RunFolder:
        return RunFolder(self.folder / "runs" / trial.name)

    def _begun(self) -> list[str]:
        """Return the names of the variants with a result, or a training that is still to be evaluated."""
        names = {file.parent.name for name in (RESULT, FINISHED) for file in self.folder.glob(f"runs/*-seed*/{name}")}
        return [Trial.named(name).variant for name in sorted(names) if name.rpartition("-seed")[2].isdecimal()]

    def _trained(self, trial: Trial) -> float:
        """Return the minutes that a run has trained; 0 while a training is incomplete."""
        file = self._folder(trial).path / FINISHED
        return float(file.read_text(encoding="utf-8") or self.config.minutes) if file.exists() else 0.0

    def _discard_incomplete(self, trial: Trial) -> None:
        folder = self._folder(trial)
        if self._trained(trial) or not folder.path.exists():
            return
        try:
            with RunLock(folder.path):
                shutil.rmtree(folder.path)
        except RunInUse as error:
            raise TrialFailed(f"{trial.name}: another process trains it: {error}") from None

    def _train(self, trial: Trial, minutes: float, say: Callable[[str], None]) -> None:
        """Train until a run has trained for ``minutes`` altogether. Raises TrialFailed with the end of its log."""
        folder, done, config = self._folder(trial), self._trained(trial), self.config
        if done >= minutes:
            return  # the evaluation was interrupted
        say(f"training for {minutes - done:g} minutes")
        start = ["--resume", trial.name]
        if not done:
            sets = [part for override in config.overrides(trial.variant) for part in ("--set", override)]
            start = ["--preset", _absolute_preset(config.preset), "--name", trial.name, "--seed", str(trial.seed),
                     *sets]
        (folder.path / FINISHED).unlink(missing_ok=True)
        command = launcher([sys.executable, "-m", "five.cli.main", "train", "--minutes", str(minutes - done), *start])
        with self._log(trial).open("ab" if done else "wb") as output:
            process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, env=_environment())
            try:
                conditions = monitor_process(process, 60 * (minutes - done) + GRACE_SECONDS, source_commit())
            except subprocess.TimeoutExpired as error:
                raise self._failure(trial, f"of {minutes - done:g} minutes was killed after {error.timeout:.0f} seconds"
                                    ) from None
        if process.returncode != 0 or not folder.records.exists():
            raise self._failure(trial, f"ended with status {process.returncode}")
        if done and (before := _read_json(folder.path / CONDITIONS)):
            conditions = Conditions(**before) + conditions
        replace_text(folder.path / CONDITIONS, json.dumps(conditions.as_dict(), indent=1), sync=True)
        replace_text(folder.path / FINISHED, str(minutes), sync=True)

    def _log(self, trial: Trial) -> Path:
        return self.folder / f"{trial.name}.log"

    def _failure(self, trial: Trial, what: str) -> TrialFailed:
        """Return the error of a training, with the end of its log."""
        tail = "\n".join(self._log(trial).read_text(errors="replace", encoding="utf-8").splitlines()[-20:])
        return TrialFailed(f"{trial.name}: training {what}:\n{tail}")

    def _evaluate(self, trial: Trial, say: Callable[[str], None], point: int | None = None) -> None:
        """Evaluate a run and store its result; with ``point`` only its newest version, which is added to the result."""
        say("evaluating")
        folder, config = self._folder(trial), self.config
        versions = json.loads(folder.records.read_text(encoding="utf-8"))["versions"]
        conditions = _read_json(folder.path / CONDITIONS)
        evaluated = [version.as_dict() for version in evaluate_run(
            ArchivedVersions(folder), versions, config, self.anchors(say), say, None if point is None else 1,
            point in (None, config.evaluation.points))]
        if point is not None and conditions is not None:
            # The records' minutes include the pauses.
            added = {"minutes": self._trained(trial), "core_hours": Conditions(**conditions).core_hours}
            earlier = self.result(trial)
            evaluated = [*(earlier["evaluated"] if earlier else []), {**evaluated[-1], **added}]
        result = {"variant": trial.variant, "seed": trial.seed, "commit": source_commit(), "machine": machine(),
                  "minutes": config.minutes, "conditions": conditions, "training": summarize_training(versions),
                  "evaluated": evaluated}
        replace_text(folder.path / RESULT, json.dumps(result, indent=1), sync=True)


def require_same_machine(description: Path, keys: Collection[str]) -> None:
    """Raise ConfigError if an experiment was begun on a machine with other values of ``keys`` ("cpu", "cores"): its
    minutes would not compare. Do nothing without a description."""
    if not description.exists():
        return
    known, here = read_description(description)["machine"], machine()
    if any(known[key] != here[key] for key in keys):
        raise ConfigError(f"{description.parent} was begun on {known['cores']} processors of {known['cpu']}, and here "
                          f"are {here['cores']} of {here['cpu']}: continue it there, or change the file's name key")


def open_folder(description: Path, config: ExperimentConfig, begun: Collection[str] = ()) -> None:
    """Create an experiment's folder with its description, or open it and replace the description's configuration.

    ``begun``: names of the variants with results. Raises ConfigError as `require_same` and `require_same_source`.
    """
    description.parent.mkdir(parents=True, exist_ok=True)
    if not description.exists():
        write_description(description, config)
        return
    known = require_same(description, config, begun)
    require_same_source(description, config, known)
    if known["digest"] != config.digest:
        write_description(description, config)


def require_same(description: Path, config: ExperimentConfig, begun: Collection[str] = ()) -> dict[str, Any]:
    """Return an experiment's description. Raises ConfigError if results of it are not results of ``config``."""
    known = read_description(description)
    try:
        earlier = type(config).model_validate(known["config"])
    except ValidationError:
        raise ConfigError(f"{description.parent} was begun by another release of Five: finish it with that release, or "
                          "change the file's name key") from None
    if problem := config.mismatch(earlier, begun):
        raise ConfigError(f"{description.parent} holds results of another version of this file, in which {problem}: "
                          "undo that change, or change the file's name key")
    return known


def require_same_source(description: Path, config: ExperimentConfig, known: Mapping[str, Any]) -> None:
    """Raise ConfigError if the preset or the game's rules have changed since the description ``known``: further runs
    would not compare with its results. Descriptions of earlier releases hold neither, and pass."""
    rules = known.get("rules", REVISION)
    if rules != REVISION:
        raise ConfigError(f"{description.parent} was begun under revision {rules} of the game's rules, and this is "
                          f"revision {REVISION}: finish it with commit {known['commit']}, or change the file's name "
                          "key")
    before, now = known.get("preset", {}), redact_tree(config.preset_values)
    for section in sorted((before.keys() & now.keys()) - {"name"}):
        for key, old, new in differences(section, before[section], now[section]):
            if old is not None and new is not None:  # else a release has added or removed the key
                raise ConfigError(f"{description.parent} was begun when {key} of the preset {config.preset} was {old}, "
                                  f"and now it is {new}: undo that change, or change the file's name key")


def write_description(description: Path, config: ExperimentConfig) -> None:
    """Write an experiment's description: its configuration, its preset's values, the rules, the commit and the
    machine."""
    about = {"digest": config.digest, "config": config.model_dump(mode="json"),
             "preset": redact_tree(config.preset_values), "rules": REVISION, "commit": source_commit(),
             "machine": machine()}
    replace_text(description, json.dumps(about, indent=1), sync=True)


def read_description(description: Path) -> dict[str, Any]:
    """Return what `write_description` wrote."""
    return dict(json.loads(description.read_text(encoding="utf-8")))


def evaluated_points(result: Mapping[str, Any] | None) -> int:
    """Return the number of points at which a run that trains in stages was evaluated."""
    return len(result["evaluated"]) if result else 0


def summarize_training(versions: list[dict[str, Any]]) -> dict[str, float]:
    """Return a run's training statistics: means over all versions, weighted by each version's seconds.

    They are for readers of a result file; reports use the records (`five.ablation.training_records`).
    """
    if not versions:
        return {}
    last = versions[-1]
    seconds = sum(v["seconds"] for v in versions[1:])  # in which the hero-steps after the first record came

    def mean(key: str) -> float:
        rows = [(v[key], v["seconds"]) for v in versions if v.get(key) is not None]
        return float(sum(x * s for x, s in rows) / sum(s for _, s in rows)) if rows else float("nan")

    return {"versions": last["version"], "hero_steps": last["hero_steps"], "reuse": last["reuse"],
            "staleness_mean": mean("staleness_mean"), "entropy": mean("entropy"),
            "hero_steps_per_second": (last["hero_steps"] - versions[0]["hero_steps"]) / max(seconds, 1e-9)}


def _read_json(path: Path) -> dict[str, Any] | None:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def _absolute_preset(preset: str) -> str:
    path = Path(preset)
    return str(path.resolve()) if path.is_file() else preset


def _environment() -> dict[str, str]:
    """Return an environment with this process's import path, so that a trial runs the same source."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

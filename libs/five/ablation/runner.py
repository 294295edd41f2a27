"""Trials of an ablation: each is a `five train` with its result stored in the trial's folder.

A trial with a result is not run again, so that an interrupted ablation resumes. `five.ablation.parallel` runs
several at once.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from five.ablation.conditions import monitor_process
from five.ablation.config import AblationConfig, Trial
from five.ablation.evaluation import Anchors, evaluate_run, rate_anchors
from five.benchmarks.results import machine
from five.evaluation.archived_versions import ArchivedVersions
from five.local.run_folder import RunFolder
from five.local.run_lock import RunInUse, RunLock
from five.run.load import ConfigError
from rapid.atomic_file import replace_text

RESULT, CONDITIONS = "result.json", "conditions.json"
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
        """Create the folder. Raises ConfigError if it holds another ablation, whose results would be mixed in."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "ablation.json"
        if path.exists():
            known = json.loads(path.read_text(encoding="utf-8"))["digest"]
            if known != self.config.digest:
                raise ConfigError(f"{self.folder} holds results of another version of this file (digest {known}, "
                                  f"now {self.config.digest}): give the ablation another name, or remove the folder")
            return
        about = {"digest": self.config.digest, "config": self.config.model_dump(mode="json"), "commit": commit(),
                 "machine": machine()}
        replace_text(path, json.dumps(about, indent=1))

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

    def run_trial(self, trial: Trial, say: Callable[[str], None] = print) -> None:
        """Train and evaluate one trial and store its result. Raises TrialFailed."""
        say(f"training for {self.config.minutes:g} minutes")
        self._train(trial)
        say("evaluating")
        replace_text(self._folder(trial).path / RESULT, json.dumps(self._evaluate(trial, say), indent=1))

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

    def _train(self, trial: Trial) -> None:
        folder = self._folder(trial)
        if (folder.path / "finished").exists():
            return  # training is complete; the evaluation was interrupted
        if folder.path.exists():
            try:
                with RunLock(folder.path):
                    shutil.rmtree(folder.path)  # an incomplete trial is discarded
            except RunInUse as error:
                raise TrialFailed(f"{trial.name}: another process trains it: {error}") from None
        config = self.config
        sets = [part for override in config.overrides(trial.variant) for part in ("--set", override)]
        command = [sys.executable, "-m", "five.cli.main", "train", "--preset", _absolute_preset(config.preset),
                   "--name",
                   trial.name, "--seed", str(trial.seed), "--minutes", str(config.minutes), *sets]
        log = self.folder / f"{trial.name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, env=_environment())
            conditions = monitor_process(process, 60 * config.minutes + GRACE_SECONDS, commit())
        if process.returncode != 0 or not (folder.path / "records.json").exists():
            tail = "\n".join(log.read_text(errors="replace", encoding="utf-8").splitlines()[-20:])
            raise TrialFailed(f"{trial.name}: training ended with status {process.returncode}:\n{tail}")
        replace_text(folder.path / CONDITIONS, json.dumps(conditions.as_dict(), indent=1))
        (folder.path / "finished").touch()

    def _evaluate(self, trial: Trial, say: Callable[[str], None]) -> dict[str, Any]:
        folder = self._folder(trial)
        versions = json.loads(folder.records.read_text(encoding="utf-8"))["versions"]
        evaluated = evaluate_run(ArchivedVersions(folder), versions, self.config, self.anchors(say), say)
        return {"variant": trial.variant, "seed": trial.seed, "commit": commit(), "machine": machine(),
                "minutes": self.config.minutes, "conditions": _read_json(folder.path / CONDITIONS),
                "training": training_figures(versions),
                "evaluated": [version.as_dict() for version in evaluated]}


def training_figures(versions: list[dict[str, Any]]) -> dict[str, float]:
    """Return a run's training statistics: means over all versions, weighted by each version's seconds.

    They are for readers of a result file; reports use the records (`five.ablation.training_records`).
    """
    if not versions:
        return {}
    last = versions[-1]
    seconds = sum(v["seconds"] for v in versions)

    def mean(key: str) -> float:
        rows = [(v[key], v["seconds"]) for v in versions if v.get(key) is not None]
        return float(sum(x * s for x, s in rows) / sum(s for _, s in rows)) if rows else float("nan")

    return {"versions": last["version"], "hero_steps": last["hero_steps"], "reuse": last["reuse"],
            "staleness_mean": mean("staleness_mean"), "entropy": mean("entropy"),
            "hero_steps_per_second": (last["hero_steps"] - versions[0]["hero_steps"]) / max(seconds, 1e-9)}


def _read_json(path: Path) -> dict[str, Any] | None:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def commit() -> str:
    """Return the source tree's commit, with "+" if files differ from it; "unknown" outside a checkout."""
    here = Path(__file__).resolve().parent
    try:
        head = subprocess.run(["git", "rev-parse", "--short=9", "HEAD"], cwd=here, capture_output=True, text=True,
                              check=True).stdout.strip()
        dirty = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no"], cwd=here,
                               capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if dirty else "")


def _absolute_preset(preset: str) -> str:
    path = Path(preset)
    return str(path.resolve()) if path.is_file() else preset


def _environment() -> dict[str, str]:
    """Return an environment with this process's import path, so that a trial runs the same source."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

"""Deterministic runner of runs: a result is computed from the variant's overrides instead of trained.

    python -m tests.sweep.judge FILE ROOT TRIAL:STAGE     # sweeps; the process kills itself before that stage
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from five.ablation import parallel
from five.ablation.conditions import Conditions
from five.ablation.config import AblationConfig, Trial
from five.ablation.evaluation import Anchors
from five.ablation.runner import RESULT
from five.agent.ratings import Skill

RATE, BATCH = "schedules.learning_rate.initial", "learning.batch_samples"
CORE_HOURS = 0.01  # of a stage
SMALL: dict[str, Any] = {
    "name": "rates", "preset": "laptop-1v1", "minutes": 4, "seeds": [1, 2], "max_variants": 12,
    "objective": ["scripted"], "sampler": {"random_variants": 4}, "pruner": {"kind": "asha", "factor": 2},
    "confirmation": {"best": 2, "seeds": [8, 9]},
    "evaluation": {"points": 4, "pairs": 1, "final_pairs": 2, "against": ["random", "scripted"]},
    "search": {RATE: {"low": 1e-4, "high": 1e-2, "log": True}, BATCH: {"choices": [8, 16, 32]}}}


def write(path: Path, **changes: Any) -> Path:
    """Write a sweep's file."""
    path.write_text(yaml.safe_dump({**SMALL, **changes}), encoding="utf-8")
    return path


def score(overrides: dict[str, Any], seed: int, stage: int) -> float:
    """Return the score against a bot at a stage: best at the greatest rate with batch 16; seeds differ by 0.01."""
    rate, batch = overrides.get(RATE, 1e-3), overrides.get(BATCH, 48)
    return round(float(stage * (rate * 10 + (0.05 if batch == 16 else 0.0)) + seed / 100), 9)


def result(variant: str, seed: int, overrides: dict[str, Any], stages: int) -> dict[str, Any]:
    """Return the stored result of a run until a stage."""
    figures = {"game_seconds": 60.0, "statistics": {"last_hits": 1.0}, "opponent_statistics": {"last_hits": 2.0}}
    evaluated = []
    for stage in range(1, stages + 1):
        value = score(overrides, seed, stage)
        match = {"won": 1, "drawn": 0, "lost": 1, "score": value, "interval": [value - 0.02, value + 0.02], **figures}
        evaluated.append({"version": 10 * stage, "minutes": float(stage), "hero_steps": 1000.0, "mu": 10 * value,
                          "sigma": 1.0, "core_hours": CORE_HOURS * stage,
                          "matches": {"random": match, "scripted": match}})
    conditions = Conditions([0], 3600 * CORE_HOURS * stages, 60.0 * stages, 1.0, 1.0, "abc").as_dict()
    return {"variant": variant, "seed": seed, "conditions": conditions, "evaluated": evaluated}


def judge(folder: Path, trial: Trial, say: Callable[[str], None], stage: int | None = None, kill_at: str = "") -> None:
    """Store a run's result in place of `five.ablation.parallel.run_process`. Calls are listed in calls.txt."""
    config = AblationConfig.model_validate(json.loads((folder / "ablation.json").read_text())["config"])
    with (folder / "calls.txt").open("a") as calls:
        calls.write(f"{trial.name}:{stage}\n")
    if f"{trial.name}:{stage}" == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    path = folder / "runs" / trial.name
    path.mkdir(parents=True, exist_ok=True)
    stages = config.evaluation.points if stage is None else stage
    stored = result(trial.variant, trial.seed, config.variants[trial.variant], stages)
    (path / RESULT).write_text(json.dumps(stored))


def calls(folder: Path) -> list[str]:
    """Return the calls of `judge` so far."""
    return (folder / "calls.txt").read_text().split()


def prepare(root: Path, name: str = "rates") -> Path:
    """Create a sweep's folder with rated bots."""
    folder = root / "sweeps" / name
    folder.mkdir(parents=True)
    Anchors({"random": Skill(0.0, 0.1), "scripted": Skill(10.0, 0.1)}, 0.25).save(folder / "anchors.json")
    return folder


def main(file: str, root: str, kill_at: str) -> None:
    """Sweep with the judge, without reports on the way."""
    from five.cli import sweep

    sweep.write_partial = lambda folder: None
    parallel.run_process = lambda folder, trial, say, stage=None: judge(  # type: ignore[assignment]
        folder, trial, say, stage, kill_at)
    sweep.sweep(Path(file), report_only=False, settings=False, root=Path(root))


if __name__ == "__main__":
    main(*sys.argv[1:])

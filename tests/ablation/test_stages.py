"""Trials that train in stages: each stage continues the training and adds an evaluation."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from five.ablation import runner
from five.ablation.conditions import Conditions
from five.ablation.config import AblationConfig, Trial
from five.ablation.evaluation import Anchors, VersionEvaluation
from five.ablation.runner import CONDITIONS, FINISHED, RESULT, Ablation, TrialFailed
from five.agent.ratings import Skill

TRIAL = Trial("base", 3)


@pytest.fixture
def ablation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ablation:
    """Return an ablation of eight minutes and four points whose trainings write a record and their arguments."""
    config = AblationConfig.model_validate({
        "name": "rates", "seeds": [3], "minutes": 8, "set": {"services.play.enabled": False}, "variants": {"base": {}},
        "evaluation": {"points": 4, "pairs": 5, "final_pairs": 7}})
    Anchors({"random": Skill(0.0, 0.1)}, 0.25).save(tmp_path / "anchors.json")
    script = tmp_path / "instead-of-python"
    script.write_text("#!/bin/sh\nwhile [ $1 != train ]; do shift; done\nshift\n"
                      f"echo $* >> {tmp_path}/trainings.txt\n"
                      "mkdir -p runs/base-seed3\necho '{\"versions\": []}' > runs/base-seed3/records.json\n")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(runner, "evaluate_run", evaluate)
    return Ablation(config, tmp_path)


def evaluate(archive: Any, records: Any, config: Any, anchors: Any, say: Any, points: int | None, final: bool
             ) -> list[VersionEvaluation]:
    return [VersionEvaluation(final, 99.0, 1.0, 2.0, 1.0)] * (points or config.evaluation.points)


def trainings(ablation: Ablation) -> list[str]:
    return (ablation.folder / "trainings.txt").read_text().splitlines()


def minutes(ablation: Ablation) -> list[float]:
    result = ablation.result(TRIAL)
    return [] if result is None else [version["minutes"] for version in result["evaluated"]]


START = "--preset laptop-1v1 --name base-seed3 --seed 3 --set services.play.enabled=false"


def test_stage_continues_the_training(ablation: Ablation) -> None:
    for stage, expected in ((1, [2.0]), (3, [2.0, 4.0, 6.0]), (3, [2.0, 4.0, 6.0]), (4, [2.0, 4.0, 6.0, 8.0])):
        ablation.run_trial(TRIAL, lambda text: None, stage)
        assert minutes(ablation) == expected
    assert trainings(ablation) == [f"--minutes 2.0 {START}", *["--minutes 2.0 --resume base-seed3"] * 3]


def test_only_the_last_stage_is_final(ablation: Ablation) -> None:
    ablation.run_trial(TRIAL, lambda text: None, 4)
    result = ablation.result(TRIAL)
    assert result is not None and [version["version"] for version in result["evaluated"]] == [0, 0, 0, 1]


def test_conditions_of_stages_are_added(ablation: Ablation) -> None:
    ablation.run_trial(TRIAL, lambda text: None, 3)
    result = ablation.result(TRIAL)
    assert result is not None
    hours = [version["core_hours"] for version in result["evaluated"]]
    assert 0 < hours[0] < hours[1] < hours[2] == Conditions(**result["conditions"]).core_hours


def test_interrupted_stage_starts_the_run_again(ablation: Ablation) -> None:
    """Without the file a training was incomplete: its result is discarded with the run."""
    ablation.run_trial(TRIAL, lambda text: None, 2)
    place = ablation.folder / "runs" / TRIAL.name
    (place / FINISHED).unlink()
    ablation.run_trial(TRIAL, lambda text: None, 3)
    assert minutes(ablation) == [2.0, 4.0, 6.0] and trainings(ablation)[2] == f"--minutes 2.0 {START}"
    assert len(trainings(ablation)) == 5


def test_files_that_a_resumption_needs_are_synced(ablation: Ablation, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power failure an unsynced file may be empty, and an empty FINISHED means a whole training."""
    synced: list[str] = []
    fsync = os.fsync

    def spy(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    ablation.open()
    ablation.run_trial(TRIAL, lambda text: None, 1)
    for name in (ablation.description.name, CONDITIONS, FINISHED, RESULT):
        assert any(name in file for file in synced), name


def test_interrupted_evaluation_is_repeated(ablation: Ablation) -> None:
    ablation.run_trial(TRIAL, lambda text: None, 2)
    place = ablation.folder / "runs" / TRIAL.name
    result = json.loads((place / RESULT).read_text())
    result["evaluated"].pop()
    (place / RESULT).write_text(json.dumps(result))
    ablation.run_trial(TRIAL, lambda text: None, 2)
    assert minutes(ablation) == [2.0, 4.0] and len(trainings(ablation)) == 2


def test_training_that_does_not_end_fails_with_its_log(ablation: Ablation, monkeypatch: pytest.MonkeyPatch) -> None:
    def expire(process: "subprocess.Popen[bytes]", timeout: float, commit: str) -> Conditions:
        process.wait()
        raise subprocess.TimeoutExpired(process.args, timeout)

    monkeypatch.setattr(runner, "monitor_process", expire)
    with pytest.raises(TrialFailed, match=r"^base-seed3: training of 2 minutes was killed after 420 seconds:\n"):
        ablation.run_trial(TRIAL, lambda text: None, 1)
    assert ablation.result(TRIAL) is None


def test_trial_without_stages_trains_in_one_piece(ablation: Ablation) -> None:
    ablation.run_trial(TRIAL, lambda text: None)
    assert trainings(ablation) == [f"--minutes 8.0 {START}"] and minutes(ablation) == [99.0] * 4


def test_sum_of_conditions() -> None:
    first = Conditions([0], 60.0, 100.0, 1.0, 0.5, "abc")
    second = Conditions([1], 30.0, 300.0, 3.0, 2.0, "def")
    assert first + second == Conditions([0, 1], 90.0, 400.0, 2.5, 0.5, "def")
    assert (first + second).core_hours == 0.025

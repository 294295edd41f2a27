import os
import sys
from pathlib import Path
from typing import Any

import pytest

from five.ablation.config import AblationConfig, Trial
from five.ablation.evaluation import Anchors
from five.ablation.parallel import run, shares
from five.ablation.runner import Ablation, TrialFailed
from five.agent.ratings import Skill
from five.run.load import ConfigError

PROCESSORS = len(os.sched_getaffinity(0))


def ablation(folder: Path, **changes: Any) -> Ablation:
    """Return an ablation of two variants and one seed with rated bots."""
    variants: dict[str, dict[str, Any]] = {"base": {}, "high": {}}
    config = AblationConfig.model_validate({"name": "rates", "seeds": [1], "variants": variants, **changes})
    Anchors({"random": Skill(0.0, 0.1)}, 0.25).save(folder / "anchors.json")
    opened = Ablation(config, folder)
    opened.open()
    return opened


@pytest.mark.parametrize(("there", "parallel_runs", "parts"), [
    ({0, 1, 2, 3}, 1, [{0, 1, 2, 3}]), ({0, 1, 2, 3}, 2, [{0, 1}, {2, 3}]), ({3, 4}, 2, [{3}, {4}]),
    ({1, 5, 6, 7, 9}, 2, [{1, 5}, {6, 7}])])
def test_processors_are_partitioned(monkeypatch: pytest.MonkeyPatch, there: set[int], parallel_runs: int,
                                    parts: list[set[int]]) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: there)
    assert shares(parallel_runs) == parts


def test_more_runs_than_processors_are_refused(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(ConfigError, match=rf"parallel_runs {PROCESSORS + 1}: .* {PROCESSORS} processors"):
        run(ablation(tmp_path, parallel_runs=PROCESSORS + 1), said.append)
    assert not said


def test_trials_are_bound_to_their_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replaced trial process reports its processors."""
    script = tmp_path / "instead-of-python"
    script.write_text("#!/bin/sh\nshift $(($# - 1))\necho $(nproc) for $1\n")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    said: list[str] = []
    run(ablation(tmp_path, parallel_runs=PROCESSORS), said.append)
    assert sorted(said) == ["base-seed1: 1 for base-seed1", "high-seed1: 1 for high-seed1"]
    assert len(os.sched_getaffinity(0)) == PROCESSORS


def test_failed_trial_stops_the_ablation(tmp_path: Path) -> None:
    """A run without versions cannot be evaluated, which its own process detects."""
    (tmp_path / "runs" / "base-seed1").mkdir(parents=True)
    (tmp_path / "runs" / "base-seed1" / "finished").touch()
    said: list[str] = []
    with pytest.raises(TrialFailed, match=r"(?s)base-seed1 ended with status 1:.*records\.json"):
        run(ablation(tmp_path), said.append)
    assert not any(line.startswith("high") for line in said)


def test_trial_is_parsed_from_its_name() -> None:
    for trial in (Trial("base", 1), Trial("queue-4", 20)):
        assert Trial.named(trial.name) == trial
    with pytest.raises(ValueError, match="VARIANT-seedN"):
        Trial.named("base")


def test_digest_depends_on_parallel_runs() -> None:
    one, two = (AblationConfig.model_validate({"name": "a", "variants": {"base": {}}, "parallel_runs": n})
                for n in (1, 2))
    assert one.digest != two.digest
    assert one.digest == AblationConfig.model_validate({"name": "a", "variants": {"base": {}}}).digest

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from five.agent.ratings import Skill
from five.cli.ablate import ablate, collect
from five.cli.ablation import page, side_by_side
from five.cli.ablation.compare import curve, first_reached, mean, speedup
from five.cli.ablation.config import AblationConfig, Trial, read
from five.cli.ablation.execute import RESULT, Ablation
from five.cli.ablation.judge import Anchors, evenly
from five.run.load import ConfigError
from tests.e2e.running import TINY
from tests.repository import ROOT

SMALL: dict[str, Any] = {
    "name": "rates", "minutes": 0.4, "seeds": [1], "judge": {"points": 2, "pairs": 1, "final_pairs": 1,
                                                             "against": ["random", "scripted"], "anchor_pairs": 2},
    "set": {key: yaml.safe_load(value) for key, value in (text.split("=") for text in TINY)},
    "arms": {"base": {}, "high": {"schedules.learning_rate.initial": 1}}}


def write(path: Path, **changes: Any) -> Path:
    path.write_text(yaml.safe_dump({**SMALL, **changes}))
    return path


def result(arm: str, seed: int, mu: list[float], minutes: list[float] | None = None) -> dict[str, Any]:
    minutes = minutes or [10.0 * (i + 1) for i in range(len(mu))]
    row = {"score": 0.5, "statistics": {}}
    return {"arm": arm, "seed": seed, "training": {"hero_steps_per_second": 100.0, "staleness_mean": 0.5, "reuse": 1.0},
            "judged": [{"version": int(10 * t), "minutes": t, "hero_steps": 1000.0 * t, "mu": m, "sigma": 1.0,
                        "matches": {"random": row, "scripted": row}} for t, m in zip(minutes, mu, strict=True)]}


def test_trials_go_seed_by_seed_over_all_arms(tmp_path: Path) -> None:
    config = read(write(tmp_path / "a.yaml", seeds=[4, 7]))
    assert list(config.trials()) == [Trial("base", 4), Trial("high", 4), Trial("base", 7), Trial("high", 7)]


def test_those_that_come_with_the_project() -> None:
    """Their arms are valid, and a queue of n versions holds n versions' samples and little more."""
    found = {path.stem: read(path) for path in (ROOT / "benchmarks/ablations").glob("*.yaml")}
    assert {"staleness", "reuse"} <= set(found) and all(config.name == name for name, config in found.items())
    for arm in list(found["staleness"].arms)[1:]:
        run = found["staleness"].run_config(arm)
        version = run.learning.batch_samples * run.learning.gradient_steps_per_iteration
        queue = (run.buffer.minimum_samples - run.buffer.reuse_window_batches * run.learning.batch_samples) / version
        assert queue == float(arm.removeprefix("queue-")) and run.buffer.draw == "oldest"
        assert run.buffer.max_age_versions > 2 * queue


@pytest.mark.parametrize(("changes", "told"), [
    ({"arms": {"base": {"learning.batch_size": 1}}}, "arm 'base'.*\n.*learning.batch_size.*batch_samples"),
    ({"judge": {"against": ["scripted"]}}, "must name random"),
    ({"judge": {"against": ["random", "god"]}}, "scripted-easy"),
    ({"seeds": [1, 1]}, "twice"),
    ({"name": "../up"}, "name"),
    ({"arm": {}}, "arm"),
])
def test_a_file_that_cannot_be_run_is_refused_before_anything_starts(tmp_path: Path, changes: dict[str, Any],
                                                                     told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read(write(tmp_path / "a.yaml", **changes))


def test_results_of_another_version_of_the_file_are_not_mixed_in(tmp_path: Path) -> None:
    Ablation(AblationConfig.model_validate(SMALL), tmp_path / "rates").open()
    other = AblationConfig.model_validate({**SMALL, "question": "reworded"})
    Ablation(other, tmp_path / "rates").open()
    with pytest.raises(ConfigError, match="another version"):
        Ablation(AblationConfig.model_validate({**SMALL, "minutes": 1}), tmp_path / "rates").open()


def test_judged_versions_are_spread_over_the_time_and_the_last_is_among_them() -> None:
    rows = [{"version": v, "minutes": float(m)} for v, m in enumerate([1, 2, 3, 4, 5, 6, 7, 8, 20])]
    assert [r["version"] for r in evenly(rows, range(9), 4)] == [4, 7, 8]
    assert [r["version"] for r in evenly(rows, [0, 3, 7], 2)] == [3, 7]
    assert evenly(rows, [], 2) == []


def test_intervals_are_students() -> None:
    m = mean([1.0, 2.0, 3.0])
    assert m.value == 2.0 and m.half == pytest.approx(4.303 / math.sqrt(3), rel=1e-3)
    assert str(mean([4.0])) == "4 (one seed)" and str(mean([])) == "-"


def test_the_speedup_is_the_papers() -> None:
    assert first_reached([10, 20, 30], [0, 10, 10], 5) == 15
    assert math.isinf(first_reached([10, 20], [0, 4], 5))
    base, fast, never = ([result("x", s, mu) for s in (1, 2)] for mu in ([0, 10, 20], [10, 20, 30], [0, 0, 0]))
    assert speedup(base, fast, 10, "minutes") == 2.0
    assert speedup(base, never, 10, "minutes") == 0.0
    assert math.isinf(speedup(never, fast, 10, "minutes"))


def test_a_curve_goes_as_far_as_every_seed_does() -> None:
    c = curve([result("x", 1, [0, 10], [10, 20]), result("x", 2, [0, 20, 20], [10, 20, 40])], "minutes", points=3)
    np.testing.assert_allclose(c.x, [10, 15, 20])
    np.testing.assert_allclose(c.y, [0, 7.5, 15])
    assert (c.high - c.low)[2] > (c.high - c.low)[0] == 0


def test_the_page_has_every_arm_and_escapes_what_it_shows() -> None:
    config = AblationConfig.model_validate({**SMALL, "question": "<b>why</b>"})
    results = {"base": [result("base", 1, [5.0, 20.0])]}
    text = page.render(config, results, {"commit": "abc", "machine": {"cores": 2, "cpu": "x"}})
    assert "1 of 2 runs" in text and "<b>why" not in text and text.count("<svg") == 3
    rows = page.table(config, results).splitlines()
    assert rows[2].startswith("| base | 1 | 20 (one seed)") and rows[3].startswith("| high | 0 | -")


def test_anchors_are_rated_once(tmp_path: Path) -> None:
    anchors = Anchors({"random": Skill(0.0, 0.1), "scripted": Skill(9.0, 1.0)}, 0.25)
    anchors.save(tmp_path / "anchors.json")
    assert Anchors.read(tmp_path / "anchors.json") == anchors
    assert Anchors.read(tmp_path / "none.json") is None


def test_what_has_a_result_is_not_run_again(tmp_path: Path) -> None:
    config = AblationConfig.model_validate(SMALL)
    ablation = Ablation(config, tmp_path)
    for trial in config.trials():
        folder = tmp_path / "runs" / trial.name
        folder.mkdir(parents=True)
        (folder / RESULT).write_text(json.dumps(result(trial.arm, trial.seed, [1.0, 2.0])))
    said: list[str] = []
    side_by_side.run(ablation, said.append)
    assert said == [] and set(collect(ablation)) == {"base", "high"}


@pytest.mark.slow
def test_two_arms_are_trained_judged_and_compared(tmp_path: Path) -> None:
    """A real training of each arm, as small as it goes, and its real matches; both at once where there are cores."""
    at_once = min(2, len(os.sched_getaffinity(0)))
    assert ablate(write(tmp_path / "a.yaml", at_once=at_once), report_only=False, root=tmp_path) == 0
    place = tmp_path / "ablations" / "rates"
    for arm in ("base", "high"):
        found = json.loads((place / "runs" / f"{arm}-seed1" / RESULT).read_text())
        assert found["training"]["versions"] > 0 and found["judged"][-1]["version"] > 0
        assert sum(found["judged"][-1]["matches"]["scripted"][k] for k in ("won", "drawn", "lost")) == 2
    assert "| high | 1 |" in (place / "table.md").read_text()

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dota.rule_changes import REVISION
from five.ablation import page, parallel
from five.ablation.conditions import Conditions
from five.ablation.config import AblationConfig, Trial, read
from five.ablation.evaluation import Anchors, evenly_spaced
from five.ablation.runner import RESULT, Ablation, TrialFailed, read_description, summarize_training
from five.agent.ratings import Skill
from five.cli.ablate import ablate, collect
from five.local.run_lock import FileLock, RunInUse, RunLock
from five.run.load import ConfigError
from tests.e2e.running import TINY
from tests.repository import ROOT

SMALL: dict[str, Any] = {
    "name": "rates", "minutes": 0.4, "seeds": [1], "evaluation": {"points": 2, "pairs": 1, "final_pairs": 1,
                                                                  "against": ["random", "scripted"], "anchor_pairs": 2},
    "set": {key: yaml.safe_load(value) for key, value in (text.split("=") for text in TINY)},
    "variants": {"base": {}, "high": {"schedules.learning_rate.initial": 1}}}


def write(path: Path, **changes: Any) -> Path:
    path.write_text(yaml.safe_dump({**SMALL, **changes}))
    return path


def result(variant: str, seed: int) -> dict[str, Any]:
    """Return a stored result of a trial, without conditions."""
    row = {"won": 1, "drawn": 0, "lost": 1, "score": 0.5, "game_seconds": 60.0, "statistics": {"last_hits": 1.0},
           "opponent_statistics": {"last_hits": 2.0}}
    training = {"hero_steps_per_second": 100.0, "staleness_mean": 0.5, "reuse": 1.0}
    return {"variant": variant, "seed": seed, "training": training,
            "evaluated": [{"version": version, "minutes": version / 10, "hero_steps": 1000.0, "mu": 5.0, "sigma": 1.0,
                           "matches": {"random": row, "scripted": row}} for version in (10, 20)]}


def test_trials_are_ordered_by_seed(tmp_path: Path) -> None:
    config = read(write(tmp_path / "a.yaml", seeds=[4, 7]))
    assert list(config.trials()) == [Trial("base", 4), Trial("high", 4), Trial("base", 7), Trial("high", 7)]


def test_shipped_ablations_are_valid() -> None:
    """Their variants are valid, and a buffer of n versions holds the samples of n versions and little more."""
    found = {path.stem: read(path) for path in (ROOT / "benchmarks/ablations").glob("*.yaml")}
    assert {"staleness", "reuse"} <= set(found) and all(config.name == name for name, config in found.items())
    for variant in list(found["staleness"].variants)[1:]:
        run = found["staleness"].run_config(variant)
        version = run.learning.batch_samples * run.learning.gradient_steps_per_iteration
        queue = (run.buffer.minimum_samples - run.buffer.reuse_window_batches * run.learning.batch_samples) / version
        assert queue == float(variant.removeprefix("queue-")) and run.buffer.sampling == "oldest"
        assert run.buffer.max_age_versions > 2 * queue


def test_example_of_the_page_is_valid(tmp_path: Path) -> None:
    page = (ROOT / "docs/ablations.md").read_text()
    path = tmp_path / "example.yaml"
    path.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    assert len(list(read(path).trials())) == 6


@pytest.mark.parametrize(("changes", "told"), [
    ({"variants": {"base": {"learning.batch_size": 1}}}, "variant 'base'.*\n.*learning.batch_size.*batch_samples"),
    ({"evaluation": {"against": ["scripted"]}}, "must contain random"),
    ({"evaluation": {"against": ["random", "god"]}}, "scripted-easy"),
    ({"evaluation": {"against": ["random", "scripted", "scripted"]}}, "against must be unique"),
    ({"seeds": [1, 1]}, "seeds must be unique"),
    ({"variants": {"base": {}, "lr_2x": {"learning.ppo_clip": 0.3}}}, 'name "lr_2x-seed1": only lowercase letters'),
    ({"name": "../up"}, "name"),
    ({"variant": {}}, "variant: Extra inputs"),
    ({"variants": {"base": {}, "same": {"learning.ppo_clip": 0.2}}}, "variants.same has the settings of variants.base"),
    ({"arms": {}}, 'key "arms" was renamed to "variants" in 0.2.0'),
    ({"judge": {}}, 'key "judge" was renamed to "evaluation" in 0.2.0'),
    ({"at_once": 2}, 'key "at_once" was renamed to "parallel_runs" in 0.2.0'),
])
def test_invalid_ablation_file_is_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read(write(tmp_path / "a.yaml", **changes))


def test_results_of_another_file_version_are_refused(tmp_path: Path) -> None:
    Ablation(AblationConfig.model_validate(SMALL), tmp_path / "rates").open()
    other = AblationConfig.model_validate({**SMALL, "question": "reworded"})
    Ablation(other, tmp_path / "rates").open()
    with pytest.raises(ConfigError, match="another version"):
        Ablation(AblationConfig.model_validate({**SMALL, "minutes": 1}), tmp_path / "rates").open()


LOW = {"low": {"schedules.learning_rate.initial": 0}}


def stored(folder: Path, *trials: Trial) -> Ablation:
    """Return the ablation SMALL in a folder in which these trials have results."""
    ablation = Ablation(AblationConfig.model_validate(SMALL), folder)
    ablation.open()
    for trial in trials:
        place = folder / "runs" / trial.name / RESULT
        place.parent.mkdir(parents=True)
        place.write_text(json.dumps(result(*trial)))
    return ablation


@pytest.mark.parametrize("changes", [
    {"variants": {**SMALL["variants"], **LOW}},
    {"variants": {"base": {}, **LOW}},
    {"variants": {"base": {}, "high": {"schedules.learning_rate.initial": 2}}},
    {"seeds": [1, 2]}])
def test_ablation_gains_variants_and_seeds(tmp_path: Path, changes: dict[str, Any]) -> None:
    """A variant without results, such as one that fails, may also change or go."""
    stored(tmp_path, Trial("base", 1))
    extended = Ablation(AblationConfig.model_validate({**SMALL, **changes}), tmp_path)
    extended.open()
    assert extended.missing() == [trial for trial in extended.config.trials() if trial != Trial("base", 1)]
    # The trials' processes read it.
    assert read_description(extended.description)["config"] == extended.config.model_dump(mode="json")


@pytest.mark.parametrize(("changes", "told"), [
    ({"variants": {"base": {}}}, r"variants\.high was {'schedules"),
    ({"variants": {"base": {}, "high": {}}}, r"variants\.high was {'schedules"),
    ({"variants": {"base": {"seed": 3}, "high": SMALL["variants"]["high"]}}, r"variants\.base was {}"),
    ({"variants": {"high": SMALL["variants"]["high"], "base": {}}}, "the baseline, was base"),
    ({"variants": {**SMALL["variants"], **LOW}, "minutes": 1}, r"minutes was 0\.4")])
def test_change_of_an_evaluated_variant_is_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    """The description keeps the values that the results belong to."""
    kept = stored(tmp_path, Trial("high", 1))
    changed = Ablation(AblationConfig.model_validate({**SMALL, **changes}), tmp_path)
    for refused in (changed.open, changed.check):
        with pytest.raises(ConfigError, match=f"another version of this file, in which .*{told}"):
            refused()
    assert read_description(kept.description)["config"] == kept.config.model_dump(mode="json")


def test_training_to_evaluate_fixes_its_variant(tmp_path: Path) -> None:
    kept = stored(tmp_path)
    (tmp_path / "runs/high-seed1").mkdir(parents=True)
    (tmp_path / "runs/high-seed1/finished").write_text("0.4")
    with pytest.raises(ConfigError, match=r"variants\.high was"):
        Ablation(AblationConfig.model_validate({**SMALL, "variants": {"base": {}}}), kept.folder).open()


def test_another_machine_or_release_is_refused(tmp_path: Path) -> None:
    ablation = stored(tmp_path, Trial("base", 1))
    about = read_description(ablation.description)
    ablation.description.write_text(json.dumps({**about, "machine": {**about["machine"], "cores": 512}}))
    with pytest.raises(ConfigError, match="was begun on 512 processors"):
        ablation.open()
    ablation.check()  # a report compares nothing new
    ablation.description.write_text(json.dumps({**about, "config": {**about["config"], "arms": {}}}))
    with pytest.raises(ConfigError, match="another release"):
        ablation.open()


def test_changed_preset_file_is_refused(tmp_path: Path) -> None:
    """Its remaining runs would train with other values than those that have results."""
    preset = tmp_path / "own.yaml"

    def ablation() -> Ablation:
        return Ablation(AblationConfig.model_validate({**SMALL, "preset": str(preset)}), tmp_path / "rates")

    preset.write_text("learning: {ppo_clip: 0.1}\n")
    ablation().open()
    preset.write_text("learning: {ppo_clip: 0.3}\n")
    with pytest.raises(ConfigError, match=r"learning\.ppo_clip of the preset .*own\.yaml was 0\.1, and now it is 0\.3"):
        ablation().open()
    ablation().check()  # a report trains nothing
    preset.write_text("learning: {ppo_clip: 0.1}\n")
    ablation().open()


def test_other_rules_of_the_game_are_refused(tmp_path: Path) -> None:
    ablation = stored(tmp_path, Trial("base", 1))
    about = read_description(ablation.description)
    ablation.description.write_text(json.dumps({**about, "rules": 1}))
    with pytest.raises(ConfigError, match=f"under revision 1 of the game's rules, and this is revision {REVISION}"):
        ablation.open()
    ablation.check()
    earlier = {key: value for key, value in about.items() if key not in ("rules", "preset")}
    ablation.description.write_text(json.dumps(earlier))
    ablation.open()  # of a release that did not store them


def test_report_changes_no_description(tmp_path: Path) -> None:
    file = write(tmp_path / "a.yaml", variants={**SMALL["variants"], **LOW})
    with pytest.raises(ConfigError, match="holds no ablation"):
        ablate(file, report_only=True, root=tmp_path)
    ablation = stored(tmp_path / "ablations/rates", Trial("base", 1))
    before = ablation.description.read_bytes()
    assert ablate(file, report_only=True, root=tmp_path) == 0
    assert ablation.description.read_bytes() == before


def test_one_process_at_a_time_runs_an_ablation(tmp_path: Path) -> None:
    folder = tmp_path / "ablations/rates"
    with FileLock(folder / "lock", "it", "wait"), pytest.raises(RunInUse, match="five ablate"):
        ablate(write(tmp_path / "a.yaml"), report_only=False, root=tmp_path)
    assert not (folder / "ablation.json").exists()


def test_evaluated_versions_are_evenly_spaced() -> None:
    rows = [{"version": v, "minutes": float(m)} for v, m in enumerate([1, 2, 3, 4, 5, 6, 7, 8, 20])]
    assert [r["version"] for r in evenly_spaced(rows, range(9), 4)] == [4, 7, 8]
    assert [r["version"] for r in evenly_spaced(rows, [0, 3, 7], 2)] == [3, 7]
    assert evenly_spaced(rows, [], 2) == []


def test_hero_steps_a_second_leave_out_the_first_version() -> None:
    """Its record has the hero-steps at its end, and its seconds include the start."""
    rows = [{"version": n, "seconds": seconds, "hero_steps": steps, "reuse": 1.0, "staleness_mean": 0.0, "entropy": 2.0}
            for n, seconds, steps in ((1, 30.0, 500), (2, 10.0, 1500), (3, 10.0, 2500))]
    assert summarize_training(rows)["hero_steps_per_second"] == pytest.approx(100.0)


def test_trial_with_a_result_is_not_run_again(tmp_path: Path) -> None:
    config = AblationConfig.model_validate(SMALL)
    ablation = Ablation(config, tmp_path)
    for trial in config.trials():
        folder = tmp_path / "runs" / trial.name
        folder.mkdir(parents=True)
        (folder / RESULT).write_text(json.dumps(result(trial.variant, trial.seed)))
    said: list[str] = []
    parallel.run(ablation, said.append)
    assert said == [] and set(collect(ablation).runs) == {"base", "high"}


def test_trial_that_another_process_trains_is_kept(tmp_path: Path) -> None:
    ablation = Ablation(AblationConfig.model_validate(SMALL), tmp_path)
    trial = ablation.missing()[0]
    with RunLock(tmp_path / "runs" / trial.name):
        with pytest.raises(TrialFailed, match=f"{trial.name}: another process trains it"):
            ablation.run_trial(trial, lambda text: None)
    assert (tmp_path / "runs" / trial.name).exists()


@pytest.fixture
def untrained_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an ablation whose trials do not train: each copies the current table and a prepared result.
    """
    place = tmp_path / "ablations" / "rates"
    for variant in ("base", "high"):
        (place / "runs" / f"{variant}-seed1").mkdir(parents=True)
        (tmp_path / f"{variant}-seed1.json").write_text(json.dumps(result(variant, 1)))
    Anchors({"random": Skill(0.0, 0.1)}, 0.25).save(place / "anchors.json")
    script = tmp_path / "instead-of-python"
    script.write_text(f"#!/bin/sh\nshift $(($# - 2))\ncp $1/table.md $1/page.html {tmp_path}\n"
                      f"cp {tmp_path}/$2.json $1/runs/$2/{RESULT}\n")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    return place


def test_report_is_written_after_each_trial(tmp_path: Path, untrained_trials: Path) -> None:
    assert ablate(write(tmp_path / "a.yaml"), report_only=False, root=tmp_path) == 0
    assert "1 of 2 runs" in (tmp_path / "table.md").read_text()  # when the second trial began
    assert "1 of 2 runs" in (tmp_path / "page.html").read_text()
    assert "2 of 2 runs" in (untrained_trials / "table.md").read_text()
    assert not list(untrained_trials.glob("*.partial"))


def test_failing_report_stops_no_trial(tmp_path: Path, untrained_trials: Path, monkeypatch: pytest.MonkeyPatch,
                                       capfd: pytest.CaptureFixture[str]) -> None:
    real = page.render
    seen: list[int] = []

    def failing(*arguments: Any) -> str:
        seen.append(1)
        if len(seen) == 1:
            raise OSError("the disk is full")
        return real(*arguments)

    monkeypatch.setattr(page, "render", failing)
    assert ablate(write(tmp_path / "a.yaml"), report_only=False, root=tmp_path) == 0
    assert "could not be written now: OSError: the disk is full" in capfd.readouterr().out
    assert "2 of 2 runs" in (untrained_trials / "page.html").read_text()


def test_report_needs_only_stored_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The results have no conditions and the anchors no games."""
    place = tmp_path / "ablations" / "rates"
    Ablation(AblationConfig.model_validate(SMALL), place).open()
    (place / "anchors.json").write_text('{"skills": {"random": [0.0, 0.001]}, "draw_probability": 0.02}')
    (place / "runs" / "base-seed1").mkdir(parents=True)
    kept = place / "runs" / "base-seed1" / RESULT
    kept.write_text(json.dumps(result("base", 1)))
    before = kept.read_bytes()
    assert ablate(write(tmp_path / "a.yaml"), report_only=True, root=tmp_path) == 0
    assert capsys.readouterr().out.startswith((place / "table.md").read_text()) and kept.read_bytes() == before
    assert "1 of 2 runs" in (place / "page.html").read_text()


@pytest.mark.slow
def test_two_variants_are_trained_and_compared(tmp_path: Path) -> None:
    """Real tiny trainings and matches of each variant, in parallel if the machine has the cores."""
    parallel_runs = min(2, len(os.sched_getaffinity(0)))
    assert ablate(write(tmp_path / "a.yaml", parallel_runs=parallel_runs), report_only=False, root=tmp_path) == 0
    place = tmp_path / "ablations" / "rates"
    for variant in ("base", "high"):
        found = json.loads((place / "runs" / f"{variant}-seed1" / RESULT).read_text())
        assert found["training"]["versions"] > 0 and found["evaluated"][-1]["version"] > 0
        assert sum(found["evaluated"][-1]["matches"]["scripted"][k] for k in ("won", "drawn", "lost")) == 2
        kept = Conditions(**found["conditions"])
        assert kept.processor_seconds > 1 and kept.wall_seconds > 60 * SMALL["minutes"] and kept.processors
    assert Anchors.read(place / "anchors.json").games  # type: ignore[union-attr]
    assert "| high | 1 |" in (place / "table.md").read_text()

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from five.ablation import parallel
from five.ablation.config import Trial
from five.ablation.parallel import TrialInterrupted
from five.ablation.runner import TrialFailed
from five.cli import sweep as command
from five.cli.sweep import sweep
from five.run.load import ConfigError
from five.sweep.config import SweepConfig, read
from five.sweep.search import MAX_FAILURES, Search, SweepFolder, ranked
from five.sweep.study import FILE, SweepStudy, Variant
from tests.repository import ROOT
from tests.sweep.judge import BATCH, RATE, SMALL, calls, judge, prepare, score, write


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a sweep whose runs are judged instead of trained."""
    monkeypatch.setattr(parallel, "run_process", judge)
    return prepare(tmp_path)


def search(place: Path, **changes: Any) -> list[Variant]:
    """Search and return the variants."""
    folder = SweepFolder(SweepConfig.model_validate({**SMALL, **changes}), place)
    folder.open()
    Search(folder, lambda text: None).run()
    return stored(folder)


def stored(folder: SweepFolder) -> list[Variant]:
    study = SweepStudy.read(folder.config, folder.folder)
    assert study is not None
    return study.variants()


def test_missing_optuna_is_refused_with_what_installs_it() -> None:
    program = "import sys; sys.modules['optuna'] = None; import five.cli.sweep"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60,
                          check=False, env={"PYTHONPATH": "libs:."})
    assert done.returncode == 1 and done.stderr.rstrip().endswith(
        "Optuna is not installed: in the checkout run make setup or pip install -e '.[sweep]'")


def test_search_begins_with_the_own_values_of_the_preset(place: Path) -> None:
    config = SweepConfig.model_validate({**SMALL, "max_variants": 1})
    assert search(place, max_variants=1)[0].overrides != config.default_values()  # the choices leave batch 48 out
    choices = {RATE: SMALL["search"][RATE], BATCH: {"choices": [16, 48]}}
    (other := place.parent / "other").mkdir()
    (place / "anchors.json").rename(other / "anchors.json")
    first = search(other, max_variants=1, search=choices)[0]
    assert first.overrides == {RATE: 1e-3, BATCH: 48} and first.state == "complete"


def test_own_values_of_the_preset_are_confirmed_once(place: Path) -> None:
    changes: dict[str, Any] = {"search": {RATE: SMALL["search"][RATE], BATCH: {"choices": [16, 48]}}}
    variants = search(place, max_variants=3, pruner={"kind": "none"}, **changes)
    folder = SweepFolder(SweepConfig.model_validate({**SMALL, **changes}), place)
    assert variants[0].overrides == folder.config.default_values()
    confirmation = folder.confirmation(variants)
    assert confirmation is not None
    assert sorted(confirmation.config.variants) == ["default", "v1", "v2"]
    assert folder.confirmation(variants[:1]) is None


def test_without_pruner_all_seeds_of_all_variants_run(place: Path) -> None:
    variants = search(place, pruner={"kind": "none"}, max_variants=3)
    assert [variant.state for variant in variants] == ["complete"] * 3
    assert calls(place) == [f"v{n}-seed{seed}:{stage}" for n in range(3)
                            for seed, stage in ((1, 1), (1, 2), (1, 3), (1, 4), (2, 4))]
    for variant in variants:
        means = [score(variant.overrides, 1, stage) for stage in (1, 2, 3, 4)]
        last = (means[-1] + score(variant.overrides, 2, 4)) / 2
        assert list(variant.values.values()) == pytest.approx([*means, last])


def test_clock_is_the_reserved_processor_time(place: Path) -> None:
    """A run of four minutes has four points, so that each reserves a minute of its processors."""
    cores = len(os.sched_getaffinity(0))
    (variant,) = search(place, pruner={"kind": "none"}, max_variants=1)
    assert list(variant.values) == [60 * cores * points for points in (1, 2, 3, 4, 8)]


def test_asha_continues_the_better_half(place: Path) -> None:
    """At the first, second, fourth and eighth point a variant goes on if it is among the best half so far."""
    variants = search(place)
    unit = min(variants[0].values)
    rungs: dict[int, list[float]] = {}
    for variant in variants:
        for rung in (unit, 2 * unit, 4 * unit):
            if rung not in variant.values:
                break
            value = variant.values[rung]
            rungs.setdefault(rung, []).append(value)
            kept = sorted(rungs[rung], reverse=True)[:max(len(rungs[rung]) // 2, 1)]
            assert (max(variant.values) > rung) == (value in kept)
    assert {variant.state for variant in variants} == {"complete", "pruned"}


def test_later_seeds_run_only_for_promising_variants(place: Path) -> None:
    variants = search(place)
    second = {call.partition("-")[0] for call in calls(place) if call.endswith("-seed2:4")}
    assert second == {variant.name for variant in variants if variant.state == "complete"}
    assert 0 < len(second) < len(variants) == 12


def test_median_pruner_stops_below_the_median(place: Path) -> None:
    variants = search(place, pruner={"kind": "median", "complete_variants": 2}, seeds=[1], max_variants=8)
    complete: list[Variant] = []
    for variant in variants:
        if len(complete) >= 2:
            first = min(variant.values)
            others = sorted(other.values[first] for other in complete)
            median = (others[(len(others) - 1) // 2] + others[len(others) // 2]) / 2
            assert (len(variant.values) > 1) == (variant.values[first] >= median)
        if variant.state == "complete":
            complete.append(variant)
    assert any(variant.state == "pruned" for variant in variants)


@pytest.mark.parametrize("kind", ["random", "tpe", "gp"])
def test_search_depends_only_on_the_seed_of_the_sampler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                        kind: str) -> None:
    if kind == "gp":
        pytest.importorskip("scipy", reason="optional extra sweep")
    monkeypatch.setattr(parallel, "run_process", judge)

    def overrides(name: str, seed: int) -> list[dict[str, Any]]:
        return [variant.overrides for variant in search(
            prepare(tmp_path, name), name=name, max_variants=7, seeds=[1], sampler={
                "kind": kind, "seed": seed, "random_variants": 4}, pruner={"kind": "none"})]

    first = overrides("a", 3)
    assert first == overrides("b", 3) and len({row[RATE] for row in first[:4]}) == 4
    assert first != overrides("c", 4)


def test_sampler_finds_better_variants_than_chance(place: Path) -> None:
    variants = search(place, max_variants=40, pruner={"kind": "none"}, seeds=[1],
                      sampler={"random_variants": 10, "seed": 1})
    means = [sum(variant.value or 0.0 for variant in part) / len(part) for part in (variants[:10], variants[-10:])]
    assert means[1] > 1.5 * means[0]


def test_core_hours_end_the_search(place: Path) -> None:
    """A variant of two runs with four stages costs 0.08 core-hours."""
    assert len(search(place, max_variants=None, core_hours=0.2, pruner={"kind": "none"})) == 3


def test_failed_variant_is_stored_and_the_search_goes_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(folder: Path, trial: Trial, say: Callable[[str], None], stage: int | None = None) -> None:
        if trial.variant == "v1":
            raise TrialFailed("the loss is not finite")
        judge(folder, trial, say, stage)

    monkeypatch.setattr(parallel, "run_process", failing)
    variants = search(place, max_variants=3)
    assert [variant.state for variant in variants][:2] == ["complete", "failed"]
    assert variants[1].failure == "the loss is not finite" and variants[2].state != "failed"


def test_sampled_combination_that_is_refused_is_stored(place: Path) -> None:
    """Alone both values are valid; together the buffer is too small for its batch."""
    variants = search(place, max_variants=4, search={
        "learning.batch_samples": {"choices": [8, 400]}, "buffer.capacity_samples": {"choices": [512, 4096]}})
    assert {tuple(variant.overrides.values()) for variant in variants if variant.state == "failed"} <= {(400, 512)}


def test_failures_in_a_row_end_the_sweep(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*arguments: Any) -> None:
        raise TrialFailed("no space left")

    monkeypatch.setattr(parallel, "run_process", failing)
    with pytest.raises(TrialFailed, match=f"{MAX_FAILURES} variants in a row have failed; .*no space left"):
        search(place)


def test_end_of_the_sweep_starts_no_further_run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two parallel runs is interrupted; the other ends, and the next run of its variant does not start."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, share: None)
    folder = SweepFolder(SweepConfig.model_validate({**SMALL, "parallel_runs": 2, "pruner": {"kind": "none"}}), place)
    folder.open()
    searching, both = Search(folder, lambda text: None), threading.Barrier(2)

    def run(folder: Path, trial: Trial, say: Callable[[str], None], stage: int | None = None) -> None:
        both.wait(30)
        if trial.variant == "v0":
            raise TrialInterrupted("v0-seed1 ended with status -2")
        assert searching._stopped.wait(30)
        judge(folder, trial, say, stage)

    monkeypatch.setattr(parallel, "run_process", run)
    with pytest.raises(TrialInterrupted):
        searching.run()
    assert calls(place) == ["v1-seed1:1"] and {variant.state for variant in stored(folder)} == {"running"}


def test_interrupted_run_is_continued(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(folder: Path, trial: Trial, say: Callable[[str], None], stage: int | None = None) -> None:
        raise TrialInterrupted("v0-seed1 ended with status -2")

    monkeypatch.setattr(parallel, "run_process", interrupted)
    with pytest.raises(TrialInterrupted):
        search(place)
    folder = SweepFolder(SweepConfig.model_validate(SMALL), place)
    (first,) = stored(folder)
    assert first.state == "running"
    monkeypatch.setattr(parallel, "run_process", judge)
    again = search(place, max_variants=2)
    assert again[0].overrides == first.overrides and again[0].state == "complete" and len(again) == 2


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the root of a sweep that was not killed, with its file."""
    root = tmp_path_factory.mktemp("whole")
    prepare(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "run_process", judge)
        patch.setattr(command, "write_partial", lambda folder: None)
        file = write(root / "s.yaml", max_variants=5, sampler={"random_variants": 50})
        assert sweep(file, report_only=False, settings=False, root=root) == 0
    return root


@pytest.mark.runs
@pytest.mark.parametrize("kill_at", ["v0-seed1:3", "v3-seed1:1", "default-seed8:None"])
def test_killed_sweep_continues(whole: Path, tmp_path: Path, place: Path, kill_at: str) -> None:
    """The process kills itself before a stage or a run of the confirmation. Both halves together make the calls of a
    sweep that was not killed, and that of the stage twice."""
    file, expected = whole / "s.yaml", calls(whole / "sweeps/rates")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    killed = subprocess.run([sys.executable, "-m", "tests.sweep.judge", file, tmp_path, kill_at], cwd=ROOT,
                            capture_output=True, env=environment)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with (place / FILE).open("ab") as journal:
        journal.write(b'{"op_code": 4, "wor')  # an incomplete line
    (place / f"{FILE}.lock").symlink_to(place / FILE)
    assert sweep(file, report_only=False, settings=False, root=tmp_path) == 0
    index = expected.index(kill_at)
    assert calls(place) == [*expected[:index + 1], *expected[index:]]
    config = read(file)
    assert stored(SweepFolder(config, place)) == stored(SweepFolder(config, whole / "sweeps/rates"))


def test_journal_is_json_lines(place: Path) -> None:
    search(place, max_variants=2)
    lines = (place / FILE).read_text().splitlines()
    assert len(lines) > 10 and all(isinstance(json.loads(line), dict) for line in lines)


def test_nothing_is_unpickled(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pickle

    def refused(*arguments: Any) -> None:
        raise AssertionError("unpickled")

    monkeypatch.setattr(pickle, "loads", refused)
    monkeypatch.setattr(pickle, "load", refused)
    search(place, max_variants=2)
    assert len(search(place, max_variants=4)) == 4


def test_other_file_and_other_processors_are_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search(place, max_variants=1)
    with pytest.raises(ConfigError, match="another version of this file"):
        search(place, minutes=5)
    with monkeypatch.context() as patched:
        patched.setattr("five.benchmarks.results.processor", lambda: "another kind")
        with pytest.raises(ConfigError, match="and here are .* of another kind: continue it there"):
            search(place, max_variants=2)
    there = os.sched_getaffinity(0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(3 * len(there))))
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, share: None)
    with pytest.raises(ConfigError, match=rf"began with {len(there)} processors a run, now {3 * len(there)}"):
        search(place, max_variants=2)


def test_parallel_runs_search_different_variants(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3})
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, share: None)
    variants = search(place, parallel_runs=4, pruner={"kind": "none"})
    assert [variant.state for variant in variants] == ["complete"] * 12
    assert len(set(calls(place))) == len(calls(place)) == 60


def test_variants_are_ranked_by_training_then_objective() -> None:
    def variant(number: int, state: Any, values: dict[int, float]) -> Variant:
        return Variant(number, state, {}, values)

    variants = [variant(0, "pruned", {1: 0.9}), variant(1, "complete", {1: 0.1, 2: 0.4}),
                variant(2, "running", {1: 0.1, 2: 0.9}), variant(3, "failed", {1: 0.9}), variant(4, "failed", {}),
                variant(5, "complete", {1: 0.1, 2: 0.5}), variant(6, "pruned", {1: 0.95})]
    assert [found.name for found in ranked(variants)] == ["v5", "v1", "v6", "v0"]


def test_sweep_in_use_is_refused(tmp_path: Path, place: Path) -> None:
    from five.local.run_lock import FileLock, RunInUse

    with FileLock(place / "lock", "x", "y"), pytest.raises(RunInUse, match="until that `five sweep` has ended"):
        sweep(write(tmp_path / "s.yaml"), report_only=False, settings=False, root=tmp_path)

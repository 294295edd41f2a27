import json
from pathlib import Path
from typing import Any

import pytest

from five.ablation import parallel
from five.cli import sweep as command
from five.cli.sweep import sweep
from five.run.load import ConfigError
from five.sweep import report
from five.sweep.config import SweepConfig
from five.sweep.results import CurvePoint, SweepResults, collect
from five.sweep.search import Search, SweepFolder
from five.sweep.study import SweepStudy
from tests.sweep.judge import BATCH, CORE_HOURS, RATE, SMALL, calls, judge, prepare, score, write


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the root of a finished sweep with its file; its runs were judged."""
    root = tmp_path_factory.mktemp("sweep")
    prepare(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "run_process", judge)
        assert sweep(write(root / "s.yaml"), report_only=False, settings=False, root=root) == 0
    return root


@pytest.fixture(scope="module")
def results(root: Path) -> SweepResults:
    return collected(root)


def collected(root: Path, **changes: Any) -> SweepResults:
    folder = SweepFolder(SweepConfig.model_validate({**SMALL, **changes}), root / "sweeps/rates")
    return collect(folder, SweepStudy.read(folder.config, folder.folder))


def test_searched_figures_are_those_of_the_runs(results: SweepResults) -> None:
    assert list(results.searched) == [f"v{n}" for n in range(12)]
    for found in results.searched.values():
        overrides, stages = found.variant.overrides, len(found.curves[0])
        assert [p.minutes for p in found.curves[0]] == list(range(1, stages + 1))
        assert [p.objective.value for p in found.curves[0]] == [score(overrides, 1, n) for n in range(1, stages + 1)]
        assert [p.core_hours for p in found.curves[0]] == pytest.approx([CORE_HOURS * n for n in range(1, stages + 1)])
        assert found.core_hours == pytest.approx(CORE_HOURS * sum(map(len, found.curves)))
        ends = [score(overrides, seed, len(curve)) for seed, curve in zip((1, 2), found.curves, strict=False)]
        assert found.objective is not None and found.objective.value == pytest.approx(sum(ends) / len(ends))
        # One seed: the interval of its games, 0.02 on each side. Two seeds differ by 0.01.
        assert found.objective.half == pytest.approx(0.02 if len(ends) == 1 else 12.706 * 0.005)


def test_best_variants_are_confirmed_with_new_seeds(root: Path, results: SweepResults) -> None:
    assert list(results.confirmed) == ["default", *results.best[:2]] and results.missing == 0
    for name, estimate in results.confirmed.items():
        overrides = {} if name == "default" else results.searched[name].variant.overrides
        assert estimate.value == pytest.approx(score(overrides, 0, 4) + 0.085) and estimate.seeds == 2
    confirmed = [call for call in calls(root / "sweeps/rates") if call.endswith("None")]
    assert confirmed == [f"{name}-seed{seed}:None" for seed in (8, 9) for name in results.confirmed]


def test_best_table_has_searched_beside_confirmed(root: Path, results: SweepResults) -> None:
    config = SweepConfig.model_validate(SMALL)
    table = report.best(config, results)
    assert table.head == ["variant", "state", "searched score against scripted", "confirmed", RATE, BATCH]
    first, last = table.rows[0], table.rows[-1]
    name = results.best[0]
    assert first[:4] == [name, "complete", str(results.searched[name].objective), str(results.confirmed[name])]
    assert last == ["default", "", "-", str(results.confirmed["default"]), "0.001", "48"]
    assert first[5] == str(results.searched[name].variant.overrides[BATCH])


def test_table_says_when_variants_were_pruned(results: SweepResults) -> None:
    config = SweepConfig.model_validate(SMALL)
    rows = {row[0]: row for row in report.all_variants(config, results).rows}
    pruned = [found for found in results.searched.values() if found.variant.state == "pruned"]
    assert pruned and len(rows) == 12
    for found in pruned:
        seed, minutes = len(found.curves), len(found.curves[-1])
        assert rows[found.variant.name][1].startswith(f"pruned after {minutes} min of seed {seed}, ")
        assert found.reserved == pytest.approx(max(found.variant.values) / 3600)


def test_front_has_the_best_version_for_each_price(results: SweepResults) -> None:
    points: list[CurvePoint] = [point for found in results.searched.values() for point in found.curves[0]]
    expected = {}
    for hours in sorted({point.core_hours for point in points}):
        best = max(point.objective.value for point in points if point.core_hours <= hours)
        if not expected or best > max(expected.values()):
            expected[hours] = best
    assert {point.core_hours: point.objective.value for _, point in results.front()} == expected
    assert len(expected) == 4


def test_importance_finds_the_key_that_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The score rises with the rate; the other key does nothing."""
    monkeypatch.setattr(parallel, "run_process", judge)
    changes: dict[str, Any] = {
        "max_variants": 30, "sampler": {"kind": "random"}, "pruner": {"kind": "none"}, "seeds": [1],
        "search": {"learning.gae_lambda": {"low": 0.9, "high": 0.99},
                   RATE: {"low": 1e-4, "high": 1e-2}}}
    folder = SweepFolder(SweepConfig.model_validate({**SMALL, **changes}), prepare(tmp_path))
    Search(folder, lambda text: None).run()
    table = report.key_importance(folder.config, collected(tmp_path, **changes))
    assert table.head == ["key", *(f"{minutes} min (30 variants)" for minutes in (1, 2, 3, 4))]
    assert [row[0] for row in table.rows] == [RATE, "learning.gae_lambda"]
    assert int(table.rows[0][-1].removesuffix(" %")) > 70


def test_page_has_every_table_and_a_curve_of_each_variant(root: Path, results: SweepResults) -> None:
    table, page = ((root / "sweeps/rates" / name).read_text() for name in ("table.md", "page.html"))
    for title in ("Best variants", "Importance of keys", "Objective against core-hours", "All variants",
                  "Confirmation: After 4 minutes"):  # the last one is a table of the ablation
        assert f"## {title}\n" in table and f"<h2>{title}</h2>" in page
    assert all(f"| {name} |" in table for name in [*results.searched, "default"])
    (plot,) = report.plots(SweepConfig.model_validate(SMALL), results)
    assert sorted(line.label for line in plot.lines) == sorted(results.searched)
    assert [line.label for line in plot.lines if not line.muted] == list(results.best[:report.COLOURED])


def test_report_changes_no_result(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = root / "sweeps/rates"
    (place / "table.md").unlink()
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name != "page.html"}
    assert sweep(root / "s.yaml", report_only=True, settings=False, root=root) == 0
    assert capsys.readouterr().out.startswith((place / "table.md").read_text())
    assert {path: path.read_bytes() for path in before} == before


def test_report_needs_no_equal_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "run_process", judge)
    description, file = prepare(tmp_path) / "sweep.json", write(tmp_path / "s.yaml", max_variants=1)
    assert sweep(file, report_only=False, settings=False, root=tmp_path) == 0
    description.write_text(json.dumps({**json.loads(description.read_text()), "rules": 1}))
    assert sweep(file, report_only=True, settings=False, root=tmp_path) == 0
    with pytest.raises(ConfigError, match="under revision 1 of the game's rules"):
        sweep(file, report_only=False, settings=False, root=tmp_path)


def test_report_of_a_sweep_without_variants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep(write(tmp_path / "s.yaml"), report_only=True, settings=False, root=tmp_path) == 0
    assert "0 variants" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="no variant is evaluated yet"):
        sweep(tmp_path / "s.yaml", report_only=False, settings=True, root=tmp_path)


def test_winner_is_printed_as_settings(root: Path, results: SweepResults, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep(root / "s.yaml", report_only=False, settings=True, root=root) == 0
    overrides = results.searched[str(results.winner)].variant.overrides
    printed = [line.removeprefix("--set ").split("=") for line in capsys.readouterr().out.splitlines()]
    assert {key: float(value) for key, value in printed} == overrides
    assert results.winner == max(results.confirmed, key=lambda name: results.confirmed[name].value)


def test_winner_may_be_the_preset(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
                                  ) -> None:
    """A variant that is best in the search may be worse than the preset with other seeds."""
    found = collected(root)
    better = {**found.confirmed, "default": max(found.confirmed.values(), key=lambda estimate: estimate.value)}
    better = {name: estimate for name, estimate in better.items() if name != found.winner}
    monkeypatch.setattr(command, "collect", lambda *_: SweepResults(found.searched, found.best, better, 0))
    assert sweep(root / "s.yaml", report_only=False, settings=True, root=root) == 0
    out = capsys.readouterr()
    assert out.out == "" and "no variant is better than the preset" in out.err


def test_failing_report_stops_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(parallel, "run_process", judge)
    prepare(tmp_path)
    real, seen = report.render, []

    def failing(*arguments: Any) -> str:
        seen.append(1)
        if len(seen) == 1:
            raise OSError("the disk is full")
        return real(*arguments)

    monkeypatch.setattr(report, "render", failing)
    assert sweep(write(tmp_path / "s.yaml", max_variants=2), report_only=False, settings=False, root=tmp_path) == 0
    assert "could not be written now: OSError: the disk is full" in capsys.readouterr().out
    assert len(collected(tmp_path, max_variants=2).searched) == 2

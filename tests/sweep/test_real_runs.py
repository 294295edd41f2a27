import json
from pathlib import Path

import pytest
import yaml

from five.ablation.conditions import Conditions
from five.cli.sweep import sweep
from five.sweep.config import read
from five.sweep.results import collect
from five.sweep.search import SweepFolder
from five.sweep.study import SweepStudy
from tests.e2e.running import TINY
from tests.sweep.judge import RATE, write


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_variants_are_trained_in_stages(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Real tiny trainings, paused and evaluated at two points."""
    file = write(tmp_path / "s.yaml", minutes=0.8, seeds=[1], max_variants=2, pruner={"kind": "none"},
                 objective="trueskill", confirmation={"best": 0},
                 search={RATE: {"low": 1e-4, "high": 1e-2, "log": True}},
                 set={key: yaml.safe_load(value) for key, value in (text.split("=") for text in TINY)},
                 evaluation={"points": 2, "pairs": 1, "final_pairs": 2, "against": ["random", "scripted"],
                             "anchor_pairs": 2})
    assert sweep(file, report_only=False, settings=False, root=tmp_path) == 0
    folder = SweepFolder(read(file), tmp_path / "sweeps/rates")
    results = collect(folder, SweepStudy.read(folder.config, folder.folder))
    assert [found.variant.state for found in results.searched.values()] == ["complete"] * 2
    for name, found in results.searched.items():
        run = json.loads((folder.folder / "runs" / f"{name}-seed1/result.json").read_text())
        first, last = run["evaluated"]
        assert 0 < first["version"] < last["version"] and (first["minutes"], last["minutes"]) == (0.4, 0.8)
        assert sum(last["matches"]["scripted"][key] for key in ("won", "drawn", "lost")) == 4
        assert 0 < first["core_hours"] < last["core_hours"] == Conditions(**run["conditions"]).core_hours
        assert found.objective is not None and found.objective.value == last["mu"]
        settings = yaml.safe_load((folder.folder / "runs" / f"{name}-seed1/config.yaml").read_text())
        assert settings["schedules"]["learning_rate"]["initial"] == found.variant.overrides[RATE]
    capfd.readouterr()
    assert sweep(file, report_only=False, settings=True, root=tmp_path) == 0
    assert capfd.readouterr().out.startswith(f"--set {RATE}=")

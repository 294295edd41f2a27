"""Modules under mutation testing and the names that select them."""

from pathlib import Path

import pytest

from tools.mutations.modules import ModulesError, load_selection

ROOT = Path(__file__).resolve().parents[3]


def test_module_names_select_files_with_their_own_tests() -> None:
    targets = {target.source: target for target in load_selection(ROOT, ["learning", "optimizer"]).targets}
    assert targets["libs/five/agent/learning/ppo.py"].own_test == "tests/agent/test_ppo.py"
    assert targets["services/optimizer/intake.py"].own_test == "tests/services/test_optimizer_intake.py"
    assert "libs/five/agent/learning/cuda_graphs.py" not in targets, "excluded"
    assert not [source for source in targets if source.endswith(("__init__.py", "__main__.py"))]
    assert {target.module for target in targets.values()} == {"learning", "optimizer"}


def test_files_and_folders_are_selected_too() -> None:
    (target,) = load_selection(ROOT, ["libs/five/agent/league.py"]).targets
    assert target.module == "league" and target.own_test == "tests/agent/test_league.py"
    folder = load_selection(ROOT, ["libs/five/agent/anneal/"]).targets
    assert {target.module for target in folder} == {"anneal"} and len(folder) > 3


def test_every_module_has_existing_files_and_tests() -> None:
    selection = load_selection(ROOT, [])
    assert len({target.module for target in selection.targets}) >= 10
    assert all((ROOT / target.source).is_file() and target.tests for target in selection.targets)
    assert "torch" in selection.preload and "pytest_timeout" in selection.plugins


def test_unknown_module_is_rejected_with_the_allowed_ones() -> None:
    with pytest.raises(ModulesError, match="module 'learned': only learning, league"):
        load_selection(ROOT, ["learned"])


def test_missing_file_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "modules.toml"
    file.write_text('[modules.a]\nfiles = ["gone.py"]\ntests = ["*.py"]\n')
    with pytest.raises(ModulesError, match=r"gone\.py does not exist"):
        load_selection(tmp_path, [], file)

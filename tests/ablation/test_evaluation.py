"""The game in which variants of an ablation are evaluated, and runs that cannot be."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from five.ablation.config import AblationConfig
from five.ablation.evaluation import Anchors, evaluate_run, evaluated_game
from five.local.run_folder import RunFolder
from five.run.load import load

BASELINE = load("laptop-1v1").game


def test_a_policy_keeps_its_interface_in_the_baselines_game() -> None:
    interface = {"frameskip": 4, "commit_windups": False, "commit_moves": 2, "save_consumables": False,
                 "hide_unseen": True, "aggro_orders": True, "offset_cell": 200.0}
    assert all(getattr(BASELINE, key) != value for key, value in interface.items())
    own = BASELINE.model_copy(update={**interface, "max_game_seconds": 60.0, "kills_to_win": 9})
    assert evaluated_game(BASELINE, own) == BASELINE.model_copy(update=interface)


def test_a_policy_with_another_layout_is_evaluated_in_its_own_game() -> None:
    own = load("laptop-5v5").game
    assert evaluated_game(BASELINE, own) == own


def test_run_without_archived_versions_says_what_to_set(tmp_path: Path) -> None:
    archive: Any = SimpleNamespace(folder=RunFolder(tmp_path), config=load("laptop-1v1"), numbers=list)
    config = AblationConfig.model_validate({"name": "short", "variants": {"base": {}}})
    records = [{"version": 1, "minutes": 0.5, "hero_steps": 1.0}]
    with pytest.raises(ValueError, match=r"none of the run's 1 versions is archived, .* store\.archive_every \(10\)"):
        evaluate_run(archive, records, config, Anchors({}, 0.1))

"""Runs whose versions cannot be evaluated."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from five.ablation.config import AblationConfig
from five.ablation.evaluation import Anchors, evaluate_run
from five.local.run_folder import RunFolder
from five.run.load import load


def test_run_without_archived_versions_says_what_to_set(tmp_path: Path) -> None:
    archive: Any = SimpleNamespace(folder=RunFolder(tmp_path), config=load("laptop-1v1"), numbers=list)
    config = AblationConfig.model_validate({"name": "short", "variants": {"base": {}}})
    records = [{"version": 1, "minutes": 0.5, "hero_steps": 1.0}]
    with pytest.raises(ValueError, match=r"none of the run's 1 versions is archived, .* store\.archive_every \(10\)"):
        evaluate_run(archive, records, config, Anchors({}, 0.1))

"""docs/adding-a-hero.md: the step-by-step section, run in a copy of the game."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import ROOT, answers_imports

SECTION = (ROOT / "docs/adding-a-hero.md").read_text().partition("## From data")[0]
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", SECTION, re.M | re.S)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "libs/dota", tmp_path / "libs/dota", ignore=shutil.ignore_patterns("core", "__pycache__"))
    answers_imports(tmp_path / "libs")
    return tmp_path


def test_page_steps_run(copy: Path) -> None:
    assert [kind for kind, _ in BLOCKS] == ["json", "python", "", "python"]
    environment = {"PYTHONPATH": str(copy / "libs"), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    (copy / "ability.json").write_text(BLOCKS[0][1])
    before = json.loads((copy / "libs/dota/data/ids.json").read_text())["names"]

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    run(sys.executable, "-c", BLOCKS[1][1], "ability.json")
    assert "example" in run("bash", "-euc", BLOCKS[2][1])
    after = json.loads((copy / "libs/dota/data/ids.json").read_text())["names"]
    for space, names in before.items():
        assert after[space][:len(names)] == names, "ids that were there have moved"
    assert any(entry.startswith("example_nova ") for entry in after["action"][len(before["action"]):])
    played = run(sys.executable, "-c", BLOCKS[3][1])
    assert "missing" not in played.partition("damage to heroes")[0].replace("'missing': []", "")
    assert any(float(x) > 0 for x in re.findall(r"\d+\.?\d*", played.rpartition("heroes:")[2])), played

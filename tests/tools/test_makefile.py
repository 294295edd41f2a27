"""The Makefile's refusals before it installs anything."""

import shutil
import subprocess
from pathlib import Path

from tests.repository import ROOT


def test_a_path_with_a_space_is_refused_with_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "my projects"
    (folder / "tools/locks").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "tools/locks/setup.txt"):
        shutil.copy(ROOT / name, folder / name)
    done = subprocess.run(["make", "setup"], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "my projects has a space, which builds cannot handle: move this folder" in done.stdout + done.stderr
    assert not (folder / ".venv").exists()

"""docs/adding-an-observation.md: its changes apply to the tree and, once built, do what the page says (slow)."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import ROOT, answers_imports

PAGE = (ROOT / "docs/adding-an-observation.md").read_text()
PATCH = "".join(re.findall(r"^```diff\n(.*?)^```", PAGE, re.M | re.S))
(TEST,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)


def apply(tree: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Apply the page's changes to a copy. git apply accepts no fuzz and so detects that the code around has changed."""
    return subprocess.run(["git", "apply", "--unsafe-paths", f"--directory={tree}", "-C1", *options],
                          input=PATCH, capture_output=True, text=True, cwd=tree)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("libs", "tests", "docs", "protos", "services", "configs", "CMakeLists.txt", "pyproject.toml"):
        source = ROOT / name
        leave = shutil.ignore_patterns("__pycache__", "*.so", "node_modules", "built")
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=leave)
        else:
            shutil.copy(source, tmp_path / name)
    answers_imports(tmp_path / "libs")
    return tmp_path


def test_page_adds_the_field_to_layout_and_model(copy: Path) -> None:
    done = apply(copy)
    assert done.returncode == 0, f"the page does not fit the code any more: {done.stderr}"
    code = ("from dota.config import GameConfig\nfrom dota.spaces import Layout\n"
            "from five.agent.model.field_coverage import unread_fields\nlayout = Layout(GameConfig())\n"
            "assert layout.blocks['heroes'].has('kills') and unread_fields(layout) == ()\n"
            "from dota.config import ObservationConfig\n"
            "old = Layout(GameConfig(observation=ObservationConfig(generation=1)))\n"
            "assert not old.blocks['heroes'].has('kills') and old.hash != layout.hash\nprint(old.hash)\n")
    said = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(copy / "libs")}, capture_output=True,
                          text=True)
    assert said.returncode == 0, said.stderr
    from dota.config import GameConfig
    from dota.spaces import Layout

    assert said.stdout.strip() == Layout(GameConfig()).hash, "a run that began before keeps its layout"


def test_page_changes_each_file_once() -> None:
    names = re.findall(r"^\+\+\+ b/(.*)$", PATCH, re.M)
    assert len(names) == len(set(names)) >= 8


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_page_builds_and_runs(copy: Path) -> None:
    assert apply(copy).returncode == 0
    (copy / "tests/dota/test_kills_seen.py").write_text(TEST)
    build = copy / "build"
    binaries = Path(sys.executable).parent
    for command in ([binaries / "cmake", "-S", copy, "-B", build, "-G", "Ninja",
                     f"-DCMAKE_MAKE_PROGRAM={binaries / 'ninja'}", f"-DPython_EXECUTABLE={sys.executable}"],
                    [binaries / "ninja", "-C", build, "-j2"]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    for module, package in (("_core", "libs/dota"), ("_native", "libs/five/native")):
        (library,) = build.glob(f"{module}*.so")
        shutil.copy(library, copy / package)
    tests = ["tests/dota/test_kills_seen.py", "tests/dota/test_spaces.py", "tests/dota/test_encoder.py",
             "tests/dota/test_vision.py", "tests/agent/surgery/test_ids.py"]
    done = subprocess.run([sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", *tests], cwd=copy,
                          env={"PYTHONPATH": f"{copy / 'libs'}:{copy}", "PATH": str(binaries)}, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout[-4000:]

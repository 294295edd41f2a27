"""Mutation tests of a small tree: which mutants its tests kill, and what the reports say."""

import os
import re
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="optional extra mutations")

from tools.mutations.__main__ import main

SOURCE = '''
import subprocess
import sys

LIMIT = 3


def is_allowed(count: int | None) -> bool:
    return count is None or count < LIMIT


def unused(count: int) -> int:
    return count + 1


def wait(done: bool) -> None:
    while not done:
        done = True


def spawned() -> str:
    code = "import sample.code as code; print(code.answer())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout


def answer() -> int:
    return 42
'''
OWN_TEST = '''
import pytest
from sample.code import is_allowed, wait


@pytest.mark.parametrize("count", [None, 0])
def test_allowed(count):
    assert is_allowed(count)


def test_wait():
    wait(False)
'''
OTHER_TEST = '''
from sample.code import is_allowed, spawned


def test_refused():
    assert not is_allowed(9)


def test_child_process():
    assert spawned() == "42\\n"
'''
MODULES = '''
[modules.small]
files = ["libs/sample/code.py", "libs/sample/sizes.py"]
tests = ["tests/*.py"]
'''
EQUIVALENT = '''
[[mutant]]
file = "libs/sample/code.py"
definition = "unused"
before = "return count + 1"
after = "return count - 1"
reason = "nobody reads it"
'''


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the report of all mutants of the small tree."""
    root = tmp_path_factory.mktemp("tree")
    files = {"libs/sample/__init__.py": "", "libs/sample/code.py": SOURCE, "tests/test_code.py": OWN_TEST,
             "tests/test_other.py": OTHER_TEST, "modules.toml": MODULES, "equivalent.toml": EQUIVALENT,
             "libs/sample/sizes.py": "WIDTH = 8\n",
             "tests/test_sizes.py": "from sample.sizes import WIDTH\n\n\ndef test_width():\n    assert WIDTH == 8\n",
             "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n"}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    out = root / "report"
    status = main(["small", "--sample", "0", "--workers", "2", "--timeout", "5", "--root", str(root), "--out", str(out),
                   "--config", str(root / "modules.toml"), "--equivalent", str(root / "equivalent.toml")])
    assert status == 0
    assert (root / "libs/sample/code.py").read_text() == SOURCE, "the tree itself is unchanged"
    return out


def verdict_of(report: Path, after: str) -> str:
    """Return the report's line of the mutant with that text."""
    lines = (report / "all.md").read_text().splitlines()
    found = [lines[i - 2] for i, line in enumerate(lines) if line == f"    + {after}"]
    assert len(found) == 1, lines
    return found[0]


def test_own_test_file_kills(report: Path) -> None:
    assert "killed, tests/test_code.py::test_allowed[None]" in verdict_of(
        report, "return count is not None or count < LIMIT")


def test_other_test_file_kills(report: Path) -> None:
    assert "killed, tests/test_other.py::test_refused" in verdict_of(report, "return count is None or count != LIMIT")


def test_border_that_no_test_reaches_survives(report: Path) -> None:
    assert "survived, 3 tests execute this line" in verdict_of(report, "return count is None or count <= LIMIT")


def test_code_that_no_test_executes_survives(report: Path) -> None:
    assert "survived, no test executes this line" in verdict_of(report, "return count + 2")


def test_own_test_judges_a_file_that_only_runs_on_import(report: Path) -> None:
    assert "killed, tests/test_sizes.py::test_width" in verdict_of(report, "WIDTH = 9")


def test_endless_loop_times_out(report: Path) -> None:
    assert re.search(r"timeout, no result in \d+ s", verdict_of(report, "done = False"))


def test_child_processes_run_the_mutant(report: Path) -> None:
    assert "killed, tests/test_other.py::test_child_process" in verdict_of(report, "return 43")


def test_recorded_mutant_is_equivalent(report: Path) -> None:
    assert "equivalent, nobody reads it" in verdict_of(report, "return count - 1")
    assert "nobody reads it" in (report / "survivors.md").read_text()


def test_annotations_are_no_mutants(report: Path) -> None:
    assert "int & None" not in (report / "all.md").read_text()


def test_scores_have_an_interval(report: Path) -> None:
    table = (report / "scores.md").read_text()
    assert "| libs/sample/code.py |" in table and " to " in table


def test_copies_are_removed(report: Path, tmp_path: Path) -> None:
    mine = [path for path in Path("/tmp").glob("mutations-*") if path.stat().st_uid == os.getuid()]
    assert not [path for path in mine if (path / "libs" / "sample").exists()]

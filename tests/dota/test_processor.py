"""Selection of the core: a newer CPU's where it is installed and supported, otherwise the portable one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dota
from dota import _core, processor
from dota.processor import LEVELS, core_folder, flags, level

V3 = "x86-64-v3"


def told(folder: Path, *names: str) -> Path:
    """Write a cpuinfo file of a CPU with these features."""
    file = folder / "cpuinfo"
    file.write_text(f"processor\t: 0\nmodel name\t: one\nflags\t\t: fpu {' '.join(names)}\n\nprocessor\t: 1\n")
    return file


def test_flags_are_the_first_processors(tmp_path: Path) -> None:
    assert flags(told(tmp_path, "avx", "fma")) == {"fpu", "avx", "fma"}
    assert flags(tmp_path / "none") == frozenset()


@pytest.mark.parametrize("lacking", [None, *sorted(LEVELS[V3])])
def test_a_level_is_all_that_it_demands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str | None) -> None:
    package = tmp_path / "dota"
    (package / V3).mkdir(parents=True)
    here = told(tmp_path, *sorted(LEVELS[V3] - {lacking}))
    monkeypatch.setattr(processor, "flags", lambda: flags(here))
    monkeypatch.delenv("DOTA_PORTABLE_CORE", raising=False)
    assert level() == ("" if lacking else V3)
    assert core_folder(package) == (None if lacking else package / V3)
    monkeypatch.setenv("DOTA_PORTABLE_CORE", "1")
    assert core_folder(package) is None


def test_a_package_without_another_core_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "flags", lambda: LEVELS[V3])
    assert core_folder(tmp_path) is None


@pytest.mark.skipif(level() != V3, reason="this processor is older, or none of that kind")
def test_programs_import_the_newest_supported_core(tmp_path: Path) -> None:
    package = tmp_path / "dota"
    shutil.copytree(Path(dota.__file__).parent, package,
                    ignore=shutil.ignore_patterns("core", "*.so", "__pycache__", "data"))
    (package / V3).mkdir()
    name = Path(str(_core.__file__)).name
    for place in (package, package / V3):
        shutil.copy(str(_core.__file__), place / name)
    say = "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'ScikitBuild' not in type(f).__name__]; " \
          "from dota import _core; print(_core.__file__)"
    for portable, wanted in (("", package / V3 / name), ("1", package / name)):
        found = subprocess.run([sys.executable, "-c", say], capture_output=True, text=True, check=True, cwd=tmp_path,
                               env={**os.environ, "PYTHONPATH": str(tmp_path), "DOTA_PORTABLE_CORE": portable})
        assert Path(found.stdout.strip()) == wanted

"""The training workload of the profile-guided build: it plays to its end on the core of the given folder."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_workload_plays_on_the_given_core(tmp_path: Path) -> None:
    (tmp_path / "dota").symlink_to(ROOT / "libs" / "dota")
    command = [sys.executable, "-m", "tools.record_profile", str(tmp_path), "--scale", "0.001"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_package_is_imported_from_the_folder(tmp_path: Path) -> None:
    code = ("import sys; from tools.record_profile import take_from; take_from(sys.argv[1]);"
            " import dota; print(dota.__file__)")
    (tmp_path / "dota").mkdir()
    (tmp_path / "dota" / "__init__.py").write_text("")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == str(tmp_path / "dota" / "__init__.py"), done.stderr

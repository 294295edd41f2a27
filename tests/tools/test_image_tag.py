"""Tags of images name their content: a release's is the version, any other build has its own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.repository import ROOT

RELEASED = "0.2.0"


def git(folder: Path, *arguments: str) -> str:
    """Return the output of git in a repository that knows its author and no settings of this machine."""
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}).stdout


def image_tag(folder: Path, **environment: str) -> str:
    """Return the tag of images built from a checkout."""
    return subprocess.run([folder / "deploy/images/tag.sh"], check=True, capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], **environment}).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "five"
    (folder / "deploy/images").mkdir(parents=True)
    shutil.copy(ROOT / "deploy/images/tag.sh", folder / "deploy/images/tag.sh")
    (folder / "pyproject.toml").write_text(f'[project]\nversion = "{RELEASED}"\n')
    (folder / ".gitignore").write_text("build/\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def test_each_commit_and_change_has_its_own_image_tag(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "--short=12", "HEAD").strip()
    first = image_tag(checkout)
    assert first == f"{RELEASED}-dev.g{commit}"
    (checkout / "build").mkdir()
    (checkout / "build/x").write_text("ignored")
    assert image_tag(checkout) == first
    seen = {first}
    for name, text in (("pyproject.toml", f'version = "{RELEASED}"\n#\n'), ("new.py", "1"), ("new.py", "2")):
        (checkout / name).write_text(text)
        tag = image_tag(checkout)
        assert tag.startswith(f"{first}.t") and tag not in seen and image_tag(checkout) == tag
        seen.add(tag)
    assert git(checkout, "diff", "--cached") == ""  # the user's index is untouched
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "second")
    assert image_tag(checkout) not in seen


def test_only_the_released_commit_has_the_released_tag(checkout: Path) -> None:
    git(checkout, "tag", "-a", f"v{RELEASED}", "-m", "release")
    assert image_tag(checkout) == RELEASED
    (checkout / "new.py").write_text("1")
    assert image_tag(checkout).startswith(f"{RELEASED}-dev.g")
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "second")
    assert image_tag(checkout).startswith(f"{RELEASED}-dev.g")
    assert image_tag(checkout, VERSION="mine") == "mine"


def test_without_git_an_image_tag_must_be_given(checkout: Path) -> None:
    shutil.rmtree(checkout / ".git")
    done = subprocess.run([checkout / "deploy/images/tag.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "set VERSION" in done.stderr
    assert image_tag(checkout, VERSION="mine") == "mine"

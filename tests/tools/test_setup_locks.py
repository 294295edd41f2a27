"""Packages of `make setup` and of the Makefile's tools are pinned with hashes, and the pins match the requirements."""

import re

import pytest
from packaging.requirements import Requirement

from tests.repository import ROOT
from tools import setup_locks

PYPROJECT, BUILD = (ROOT / "pyproject.toml").read_text(), setup_locks.BUILD.read_text()
GROUPS = setup_locks.groups(PYPROJECT, BUILD)
PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)( ; [^\\\n]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})*)$", re.M)
# Environments of other trainers, whose newest versions are what the tests are about.
FREE = "$(PEERS)/"


def test_the_pins_match_the_requirements() -> None:
    assert {path.stem for path in setup_locks.LOCKS.iterdir()} == GROUPS.keys()
    for group, lines in GROUPS.items():
        text = (setup_locks.LOCKS / f"{group}.txt").read_text()
        assert f"{setup_locks.OF}{setup_locks.digest(lines)}\n" in text, f"{group}: run python -m tools.setup_locks"


@pytest.mark.parametrize("group", GROUPS)
def test_every_line_is_a_pin_with_hashes(group: str) -> None:
    text = (setup_locks.LOCKS / f"{group}.txt").read_text()
    assert not [line for line in PIN.sub("", text).splitlines() if line and not line.startswith("#")]
    for name, version, _, hashes in PIN.findall(text):
        assert bool(hashes) is (group != "torch"), name
        assert not name == "torch" and version


def test_every_requirement_is_pinned_within_its_bounds() -> None:
    for group, lines in GROUPS.items():
        text = "".join((setup_locks.LOCKS / f"{name}.txt").read_text() for name in {group, "setup"})
        found: dict[str, list[str]] = {}
        for name, version, _, _ in PIN.findall(text):
            found.setdefault(name, []).append(version)
        for asked in map(Requirement, lines):
            name = re.sub(r"[-_.]+", "-", asked.name).lower()
            if name != "torch" and group != "torch":
                assert all(asked.specifier.contains(version, prereleases=True) for version in found[name]), asked


def test_a_changed_requirement_is_found() -> None:
    changed = setup_locks.groups(PYPROJECT.replace('"pytest>=8"', '"pytest>=9"'), BUILD)
    assert setup_locks.digest(changed["setup"]) != setup_locks.digest(GROUPS["setup"])


@pytest.mark.parametrize("file", ["Makefile", "console/build.sh", ".ci/container-host.sh", ".ci/get-helm.py"])
def test_nothing_is_installed_at_a_version_of_the_day(file: str) -> None:
    text = (ROOT / file).read_text().replace("\\\n", " ")
    calls = [line for line in re.findall(r"^.*pip[\"', ]+(?:-m |install|download|\$\(LOCKED\)).*$", text, re.M)
             if FREE not in line and "pip wheel" not in line and not line.startswith("#")]
    assert calls
    for line in calls:
        pinned = ("--require-hashes", "$(LOCKED)", "-c tools/locks/torch.txt", "--no-deps --no-build-isolation -e .")
        assert any(option in line for option in pinned), line
    if file == "Makefile":
        assert "LOCKED = install -q --no-deps --require-hashes -r\n" in text

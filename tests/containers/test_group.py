"""docker-compose.yml with deploy/compose/group.yml: two optimizers learn as one group, and each may be killed."""

from typing import Any

import pytest
import yaml

from tests.containers.engine import ROOT, Project, eventually

pytestmark = [pytest.mark.containers, pytest.mark.timeout(3600)]
PROJECT = "five-test-group"
OVER = ("smoke.yml", "group.yml")
RUN = yaml.safe_load((ROOT / "deploy/compose/run.yaml").read_text())
# A project's containers are reached at PROJECT-SERVICE-NUMBER.
OPTIMIZERS = {"optimizers": 2, "max_optimizers": 2,
              "addresses": [f"{PROJECT}-optimizer-{number}:50051" for number in (1, 2)]}
CHANGES = {"services": {**RUN["services"], "optimizer": OPTIMIZERS}}


def optimizers(project: Project) -> list[dict[str, Any]]:
    """Return the live optimizers."""
    found = project.rest("GET", "services").raise_for_status().json()
    return [instance for instance in found if instance["kind"] == "optimizer"]


def check_equal(project: Project, above: int) -> None:
    """Wait until both optimizers have reported the same fingerprint of a version above this one. Heartbeats come at
    different times, so reports are collected."""
    seen: dict[int, dict[str, str]] = {}

    def equal() -> bool:
        for instance in optimizers(project):
            version, _, fingerprint = str(instance["stats"].get("compared", "")).partition(":")
            if version and int(version) > above:
                seen.setdefault(int(version), {})[instance["id"]] = fingerprint
        both = [set(reports.values()) for reports in seen.values() if len(reports) == 2]
        assert all(len(fingerprints) == 1 for fingerprints in both)
        return bool(both)

    eventually(equal, 420, "both optimizers have the same parameters")


def test_two_optimizers_train_together(project: Project) -> None:
    assert len(project.containers("optimizer")) == 2
    version = project.wait_version(max(project.version(), 0) + 3)
    check_equal(project, 0)
    received = [instance["stats"]["received"] for instance in optimizers(project)]
    assert len(received) == 2 and min(received) > 0, "each gets segments of its own"
    assert project.version() >= version


@pytest.mark.parametrize("index", [0, 1])
def test_group_goes_on_after_a_container_is_killed(project: Project, index: int) -> None:
    version = project.wait_version(0)
    project.kill("optimizer", index)
    project.wait_version(version + 3, 420)
    check_equal(project, version + 3)
    assert len(project.containers("optimizer")) == 2

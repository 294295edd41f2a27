"""docker-compose.yml with deploy/compose/group.yml: two optimizers learn as one group, and each may be killed."""

from typing import Any

import pytest
import yaml

from tests.containers.engine import ROOT, Project, eventually

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1200)]
PROJECT = "five-test-group"
OVER = ("smoke.yml", "group.yml")
RUN = yaml.safe_load((ROOT / "deploy/compose/run.yaml").read_text())
# A project's containers are reached at PROJECT-SERVICE-NUMBER.
OPTIMIZERS = {"optimizers": 2, "max_optimizers": 2,
              "addresses": [f"{PROJECT}-optimizer-{number}:50051" for number in (1, 2)]}
CHANGES = {"services": {**RUN["services"], "optimizer": OPTIMIZERS}}


def optimizers(project: Project) -> list[dict[str, Any]]:
    """Return the statistics of the live optimizers."""
    found = project.rest("GET", "services").raise_for_status().json()
    return [instance["stats"] for instance in found if instance["kind"] == "optimizer"]


def agreed(project: Project, version: int) -> bool:
    """Return whether both optimizers have compared their parameters, bit by bit, at the same version above this one."""
    compared = {str(stats.get("compared", "")) for stats in optimizers(project)}
    both = len(optimizers(project)) == 2 and len(compared) == 1
    return both and int(compared.pop().partition(":")[0] or -1) > version


def test_two_optimizers_train_together(project: Project) -> None:
    assert len(project.containers("optimizer")) == 2
    version = project.wait_version(max(project.version(), 0) + 3)
    eventually(lambda: agreed(project, 0), 60, "both optimizers compare their parameters")
    received = [stats["received"] for stats in optimizers(project)]
    assert len(received) == 2 and min(received) > 0, "each gets segments of its own"
    assert project.version() >= version


@pytest.mark.parametrize("index", [0, 1])
def test_group_goes_on_after_a_container_is_killed(project: Project, index: int) -> None:
    version = project.wait_version(0)
    project.kill("optimizer", index)
    project.wait_version(version + 3, 240)
    eventually(lambda: agreed(project, version), 60, "both optimizers compare their parameters")
    assert len(project.containers("optimizer")) == 2

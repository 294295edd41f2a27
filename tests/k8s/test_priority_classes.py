"""Every referenced priority class exists."""

import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).parents[2]
CLASSES = {o["metadata"]["name"]: o for o in yaml.safe_load_all((ROOT / "k8s/priority-classes.yaml").read_text())}
VALUES = sorted((ROOT / "charts").glob("values*.yaml"))
# values-paper.yaml says what differs from the GPU cluster.
BELOW = {"values-paper": ROOT / "charts/values-gpu-cluster.yaml"}


def named_in(tree: object) -> set[str]:
    """Yield every non-empty priorityClassName below a value."""
    if isinstance(tree, dict):
        own = {tree["priorityClassName"]} if tree.get("priorityClassName") else set()
        return own.union(*(named_in(v) for v in tree.values()))
    return set().union(*(named_in(v) for v in tree)) if isinstance(tree, list) else set()


def test_valid() -> None:
    for item in CLASSES.values():
        kubernetes_validate.validate(item, "1.28", strict=True)
        kubernetes_validate.validate(item, kubernetes_validate.latest_version(), strict=True)


def test_rollouts_come_last() -> None:
    values = {name: item["value"] for name, item in CLASSES.items()}
    assert values["five-learning"] > values["five-serving"] > 0 > values["five-playing"]
    assert CLASSES["five-playing"]["preemptionPolicy"] == "Never"
    assert not any(item.get("globalDefault") for item in CLASSES.values())


def test_values_and_components_name_existing_classes() -> None:
    assert VALUES
    files = [*VALUES, *(ROOT / "k8s/components").rglob("*.yaml"), *(ROOT / "k8s").glob("*/values.yaml")]
    for path in files:
        for document in yaml.safe_load_all(path.read_text()):
            assert named_in(document) <= CLASSES.keys(), path


@pytest.mark.chart
@pytest.mark.parametrize("values", VALUES, ids=lambda p: p.stem)
def test_rendered_pods_name_existing_classes(helm: Path, values: Path) -> None:
    files = [BELOW[values.stem], values] if values.stem in BELOW else [values]
    done = subprocess.run([helm, "template", "five", ROOT / "charts", *(x for f in files for x in ("-f", f))],
                          check=True, text=True, capture_output=True)
    for item in yaml.safe_load_all(done.stdout):
        assert named_in(item) <= CLASSES.keys(), (item["kind"], item["metadata"]["name"])

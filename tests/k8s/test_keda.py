"""The KEDA example queries existing metrics and scales only the workloads that the chart leaves to it."""

import importlib
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rapid.telemetry.metrics import definitions

ROOT = Path(__file__).parents[2]
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all((ROOT / "k8s/keda/scaledobjects.yaml").read_text()))


def test_every_metric_exists() -> None:
    for service in ("rollout", "optimizer", "inference"):
        importlib.import_module(f"five.services.{service}.metrics")
    known = {d.name for d in definitions()}
    for item in OBJECTS:
        for trigger in item["spec"]["triggers"]:
            named = set(re.findall(r"\bfive_\w+", trigger["metadata"]["query"]))
            assert named
            assert {n.removesuffix("_bucket") for n in named} <= known


def test_missing_data_changes_nothing() -> None:
    for item in OBJECTS:
        for trigger in item["spec"]["triggers"]:
            assert trigger["metricType"] == "Value"
            data = trigger["metadata"]
            assert data["query"].rstrip().endswith(f"or vector({data['threshold']})")
            assert all(isinstance(value, str) for value in data.values())  # KEDA refuses anything else


def test_bounds_and_slow_scale_down() -> None:
    for item in OBJECTS:
        spec = item["spec"]
        assert 1 <= spec["minReplicaCount"] < spec["maxReplicaCount"]
        behavior = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
        down, up = (behavior[way]["stabilizationWindowSeconds"] for way in ("scaleDown", "scaleUp"))
        assert down >= 5 * up


@pytest.mark.chart
def test_the_chart_leaves_replicas_to_it(helm: Path) -> None:
    done = subprocess.run([helm, "template", "five", ROOT / "charts", "-f", ROOT / "k8s/keda/values.yaml"], check=True,
                          text=True, capture_output=True)
    rendered = {(o["kind"], o["metadata"]["name"]): o for o in yaml.safe_load_all(done.stdout) if o}
    for item in OBJECTS:
        target = item["spec"]["scaleTargetRef"]
        workload = rendered[target.get("kind", "Deployment"), target["name"]]
        assert "replicas" not in workload["spec"]
        assert workload["metadata"]["labels"].items() >= item["metadata"]["labels"].items()
    assert not any(kind == "HorizontalPodAutoscaler" for kind, _ in rendered)

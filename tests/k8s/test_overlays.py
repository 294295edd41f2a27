"""Each overlay builds over the rendered chart and changes only what it documents."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.k8s.conftest import by_name, kustomize

pytestmark = pytest.mark.chart

ROOT = Path(__file__).parents[2]
OVERLAYS = sorted(p.name for p in (ROOT / "k8s/overlays").iterdir())
COMPONENTS = sorted(p.name for p in (ROOT / "k8s/components").iterdir())
Objects = dict[tuple[str, str], dict[str, Any]]
Build = Callable[[str], Objects]


def component_of(item: dict[str, Any]) -> str:
    return str(item["metadata"].get("labels", {}).get("app.kubernetes.io/component", ""))


def pods(objects: Objects, component: str) -> list[dict[str, Any]]:
    """Return the pod specifications of a component's workloads."""
    found = [o["spec"]["template"]["spec"] for (kind, _), o in objects.items()
             if kind in ("Deployment", "StatefulSet") and component_of(o) == component]
    assert found, f"the chart renders no {component}"
    return found


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_valid_for_every_kubernetes(build: Build, overlay: str) -> None:
    for item in build(overlay).values():
        group = item["apiVersion"].partition("/")[0]
        if "." in group and not group.endswith(".k8s.io"):
            continue  # of an operator
        for version in ("1.28", "1.32", kubernetes_validate.latest_version()):
            kubernetes_validate.validate(item, version, strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_changes_only_its_objects(base: Objects, build: Build, overlay: str) -> None:
    built = build(overlay)
    assert built.keys() == base.keys()
    changed = {component_of(built[key]) for key in base if built[key] != base[key]}
    expected = {"gpu-pools": {"optimizer", "inference"}, "spot-rollouts": {"rollout"},
                "multi-zone": {"inference", "rollout", "optimizer", "redis-params"}}
    expected["cloud"] = set().union(*expected.values())
    assert changed == expected[overlay]


def test_no_selector_changes(base: Objects, build: Build) -> None:
    built = build("cloud")
    for key, item in base.items():
        if "selector" in item.get("spec", {}):
            assert built[key]["spec"]["selector"] == item["spec"]["selector"]


def test_gpu_pools(build: Build) -> None:
    built = build("gpu-pools")
    for component, pool in (("optimizer", "learning"), ("inference", "serving")):
        for pod in pods(built, component):
            assert pod["nodeSelector"]["five/pool"] == pool
            assert pod["runtimeClassName"] == "nvidia"
            assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in pod["tolerations"]
    assert all("five/pool" not in pod.get("nodeSelector", {}) for pod in pods(built, "rollout"))


def test_spot_rollouts_drain_within_the_notice(build: Build) -> None:
    built = build("spot-rollouts")
    for pod in pods(built, "rollout"):
        assert pod["priorityClassName"] == "five-playing"
        # A service ends itself before the kubelet does, and both before the node goes.
        assert 20 < pod["terminationGracePeriodSeconds"] <= 30
        assert {t["key"] for t in pod["tolerations"]} >= {"cloud.google.com/gke-spot", "five/spot"}
    for (kind, _), item in built.items():
        if kind == "PodDisruptionBudget" and component_of(item) == "rollout":
            assert item["spec"]["maxUnavailable"] == "50%" and "minAvailable" not in item["spec"]
    for component in ("optimizer", "inference", "controller", "redis-state"):
        for pod in pods(built, component):
            assert not {t["key"] for t in pod.get("tolerations", [])} & {"cloud.google.com/gke-spot", "five/spot"}


def test_zones(build: Build) -> None:
    built = build("multi-zone")
    for component in ("inference", "rollout"):
        for pod in pods(built, component):
            spread = [c for c in pod["topologySpreadConstraints"] if c["topologyKey"] == "topology.kubernetes.io/zone"]
            assert [c["whenUnsatisfiable"] for c in spread] == ["ScheduleAnyway"]
    for pod in pods(built, "optimizer"):
        terms = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert [t["topologyKey"] for t in terms] == ["topology.kubernetes.io/zone"]


def test_leader_worker_set_is_placed_like_a_stateful_set(build: Build, group_tree: Path, kubectl: Path) -> None:
    (expected,) = pods(build("cloud"), "optimizer")
    group = kustomize(group_tree, kubectl, "cloud")["LeaderWorkerSet", "five-optimizer"]
    pod = group["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]
    for key in ("nodeSelector", "runtimeClassName", "tolerations", "affinity"):
        assert pod[key] == expected[key], key


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_patch_meets_something(base: Objects, group_tree: Path, component: str) -> None:
    """kustomize ignores a patch whose target matches nothing: a renamed label would go unnoticed."""
    plan = yaml.safe_load((ROOT / "k8s/components" / component / "kustomization.yaml").read_text())
    rendered = {**base, **by_name((group_tree / "k8s/base/five.yaml").read_text())}
    for patch in plan["patches"]:
        kinds = patch["target"]["kind"].strip("()").split("|")
        label, _, values = patch["target"]["labelSelector"].replace(" in ", "=").partition("=")
        wanted = {v.strip() for v in values.strip("()").split(",")}
        assert any(key[0] in kinds and item["metadata"].get("labels", {}).get(label) in wanted
                   for key, item in rendered.items()), patch


def test_the_post_renderer_equals_the_overlay(tree: Path, build: Build, either_helm: Path, kubectl: Path,
                                              tmp_path: Path) -> None:
    """The post-renderer applies the overlay while helm keeps the release, with helm 3 and helm 4."""
    env = {**os.environ, "KUBECTL": str(kubectl), "HELM_DATA_HOME": str(tmp_path), "HELM_CACHE_HOME": str(tmp_path)}
    folder = tree / "k8s/post-renderer"
    renderer = str(folder / "kustomize.sh")
    if either_helm.parent.name == "helm4":
        renderer = "five-kustomize"
        subprocess.run([either_helm, "plugin", "install", folder], check=True, env=env, capture_output=True)
    command = [either_helm, "template", "five", tree / "charts", "-n", "five", "--skip-tests",
               "-f", tree / "charts/values-gpu-cluster.yaml",
               "--set", "secrets.create=false",
               "--post-renderer", renderer]
    done = subprocess.run([*command, "--post-renderer-args", "gpu-pools", "--post-renderer-args", "spot-rollouts"],
                          env=env, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    kinds = {(o["kind"], o["metadata"]["name"]): o for o in yaml.safe_load_all(done.stdout) if o}
    gpus, spot = build("gpu-pools"), build("spot-rollouts")
    for kind, name in kinds:
        if kind == "StatefulSet" and name == "five-optimizer":
            assert kinds[kind, name]["spec"]["template"]["spec"] == gpus[kind, name]["spec"]["template"]["spec"]
        if kind == "Deployment" and name == "five-rollout":
            assert kinds[kind, name]["spec"]["template"]["spec"] == spot[kind, name]["spec"]["template"]["spec"]
    refused = subprocess.run([*command, "--post-renderer-args", "spots"], env=env, text=True, capture_output=True)
    assert refused.returncode != 0
    if renderer.endswith(".sh"):  # helm 4 keeps to itself what a plugin says
        assert "there is no component 'spots'" in refused.stderr

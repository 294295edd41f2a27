"""A release of chart 0.1.0 becomes one of this chart by `helm upgrade`, with its values, volumes and secrets.

``fixtures/five-0.1.0.tgz`` is the chart of 0.1.0, where Redis had one user; ``five-0.1.0-last.tgz`` is the last
one of that version. Both are `helm package charts`, of commits 472144fd and 4a8c9968.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from five.run.config import RunConfig
from five.run.load import load
from tests.charts.releases import Objects, Release, claims, release, secrets
from tests.charts.rendering import ROOT, Object

FIXTURES = ROOT / "tests/charts/fixtures"
CHARTS = ("five-0.1.0.tgz", "five-0.1.0-last.tgz")
# What users of 0.1.0 installed with: nothing, and that chart's own values for a node with a GPU.
VALUES = {"defaults": (), "gpu-node": ("-f", str(FIXTURES / "values-gpu-node-0.1.0.yaml"))}
SECTION = (ROOT / "docs/operations.md").read_text().partition("\n### From 0.1.0\n")[2].partition("\n## ")[0]


@pytest.fixture
def fresh(helm: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """A release that is not installed yet."""
    with release(helm, tmp_path_factory.mktemp("release")) as r:
        yield r


def install(fresh: Release, chart: str, *more: str) -> Objects:
    """Install a chart of 0.1.0 and return the objects."""
    fresh.done("install five", FIXTURES / chart, *more)
    return fresh.objects()


def run_of(found: Objects, folder: Path) -> RunConfig:
    """Load the services' configuration, by the code of this version."""
    file = folder / "run.yaml"
    file.write_text(found["configmaps", "five-run"]["data"]["run.yaml"])
    return load(file)


def stored(found: Objects, workload: str) -> tuple[Object, list[Object]]:
    """Return a workload's user ids, and where it mounts volume claims."""
    spec = found[workload.partition("/")[0], workload.partition("/")[2]]["spec"]
    pod = spec["template"]["spec"]
    volumes = {v["name"] for v in pod.get("volumes", []) if "persistentVolumeClaim" in v}
    volumes |= {t["metadata"]["name"] for t in spec.get("volumeClaimTemplates", [])}
    context = {key: pod["securityContext"][key] for key in ("runAsUser", "runAsGroup", "fsGroup")}
    return context, [{key: value for key, value in mount.items() if key != "readOnly"}
                     for container in pod["containers"] for mount in container["volumeMounts"]
                     if mount["name"] in volumes]


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("chart", CHARTS)
def test_upgrade_keeps_the_run(fresh: Release, chart: str, values: str, tmp_path: Path) -> None:
    """The API server refuses changes of immutable fields; the run's name, stores, volumes and mounts stay."""
    first = install(fresh, chart, *VALUES[values])
    old = yaml.safe_load(first["configmaps", "five-run"]["data"]["run.yaml"])
    fresh.done("upgrade five charts --reset-then-reuse-values")
    found = fresh.objects()
    assert first.keys() <= found.keys()
    assert claims(found) == claims(first) and claims(first).keys() == {"five-blobs", "data-five-redis-state-0"}
    for workload in ("statefulsets.apps/five-redis-state", "statefulsets.apps/five-optimizer",
                     "deployments.apps/five-inference", "deployments.apps/five-evaluator"):
        assert stored(found, workload) == stored(first, workload), workload
    assert stored(found, "statefulsets.apps/five-redis-state")[1] == [{"name": "data", "mountPath": "/data"}]
    run = run_of(found, tmp_path)
    assert (run.name, run.blobs.url) == (old["name"], old["blobs"]["url"])
    assert (run.store.state_url, run.store.params_url) == (old["store"]["state_url"], old["store"]["params_url"])
    if values == "gpu-node":
        assert (run.services.rollout.games, run.services.inference.max_batch) == (64, 512)
        assert found["persistentvolumeclaims", "five-blobs"]["spec"]["resources"]["requests"]["storage"] == "200Gi"


def test_upgrade_with_the_same_values_file(fresh: Release) -> None:
    first = install(fresh, CHARTS[0], *VALUES["gpu-node"])
    fresh.done("upgrade five charts", *VALUES["gpu-node"])
    assert claims(fresh.objects()) == claims(first)


def test_secrets_of_0_1_stay_until_they_are_deleted(fresh: Release) -> None:
    first = secrets(install(fresh, CHARTS[0]))
    fresh.done("upgrade five charts --reset-then-reuse-values")
    found = secrets(fresh.objects())
    assert {name: found[name] for name in first} == first
    (command,) = re.findall(r"^kubectl -n five (delete secret .*)$", SECTION, re.M)
    fresh.done(command, program="kubectl")
    assert secrets(fresh.objects()).keys() == found.keys() - first.keys()
    fresh.done("upgrade five charts --reset-then-reuse-values")
    assert secrets(fresh.objects()).keys() == found.keys() - first.keys()


@pytest.mark.parametrize("chart", CHARTS)
def test_reuse_values_is_refused(fresh: Release, chart: str) -> None:
    first = install(fresh, chart, *VALUES["gpu-node"])
    error = fresh.refused("upgrade five charts --reuse-values")
    assert "--reset-then-reuse-values" in error and "nil pointer" not in error
    assert fresh.objects() == first


def test_replaced_values_are_refused_with_the_new_ones(fresh: Release) -> None:
    first = install(fresh, CHARTS[0], "--set", "secrets.redis.existingSecret=ours,run.overrides.rating.nearby=3",
                    "--set", "run.overrides.services.inference.past_versions=2",
                    "--set", "run.overrides.services.rollout.optimizers_each=4")
    error = fresh.refused("upgrade five charts --reset-then-reuse-values")
    for message in ('key "rating.nearby" was renamed to "rating.max_reference_distance"',
                    'key "services.rollout.optimizers_each" was renamed to "services.rollout.optimizers_per_process"',
                    'key "services.inference.past_versions" was removed in 0.2.0: set services.inference.past_',
                    "secrets.redis.existingSecret: a value of chart 0.1.0"):
        assert message in error
    assert fresh.objects() == first


def test_helm_4_upgrades_what_helm_3_installed(tmp_path: Path) -> None:
    with release("helm3", tmp_path) as r:
        first = install(r, CHARTS[0], *VALUES["gpu-node"])
        r.helm = "helm4"
        r.done("upgrade five charts --reset-then-reuse-values")
        assert claims(r.objects()) == claims(first)

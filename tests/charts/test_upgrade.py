"""Upgrades pass the API server and restart only what changed; an uninstall leaves what the documentation says.

Compares two renderings by the immutable fields of existing objects. ``test_releases.py`` runs helm.
"""

import functools
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from rapid.store import acl
from tests.charts.rendering import CHART, NAMESPACE, RELEASE, ROOT, Object, Values, find, objects, pods, run

DEFAULTS = Values("defaults")
# Mutable fields of each kind's spec; Kubernetes refuses any other change.
MAY_CHANGE = {
    "StatefulSet": {"replicas", "ordinals", "template", "updateStrategy", "minReadySeconds",
                    "persistentVolumeClaimRetentionPolicy", "revisionHistoryLimit"},
    "PersistentVolumeClaim": {"resources"},
}
# Values that operators change between upgrades.
CHANGES = {
    "images": ("global.image.tag=9.9.9", "global.image.registry=registry.example", "redis.image.tag=7.2-bookworm"),
    "replicas": ("rollout.replicas=5", "inference.replicas=3", "optimizer.replicas=2", "dotaEnv.perRollout=3"),
    "resources": ("optimizer.resources.limits.memory=9Gi", "redis.state.resources.limits.memory=2Gi",
                  "redis.state.maxmemory=768mb", "global.tmpSize=1Gi", "optimizer.shmSize=2Gi"),
    "gpus and preset": ("run.preset=gpu-node", "optimizer.gpu.count=8", "inference.gpu.count=1"),
    "configuration": ("run.overrides.seed=7", "run.name=other"),
    "autoscaler": ("autoscaling.mode=controller",),
    "signals": ("autoscaling.mode=hpa",),
    "monitoring": ("monitoring.serviceMonitor.enabled=true", "monitoring.dashboards.enabled=true"),
    "scheduling": ("global.priorityClassName=high", "global.nodeSelector.pool=five", "optimizer.podAnnotations.a=b"),
    "encryption": ("tls.grpc.enabled=true", "tls.redis.enabled=true", "tls.certManager.issuerRef.name=ca"),
    "a larger volume of blobs": ("blobs.size=40Gi",),
    "fewer parts": ("evaluator.enabled=false", "networkPolicy.enabled=false", "tests.enabled=false"),
}


@functools.cache
def chart_of(version: str, app: str) -> tuple[Object, ...]:
    """Render the defaults as a later version of the chart and of the platform."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(CHART, Path(folder) / "charts"))
        head = yaml.safe_load((copy / "Chart.yaml").read_text())
        (copy / "Chart.yaml").write_text(yaml.safe_dump({**head, "version": version, "appVersion": app}))
        done = run("helm4", "template", RELEASE, copy, "--namespace", NAMESPACE)
    assert done.returncode == 0, done.stderr
    return tuple(o for o in yaml.load_all(done.stdout, Loader=yaml.CSafeLoader) if o)


def by_name(found: list[Object] | tuple[Object, ...]) -> dict[tuple[str, str], Object]:
    return {(o["kind"], o["metadata"]["name"]): o for o in found}


def fixed(o: Object) -> Any:
    """Return the immutable fields of an object."""
    kind, spec = o["kind"], o.get("spec", {})
    if kind in MAY_CHANGE:
        return {key: value for key, value in spec.items() if key not in MAY_CHANGE[kind]}
    if kind == "Deployment":
        return spec["selector"]
    if kind == "Service":
        return spec.get("clusterIP")
    return {"RoleBinding": o.get("roleRef"), "Secret": o.get("type")}.get(kind)


def refused(before: list[Object], after: list[Object] | tuple[Object, ...]) -> list[tuple[str, str]]:
    """Return the objects whose change the API server would refuse."""
    old, new = by_name(before), by_name(after)
    return [key for key in old.keys() & new.keys() if fixed(old[key]) != fixed(new[key])]


@pytest.mark.parametrize("change", CHANGES)
def test_changes_by_operators_are_kept(change: str) -> None:
    after = Values(change, sets=CHANGES[change])
    assert not refused(objects(DEFAULTS), objects(after))


@pytest.mark.parametrize("change", CHANGES)
def test_no_change_takes_secrets_or_volumes_away(change: str) -> None:
    kept = {key for key in by_name(objects(DEFAULTS)) if key[0] in ("Secret", "PersistentVolumeClaim", "StatefulSet")
            and key[1] != "five-test-token"}
    assert len(kept) == 20 and kept <= by_name(objects(Values(change, sets=CHANGES[change]))).keys()


def test_changes_of_immutable_fields_are_found() -> None:
    for change in ("redis.state.persistence.size=9Gi", "global.storageClass=fast", "nameOverride=fiv"):
        assert refused(objects(DEFAULTS), objects(Values(change, sets=(change,)))), change
    table = (CHART / "values.yaml").read_text()
    assert table.count("Kubernetes lets no upgrade change it") == 2
    assert table.count("Do not change it in an upgrade") == 2


def test_a_new_chart_is_taken_and_restarts_nothing() -> None:
    labels = find(DEFAULTS, "Deployment", "rollout")["metadata"]["labels"]
    after = chart_of("7.8.9", labels["app.kubernetes.io/version"])
    assert not refused(objects(DEFAULTS), after)
    assert templates(after) == templates(objects(DEFAULTS))
    assert "7.8.9" not in yaml.safe_dump([fixed(o) for o in after])


def test_new_platform_version_leaves_redis_running() -> None:
    """Restarting Redis while optimizers write their last checkpoints would lose data."""
    before, after = templates(objects(DEFAULTS)), templates(chart_of("7.8.9", "9.9.9"))
    assert not refused(objects(DEFAULTS), chart_of("7.8.9", "9.9.9"))
    assert {name for name in before if before[name] == after[name]} == {
        "StatefulSet/five-redis-state", "Deployment/five-redis-params"}


def group(*sets: str) -> str:
    """Return the name of the group that the optimizers' pods join."""
    (container,) = find(Values(f"group, {sets}", sets=("optimizer.replicas=2", *sets)), "StatefulSet", "optimizer"
                        )["spec"]["template"]["spec"]["containers"]
    (found,) = (a.partition("=")[2] for a in container["args"] if a.startswith("--group="))
    return str(found)


def test_optimizers_of_two_revisions_form_no_group() -> None:
    """In a rolling update pods of both revisions run at the same time."""
    assert group() == group("optimizer.resources.limits.memory=9Gi")
    assert len({group(), group("global.image.tag=9.9.9"), group("run.overrides.seed=7")}) == 3


def test_redis_restarts_for_its_own_configuration_alone() -> None:
    before = templates(objects(DEFAULTS))
    for change, restarted in (("redis.state.maxmemory=600mb", {"StatefulSet/five-redis-state"}),
                              ("redis.params.maxmemory=900mb", {"Deployment/five-redis-params"}),
                              ("run.overrides.seed=7", set())):
        after = templates(objects(Values(change, sets=(change,))))
        assert {name for name in before if "redis" in name and before[name] != after[name]} == restarted, change


def templates(found: list[Object] | tuple[Object, ...]) -> dict[str, tuple[Object, Object]]:
    """Return the pod templates, without those of test pods, which are recreated each time."""
    return {name: (meta, spec) for name, meta, spec in pods(found) if not name.startswith("Pod/")}


def test_a_broken_pod_does_not_hold_a_rollback_back(values: Values) -> None:
    """An ordered set replaces a pod only when the earlier ones are ready, which a pod without an image never is. A
    Parallel set replaces it."""
    for o in objects(values, "StatefulSet"):
        assert o["spec"]["podManagementPolicy"] == "Parallel"


def test_an_upgrade_runs_no_jobs_and_removes_no_data(values: Values) -> None:
    """There are no Jobs, and no hooks except those of `helm test`, which mount no volume."""
    for o in objects(values):
        assert o["kind"] not in ("Job", "CronJob"), o["metadata"]["name"]
        assert o["metadata"].get("annotations", {}).get("helm.sh/hook", "test") == "test"
        if o["kind"] == "Pod":
            assert not any("persistentVolumeClaim" in v for v in o["spec"]["volumes"])


def left(values: Values) -> set[str]:
    """Return what `helm uninstall` leaves: kept objects, claims of StatefulSets, and hooks."""
    found = set()
    for o in objects(values):
        annotations, name = o["metadata"].get("annotations", {}), o["metadata"]["name"]
        if annotations.get("helm.sh/resource-policy") == "keep" or "helm.sh/hook" in annotations:
            found.add(name)
        if o["kind"] == "StatefulSet" and o["spec"].get("persistentVolumeClaimRetentionPolicy",
                                                        {"whenDeleted": "Retain"})["whenDeleted"] == "Retain":
            found |= {f"{t['metadata']['name']}-{name}-0" for t in o["spec"].get("volumeClaimTemplates", [])}
    return found


def notes(*sets: str) -> str:
    """Return the NOTES that helm prints after an installation."""
    done = run("helm4", "install", RELEASE, CHART, "--namespace", NAMESPACE, "--dry-run=client",
               *Values("", sets=sets).arguments())
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("\nNOTES:\n")[2]


def test_uninstall_reports_the_objects_it_leaves() -> None:
    users = (*acl.SERVICES, acl.PROBE, acl.ADMIN)
    callers = {f"five-caller-{caller}" for caller in ("controller", "evaluator", "play", "rollout")}
    assert left(DEFAULTS) == {*callers, "five-api-tokens", "five-operator-token",
                              *(f"five-redis-{user}" for user in users), "five-blobs", "data-five-redis-state-0",
                              *(f"five-test-{name}" for name in ("rest", "grpc", "redis", "training"))}
    page = (ROOT / "docs/operations.md").read_text()
    section = page[page.index("## Uninstall"):page.index("## Pause, resume, stop")]
    readme = (CHART / "README.md").read_text()
    for name in left(DEFAULTS):
        assert re.sub(r"^five-test-.*", "five-test-", name) in section, name
        assert name.startswith("five-test-") or name in notes(), name
    assert "kubectl -n five delete pod,secret,pvc -l app.kubernetes.io/instance=five" in readme


def test_uninstall_leftovers_match_the_removal_label() -> None:
    label = {"app.kubernetes.io/instance": RELEASE}
    for o in objects(DEFAULTS):
        for metadata in (o["metadata"], *(t["metadata"] for t in o.get("spec", {}).get("volumeClaimTemplates", []))):
            assert label.items() <= metadata["labels"].items()


def test_the_notes_name_only_remaining_objects() -> None:
    given = ("secrets.create=false", "blobs.url=s3://bucket/five",
             "redis.state.persistence.whenDeleted=Delete")
    said = notes(*given)
    assert not left(Values("given", sets=(*given, "tests.enabled=false")))
    assert "five-blobs" not in said and "data-five-redis-state-0" not in said and "helm uninstall" not in said
    assert "five-blobs" not in notes("blobs.keep=false").partition("helm uninstall")[2].partition("Warnings")[0]

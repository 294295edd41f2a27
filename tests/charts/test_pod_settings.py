"""Pod settings that values may add to a component: security context, volumes, labels, budgets."""

import pytest

from tests.charts.rendering import RDMA, Values, containers, find, matches, objects, pods, refusal

COMPONENTS = ("rollout", "dotaEnv", "inference", "optimizer", "controller", "opponents", "evaluator", "redis.state",
              "redis.params")


def test_capabilities_are_added_and_the_rest_stays() -> None:
    spec = find(RDMA, "StatefulSet", "optimizer")["spec"]["template"]["spec"]
    assert spec["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]}}
    for name, _, other in pods(objects(RDMA)):
        if name != "StatefulSet/five-optimizer":
            assert all("add" not in c["securityContext"]["capabilities"] for c in containers(other)), name


def test_pods_omit_user_ids_that_the_cluster_assigns() -> None:
    for name, _, spec in pods(objects(RDMA)):
        context = spec["securityContext"]
        assert context["runAsNonRoot"] is True and context["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & context.keys(), name
    optimizer = find(RDMA, "StatefulSet", "optimizer")["spec"]["template"]["spec"]
    assert optimizer["securityContext"]["supplementalGroups"] == [44]


def test_labels_are_added_and_selectors_never_change() -> None:
    for name, meta, _ in pods(objects(RDMA)):
        if not name.startswith("Pod/"):
            assert meta["labels"]["team"] == ("learning" if "optimizer" in name else "rl"), name
            assert meta["labels"]["app.kubernetes.io/name"] == "five", "the chart's own cannot be taken away"
    for o in (*objects(RDMA, "Deployment"), *objects(RDMA, "StatefulSet")):
        assert matches(o["spec"]["selector"], o["spec"]["template"]["metadata"]["labels"])
        assert "team" not in o["spec"]["selector"]["matchLabels"]


def test_backups_and_helm_tests_have_the_metadata_of_all_pods() -> None:
    """Workload identity, service meshes and admission policies select pods by it."""
    values = Values("labelled-backup", sets=("backup.enabled=true", "global.podLabels.team=rl",
                                             "global.podAnnotations.note=all", "global.labels.team=objects"))
    having = {name: (meta["labels"].get("team"), meta.get("annotations", {}).get("note"))
              for name, meta, _ in pods(objects(values))}
    assert having.keys() >= {"CronJob/five-backup", "Pod/five-test-rest"}
    assert set(having.values()) == {("rl", "all")}


def test_backups_and_helm_tests_have_the_environment_of_all() -> None:
    """Sentinels take their password from it."""
    values = Values("environment of all", sets=("backup.enabled=true", "global.extraEnv[0].name=A",
                                                "global.extraEnv[0].value=all"))
    having = {name for name, _, spec in pods(objects(values))
              if all({"name": "A", "value": "all"} in c.get("env", []) for c in containers(spec))}
    assert having == {name for name, _, _ in pods(objects(values)) if not name.split("/")[1].startswith("five-redis-")}


def test_global_scheduling_holds_for_every_pod() -> None:
    term = "global.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
    values = Values("scheduled", sets=(
        "backup.enabled=true", "global.priorityClassName=normal", "global.nodeSelector.pool=five",
        "global.tolerations[0].key=five", f"{term}.matchExpressions[0].key=five",
        f"{term}.matchExpressions[0].operator=Exists"))
    found = {name: spec for name, _, spec in pods(objects(values))}
    assert found.keys() >= {"CronJob/five-backup", "Pod/five-test-rest"}
    for name, spec in found.items():
        assert spec["priorityClassName"] == "normal" and spec["nodeSelector"]["pool"] == "five", name
        assert spec["tolerations"] == [{"key": "five"}] and "nodeAffinity" in spec["affinity"], name


def test_scheduling_of_backups() -> None:
    term = "backup.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
    values = Values("scheduled backup", sets=(
        "backup.enabled=true", "global.nodeSelector.pool=five", "backup.nodeSelector.disk=hdd",
        "global.tolerations[0].key=five", "backup.tolerations[0].key=spot", f"{term}.matchExpressions[0].key=five",
        f"{term}.matchExpressions[0].operator=Exists"))
    spec = next(spec for name, _, spec in pods(objects(values)) if name == "CronJob/five-backup")
    assert spec["nodeSelector"].items() >= {"pool": "five", "disk": "hdd"}.items()
    assert spec["tolerations"] == [{"key": "five"}, {"key": "spot"}]
    assert spec["affinity"].keys() == {"nodeAffinity", "podAffinity"}  # the latter: beside the volume of the blobs


@pytest.mark.parametrize("component", COMPONENTS)
def test_volumes_are_mounted_in_the_components_own_containers(component: str) -> None:
    values = Values(component, sets=(
        f"{component}.extraVolumes[0].name=own", f"{component}.extraVolumes[0].emptyDir.medium=",
        f"{component}.extraVolumeMounts[0].name=own", f"{component}.extraVolumeMounts[0].mountPath=/own"))
    mounted = {c["name"] for _, _, spec in pods(objects(values)) for c in containers(spec)
               if {"name": "own", "mountPath": "/own"} in c["volumeMounts"]}
    assert mounted == {{"dotaEnv": "dota-env-0"}.get(component, component.partition(".")[0])}
    having = [name for name, _, spec in pods(objects(values)) if any(v["name"] == "own" for v in spec["volumes"])]
    assert len(having) == 1


def test_a_rollout_and_its_games_may_mount_the_same_volume() -> None:
    """Kubernetes refuses two volumes of one name."""
    values = Values("shared volume", sets=tuple(
        f"{component}.{setting}" for component in ("rollout", "dotaEnv") for setting in (
            "extraVolumes[0].name=authority", "extraVolumes[0].configMap.name=ca",
            "extraVolumeMounts[0].name=authority", "extraVolumeMounts[0].mountPath=/ca")))
    spec = find(values, "Deployment", "rollout")["spec"]["template"]["spec"]
    volumes = [v for v in spec["volumes"] if v["name"] == "authority"]
    assert volumes == [{"name": "authority", "configMap": {"name": "ca"}}]
    mount = {"name": "authority", "mountPath": "/ca"}
    assert [mount in c["volumeMounts"] for c in containers(spec)] == [True, True]


def test_several_keepers_of_opponents_have_a_budget() -> None:
    assert find(RDMA, "Deployment", "opponents")["spec"]["replicas"] == 2
    assert find(RDMA, "PodDisruptionBudget", "opponents")["spec"]["maxUnavailable"] == 1
    names = {o["metadata"]["name"] for o in objects(Values("defaults"), "PodDisruptionBudget")}
    assert "five-opponents" not in names and "five-redis-state" in names


def test_components_that_may_have_several_pods_are_spread() -> None:
    values = Values("spread", sets=("dotaEnv.placement=deployment", "play.enabled=true", "opponents.replicas=2"))
    spread = {name for name, _, spec in pods(objects(values)) if "topologySpreadConstraints" in spec}
    assert spread == {f"Deployment/five-{c}" for c in ("rollout", "dota-env", "inference", "opponents")} | {
        "StatefulSet/five-optimizer"}
    for name, meta, spec in pods(objects(values)):
        for constraint in spec.get("topologySpreadConstraints", []):
            assert matches(constraint["labelSelector"], meta["labels"]), name


def test_the_states_redis_may_hold_a_drain_up() -> None:
    assert find(RDMA, "PodDisruptionBudget", "redis-state")["spec"]["maxUnavailable"] == 0
    none = Values("none", sets=("redis.state.podDisruptionBudget.maxUnavailable=",))
    assert "five-redis-state" not in {o["metadata"]["name"] for o in objects(none, "PodDisruptionBudget")}
    assert "maxUnavailable" in refusal(Values("two", sets=("redis.state.podDisruptionBudget.maxUnavailable=2",)))
    outside = Values("outside", sets=("redis.state.external.host=redis.example.com",))
    assert "five-redis-state" not in {o["metadata"]["name"] for o in objects(outside, "PodDisruptionBudget")}


def test_only_writers_of_blobs_may_write_them() -> None:
    values = Values("backup", sets=("backup.enabled=true",))
    writes = {c["name"]: not mount.get("readOnly", False) for _, _, spec in pods(objects(values))
              for c in containers(spec) for mount in c["volumeMounts"] if mount["name"] == "blobs"}
    assert writes == {"inference": False, "optimizer": True, "evaluator": True, "backup": True}

"""Optimizer groups under a gang scheduler: labels for Kueue and LeaderWorkerSet, and the resulting addresses."""

from pathlib import Path

import pytest

from five.run.load import load
from tests.charts.rendering import NAMESPACE, Object, Values, find, objects, refusal, run_config

GROUP = ("optimizer.replicas=3", "run.preset=rerun", "blobs.accessModes={ReadWriteMany}")
QUEUE = "optimizer.gang.queue=learning"
KUEUE = Values("kueue", sets=(*GROUP, QUEUE))
PODS = Values("pod group", sets=(*GROUP, QUEUE, "optimizer.gang.podGroup=true",
                                 "optimizer.gang.schedulerName=scheduler-plugins-scheduler"))
SET = Values("leader worker set", sets=(*GROUP, QUEUE, "optimizer.gang.form=LeaderWorkerSet", "optimizer.gpu.count=2"))
LABEL = "kueue.x-k8s.io/queue-name"


def test_kueue_finds_its_queue_at_the_set() -> None:
    found = find(KUEUE, "StatefulSet", "optimizer")
    assert found["metadata"]["labels"][LABEL] == "learning"
    assert LABEL not in found["spec"]["template"]["metadata"]["labels"]
    plain = find(Values("plain", sets=GROUP), "StatefulSet", "optimizer")
    assert LABEL not in plain["metadata"]["labels"]
    assert found["spec"] == plain["spec"], "the label alone: nothing restarts"


def test_group_goes_on_with_the_minimum_of_pods() -> None:
    def nodes(*sets: str) -> str:
        (container,) = find(Values("minimum", sets=(*GROUP, *sets)), "StatefulSet", "optimizer"
                            )["spec"]["template"]["spec"]["containers"]
        (found,) = (a for a in container["args"] if a.startswith("--nodes="))
        return found

    assert nodes() == "--nodes=3" and nodes("optimizer.minReplicas=2") == "--nodes=2:3"
    assert "optimizer.minReplicas 4: at most optimizer.replicas (3)" in refusal(
        Values("too many", sets=(*GROUP, "optimizer.minReplicas=4")))


def test_a_pod_group_names_itself_and_its_size() -> None:
    found = find(PODS, "StatefulSet", "optimizer")
    template = found["spec"]["template"]
    assert LABEL not in found["metadata"]["labels"]
    assert template["metadata"]["labels"][LABEL] == "learning"
    assert template["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] == "five-optimizer"
    assert template["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "3"
    assert template["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
    assert "schedulerName" not in find(KUEUE, "StatefulSet", "optimizer")["spec"]["template"]["spec"]


def test_a_leader_worker_set_is_one_group_of_the_same_pods() -> None:
    assert "five-optimizer" not in {o["metadata"]["name"] for o in objects(SET, "StatefulSet")}
    spec = find(SET, "LeaderWorkerSet", "optimizer")["spec"]
    assert spec["replicas"] == 1 and spec["leaderWorkerTemplate"]["size"] == 3
    plain = Values("plain, GPUs", sets=(*GROUP, "optimizer.gpu.count=2"))
    expected = find(plain, "StatefulSet", "optimizer")["spec"]["template"]["spec"]
    made = spec["leaderWorkerTemplate"]["workerTemplate"]["spec"]

    def without_revision(pod: Object) -> Object:
        """Return the container without the group's revision, which the addresses in its configuration are part of."""
        container = pod["containers"][0]
        return {**container, "args": [a for a in container["args"] if not a.startswith("--group=")]}

    assert without_revision(made) == without_revision(expected)
    assert made["volumes"] == expected["volumes"]


@pytest.mark.parametrize("tls", [False, True])
def test_leader_worker_set_addresses_are_pod_names(tls: bool, tmp_path: Path) -> None:
    """The leader is NAME-0; its workers are NAME-0-1 and so on, below the set's Service."""
    more = ("tls.grpc.enabled=true", "tls.grpc.existingSecret=ours") if tls else ()
    path = tmp_path / "run.yaml"
    path.write_text(run_config(Values(f"set {tls}", sets=(*SET.sets, *more))))
    settings = load(path).services.optimizer
    below = f"five-optimizer.{NAMESPACE}.svc" if tls else "five-optimizer"
    hosts = ["five-optimizer-0", "five-optimizer-0-1", "five-optimizer-0-2"]
    assert [settings.address(rank) for rank in range(6)] == [
        f"{host}.{below}:{port}" for host in hosts for port in (50051, 50052)]
    # The ranks of a node are numbered in a row, whichever node comes first.
    assert [settings.listening_port(rank, rank % 2) for rank in range(6)] == [50051, 50052] * 3


def test_a_group_without_a_queue_is_refused() -> None:
    said = refusal(Values("no queue", sets=("optimizer.gang.podGroup=true",)))
    assert "optimizer.gang.podGroup: a pod group is admitted by a queue" in said
    both = refusal(Values("both", sets=(*SET.sets, "optimizer.gang.podGroup=true")))
    assert "Kueue makes the group of a LeaderWorkerSet itself" in both
    assert "form" in refusal(Values("form", sets=("optimizer.gang.form=Job",)))

"""Choice of the pods that a smaller pool removes first: without a heartbeat, then the youngest."""

from typing import Any

import pytest

from five.run.config.autoscaler import AutoscalerConfig, InferenceScaling, RolloutScaling
from five.services.controller.autoscaler.kubernetes_api import DELETION_COST, KubernetesApi
from five.services.controller.autoscaler.loop import ScalingLoop
from rapid.store.leases import Instance
from rapid.store.state import RunState
from tests.services.controller.autoscaler.heartbeats import save_heartbeat
from tests.services.controller.autoscaler.kubernetes_server import ApiServer

PODS = "/api/v1/namespaces/five/pods"


def started(state: RunState, kind: str, **at: float) -> None:
    """Store a heartbeat of each pod, with the time of its start."""
    for name, seconds in at.items():
        save_heartbeat(state.redis, Instance(kind, name, "", "", seconds, 100.0, {}))


def resized(state: RunState, api: KubernetesApi, deletion_cost: bool = True, **bounds: int) -> ScalingLoop:
    """Return a loop after one pass, which moves the four rollout pods into other bounds at once."""
    rule = RolloutScaling(deployment="five-rollout", **bounds)
    loop = ScalingLoop(AutoscalerConfig(enabled=True, deletion_cost=deletion_cost, rollout=rule), api, state)
    loop.run_once()
    return loop


def first_to_go(server: ApiServer) -> set[str]:
    return {name for name, notes in server.pods.items() if notes.get(DELETION_COST) == "-1"}


@pytest.mark.parametrize(("to", "first"), [
    (3, {"starting"}), (2, {"starting", "young"}), (1, {"starting", "young", "older"})])
def test_pods_that_lose_the_least_work_go_first(state: RunState, api: KubernetesApi, server: ApiServer, to: int,
                                                first: set[str]) -> None:
    server.pods = {name: {} for name in ("oldest", "young", "older", "starting", "x-ending")}
    started(state, "rollout", oldest=10.0, young=30.0, older=20.0)
    started(state, "inference", starting=1.0)  # another kind's heartbeat says nothing about this pod
    resized(state, api, max=to)
    assert first_to_go(server) == first and server.deployments["five-rollout"] == to


def test_youngest_inference_pod_goes_first(state: RunState, api: KubernetesApi, server: ApiServer) -> None:
    server.pods = {"old": {}, "young": {}}
    started(state, "inference", old=10.0, young=30.0)
    for other in ("evaluator", "rollout"):
        started(state, other, young=1.0)
    rule = InferenceScaling(deployment="five-inference", max=1)
    ScalingLoop(AutoscalerConfig(enabled=True, deletion_cost=True, inference=rule), api, state).run_once()
    assert first_to_go(server) == {"young"} and server.deployments["five-inference"] == 1


def test_marked_pod_is_not_marked_again(state: RunState, api: KubernetesApi, server: ApiServer) -> None:
    server.pods = {"old": {}, "a": {DELETION_COST: "-1"}, "b": {DELETION_COST: "7"}, "c": {DELETION_COST: "-9"}}
    started(state, "rollout", old=10.0)
    resized(state, api, max=1)
    assert first_to_go(server) == {"a", "b", "c"}
    assert {path for method, path in server.requests if method == "PATCH" and path.startswith(PODS)} == {
        f"{PODS}/b", f"{PODS}/c"}


@pytest.mark.parametrize(("deletion_cost", "bounds"), [(True, {"min": 6}), (True, {"max": 4}), (False, {"max": 2})])
def test_pods_are_marked_only_for_a_smaller_pool_that_wants_it(
        state: RunState, api: KubernetesApi, server: ApiServer, deletion_cost: bool, bounds: dict[str, int]) -> None:
    server.pods = {"a": {}, "b": {}}
    resized(state, api, deletion_cost, **bounds)
    assert all(path != PODS for _, path in server.requests), server.requests


def test_pod_that_ends_meanwhile_leaves_the_others_marked(state: RunState, api: KubernetesApi, server: ApiServer
                                                          ) -> None:
    server.pods, server.gone = {"old": {}, "young": {}, "ended": {}}, {"ended"}
    started(state, "rollout", old=10.0, young=20.0, ended=30.0)
    resized(state, api, max=2)
    assert first_to_go(server) == {"young"} and all(e.what != "autoscaler.failed" for e in state.events.read())


def test_pool_shrinks_although_pods_cannot_be_marked(state: RunState, api: KubernetesApi, server: ApiServer) -> None:
    def failures() -> list[Any]:
        found = [e for e in state.events.read() if e.what == "autoscaler.failed"]
        assert all("needs list and patch of pods" in e.details["error"] for e in found)
        return [e.details["what"] for e in found]

    server.deny.add("pods")
    loop = resized(state, api, max=2)
    assert server.deployments["five-rollout"] == 2 and failures() == ["pods"]
    for denied, expected in ((True, 1), (False, 1), (True, 2)):  # reported once, and again after it has worked
        server.deny = {"pods"} if denied else set()
        server.resize("five-rollout", 3)
        loop.run_once()
        assert (server.deployments["five-rollout"], len(failures())) == (2, expected), denied

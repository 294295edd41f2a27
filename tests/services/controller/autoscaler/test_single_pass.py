"""Single passes of the autoscaler's loop, which move a pool into its bounds at once: writes, records and failures."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import redis

from five.run.config.autoscaler import AutoscalerConfig, InferenceScaling, RolloutScaling
from five.services.controller.autoscaler.kubernetes_api import KubernetesApi
from five.services.controller.autoscaler.loop import ScalingLoop
from rapid.store.leases import Instance
from rapid.store.state import RunState
from rapid.telemetry.metrics import REGISTRY
from tests.services.controller.autoscaler.heartbeats import save_heartbeat
from tests.services.controller.autoscaler.kubernetes_server import ApiServer


def scaling(state: RunState, api: KubernetesApi, clock: Callable[[], float] = lambda: 0.0, /, **bounds: int
            ) -> ScalingLoop:
    """Return a loop that keeps the Deployment of rollouts within bounds; it has four pods."""
    rule = RolloutScaling(deployment="five-rollout", **bounds)
    return ScalingLoop(AutoscalerConfig(enabled=True, rollout=rule), api, state, clock)


def failures(state: RunState) -> list[str]:
    return [e.details["what"] for e in state.events.read() if e.what == "autoscaler.failed"]


def shown(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"five_controller_autoscaler_{name}", labels)


@pytest.mark.parametrize(("bounds", "after", "reason"), [
    ({"max": 2}, 2, "above_max"), ({"min": 6}, 6, "below_min"), ({"max": 4}, 4, "measuring")])
def test_decision_is_recorded_with_its_sizes(state: RunState, api: KubernetesApi, server: ApiServer,
                                             bounds: dict[str, int], after: int, reason: str) -> None:
    (decision,) = scaling(state, api, **bounds).run_once()
    assert (decision.before, decision.after, server.deployments["five-rollout"]) == (4, after, after)
    row = state.table("autoscaler").get("rollout")
    assert abs(row.pop("at") - state.events.read()[-1].at) < 60.0
    assert row == {"deployment": "five-rollout", "replicas": after, "present": 4, "wanted": after, "reason": reason,
                   "signals": {}}
    events = [(e.what, e.details) for e in state.events.read() if e.who == "autoscaler"]
    assert events == ([] if after == 4 else [("rollout.scaled", {
        "deployment": "five-rollout", "from": 4, "to": after, "wanted": after, "reason": reason, "signals": {}})])
    assert shown("desired_instances", component="rollout") == after
    assert shown("current_instances", component="rollout") == 4
    assert math.isnan(shown("queue_seconds") or 0.0)  # not measured yet


@pytest.mark.parametrize(("conflicts", "after"), [(1, 2), (2, 2), (3, 4)])
def test_write_that_conflicts_is_made_three_times(state: RunState, api: KubernetesApi, server: ApiServer,
                                                  conflicts: int, after: int) -> None:
    """The object's version changes whenever a pod becomes ready. The next pass tries again."""
    busy = [True] * conflicts
    server.on_patch = lambda: server.touch("five-rollout") if busy and busy.pop() else None
    loop = scaling(state, api, max=2)
    loop.run_once()
    assert server.deployments["five-rollout"] == after and failures(state) == []
    assert state.table("autoscaler").get("rollout")["replicas"] == after
    loop.run_once()
    assert server.deployments["five-rollout"] == 2
    assert [e.what for e in state.events.read() if e.who == "autoscaler"] == ["rollout.scaled"]


@pytest.mark.parametrize("meanwhile", [3, 7])
def test_size_that_somebody_sets_during_the_write_is_kept(state: RunState, api: KubernetesApi, server: ApiServer,
                                                          meanwhile: int) -> None:
    changes = [meanwhile]
    server.on_patch = lambda: server.resize("five-rollout", changes.pop()) if changes else None
    scaling(state, api, max=2).run_once()
    assert server.deployments["five-rollout"] == meanwhile
    assert state.table("autoscaler").get("rollout")["replicas"] == 4
    assert [e for e in state.events.read() if e.who == "autoscaler"] == []


def test_failure_is_reported_when_it_is_new(state: RunState, api: KubernetesApi, server: ApiServer) -> None:
    """Every failure counts in the metrics. The log gets the first, another status, and the first after a success."""
    before = {status: shown("api_failures_total", status=status) or 0.0 for status in ("403", "404")}
    loop = scaling(state, api, max=4)
    pods = server.deployments.pop("five-rollout")
    expected = []
    for present, denied in ((False, False), (False, False), (False, True), (True, True), (True, False), (False, False)):
        server.deployments.pop("five-rollout", None)
        if present:
            server.deployments["five-rollout"] = pods
        server.deny = {"get"} if denied else set()
        loop.run_once()
        expected.append(len(failures(state)))
    assert expected == [1, 1, 2, 2, 2, 3] and set(failures(state)) == {"rollout"}
    counted = {status: (shown("api_failures_total", status=status) or 0.0) - before[status] for status in before}
    assert counted == {"403": 2.0, "404": 3.0}


def test_refused_size_is_reported_again_after_a_success(state: RunState, api: KubernetesApi, server: ApiServer) -> None:
    loop = scaling(state, api, max=2)
    found = []
    for denied in (True, True, False, True):
        server.deny = {"patch"} if denied else set()
        server.resize("five-rollout", 4)
        loop.run_once()
        found.append((server.deployments["five-rollout"], failures(state)))
    what = "resize rollout"
    assert found == [(4, [what]), (4, [what]), (2, [what]), (4, [what, what])]


def test_pools_are_independent(state: RunState, api: KubernetesApi, server: ApiServer) -> None:
    server.on_patch = lambda: server.deny.add("patch")  # the second write is refused
    config = AutoscalerConfig(enabled=True, rollout=RolloutScaling(deployment="five-rollout", max=2),
                              inference=InferenceScaling(deployment="five-inference", max=1))
    ScalingLoop(config, api, state).run_once()
    assert server.deployments == {"five-rollout": 2, "five-inference": 2} and failures(state) == ["resize inference"]


def test_missing_run_is_not_scaled(redis_client: redis.Redis, api: KubernetesApi, server: ApiServer) -> None:
    assert scaling(RunState(redis_client, "another"), api, max=2).run_once() == []
    assert server.requests == []


@pytest.mark.parametrize(("kind", "stats", "scales"), [
    ("optimizer", {"holding": "the blob store does not respond"}, False), ("optimizer", {"holding": ""}, True),
    ("optimizer", {}, True), ("rollout", {"holding": "the optimizer does not respond"}, True),
    ("inference", {"holding": "the optimizer does not respond"}, True)])
def test_nothing_is_scaled_while_learning_is_blocked(state: RunState, api: KubernetesApi, server: ApiServer, kind: str,
                                                     stats: dict[str, Any], scales: bool) -> None:
    for other in ("inference", "optimizer"):
        save_heartbeat(state.redis, Instance(other, "0", "", "", 0.0, 1.0, {}))
    save_heartbeat(state.redis, Instance(kind, "1", "", "", 0.0, 1.0, stats))
    scaling(state, api, max=2).run_once()
    assert server.deployments["five-rollout"] == (2 if scales else 4)


def test_signals_are_measured_again_after_learning_was_blocked(state: RunState, api: KubernetesApi) -> None:
    now = 0.0
    loop = scaling(state, api, lambda: now, max=4)

    def reasons(passes: int, **stats: Any) -> list[str]:
        nonlocal now
        found = []
        for _ in range(passes):
            now += 15.0
            save_heartbeat(state.redis, Instance("rollout", "0", "", "", 0.0, now, {"throttled_seconds": 0.0}))
            save_heartbeat(state.redis, Instance("optimizer", "0", "", "", 0.0, now, {
                "received": now, "consumed": now, "starved_seconds": 0.0, **stats}))
            found += [str(decision.reason) for decision in loop.run_once()]
        return found

    measured = ["measuring"] * 3 + ["in_band"]
    assert reasons(4) == measured and shown("unpaced_reuse_ratio") == 1.0
    assert reasons(1, holding="away") == [] and math.isnan(shown("unpaced_reuse_ratio") or 0.0)
    assert reasons(4) == measured

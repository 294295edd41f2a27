"""The autoscaler's loop against real Redis and the real Kubernetes client: its writes, logs, omissions and failures."""

import asyncio
import logging
import math
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis
import yaml

from five.run.config.autoscaler import AutoscalerConfig, InferenceScaling, RolloutScaling
from five.run.load import load
from five.services.controller.autoscaler import loop
from five.services.controller.autoscaler.kubernetes_api import KubernetesApi, OutsideCluster
from five.services.controller.autoscaler.loop import ScalingLoop, keep_scaling
from rapid.store.leases import Instance
from rapid.store.state import RunState, Status
from rapid.telemetry.metrics import REGISTRY
from tests.services.controller.autoscaler.heartbeats import save_heartbeat
from tests.services.controller.autoscaler.kubernetes_server import ApiServer

LOOK = 15.0


def settings(**changes: Any) -> AutoscalerConfig:
    return AutoscalerConfig(enabled=True, rollout=RolloutScaling(deployment="five-rollout", max=40, **changes),
                            inference=InferenceScaling(deployment="five-inference", max=4))


@dataclass
class Cluster:
    """Run whose optimizers need the data of ``needed`` rollouts, and whose pods follow their Deployments at once.

    Counters grow as in real services; heartbeats are stored in Redis as services write them.
    """

    client: redis.Redis
    server: ApiServer
    needed: float
    queue_seconds: float = 0.02
    now: float = 0.0
    counters: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)

    def pass_time(self, seconds: float = LOOK) -> None:
        self.now += seconds
        pods = self.server.deployments["five-rollout"]
        made = pods / self.needed
        for i in range(pods):
            self._beat("rollout", f"r{i}", throttled_seconds=seconds * max(1 - 1 / made, 0) if made else 0.0)
        samples = 100 * seconds * min(made, 1)
        self._beat("optimizer", "0", received=samples, consumed=samples, starved_seconds=seconds * max(1 - made, 0))
        for i in range(self.server.deployments["five-inference"]):
            self._beat("inference", f"i{i}", requests=10 * seconds, queued_seconds=10 * seconds * self.queue_seconds,
                       forward_seconds=seconds / 2, team_steps=320 * seconds)

    def _beat(self, kind: str, identity: str, **growth: float) -> None:
        counters = self.counters.setdefault((kind, identity), dict.fromkeys(growth, 0.0))
        for name, amount in growth.items():
            counters[name] += amount
        save_heartbeat(self.client, Instance(kind, identity, "", "", 0.0, self.now, dict(counters)))

    def run(self, loop: ScalingLoop, seconds: float) -> list[int]:
        """Run checks until the time has passed; return the size of the rollouts' Deployment after each."""
        sizes = []
        for _ in range(math.ceil(seconds / LOOK)):
            self.pass_time()
            loop.run_once()
            sizes.append(self.server.deployments["five-rollout"])
        return sizes


def looking(state: RunState, api: Any, cluster: Cluster, config: AutoscalerConfig | None = None) -> ScalingLoop:
    return ScalingLoop(config or settings(), api, state, lambda: cluster.now)


def scaled(state: RunState) -> list[Any]:
    return [e for e in state.events.read() if e.who == "autoscaler"]


def shown(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def test_starved_optimizers_get_rollouts_until_target_reuse(
        state: RunState, api: KubernetesApi, server: ApiServer) -> None:
    cluster = Cluster(state.redis, server, needed=10)
    loop = looking(state, api, cluster)
    counted = ("five_controller_autoscaler_decisions_total", {"component": "rollout", "reason": "optimizers_wait"})
    before = shown(counted[0], **counted[1]) or 0
    sizes = cluster.run(loop, 450)
    assert sizes[-1] == 10 and sizes == sorted(sizes) and server.deployments["five-inference"] == 2
    events = scaled(state)
    assert [(e.what, e.details["from"], e.details["to"]) for e in events] == [
        ("rollout.scaled", 4, 6), ("rollout.scaled", 6, 9), ("rollout.scaled", 9, 10)]
    first = events[0].details
    assert first["reason"] == "optimizers_wait" and first["deployment"] == "five-rollout" and first["wanted"] == 10
    assert first["signals"]["unpaced_reuse"] == pytest.approx(2.5)
    assert first["signals"]["optimizers_starved"] == pytest.approx(0.6)
    assert shown("five_controller_autoscaler_desired_instances", component="rollout") == 10
    assert shown("five_controller_autoscaler_unpaced_reuse_ratio") == pytest.approx(1.0, abs=0.01)
    assert shown(counted[0], **counted[1]) == before + 3
    view = state.table("autoscaler").get("rollout")
    assert view["replicas"] == 10 and view["reason"] == "in_band" and view["signals"]["rollouts"] == 10


def test_throttled_rollouts_go_slowly(state: RunState, api: KubernetesApi, server: ApiServer) -> None:
    cluster = Cluster(state.redis, server, needed=3)
    server.deployments["five-rollout"] = 6
    sizes = cluster.run(looking(state, api, cluster), 1050)
    assert sizes[int(600 / LOOK)] == 6 and sizes[-1] == 3 and sizes == sorted(sizes, reverse=True)
    assert {e.details["reason"] for e in scaled(state)} == {"rollouts_throttled"}


def test_a_long_queue_gets_inference_servers(state: RunState, api: KubernetesApi, server: ApiServer) -> None:
    cluster = Cluster(state.redis, server, needed=4, queue_seconds=0.03)
    cluster.run(looking(state, api, cluster), 180)
    assert server.deployments == {"five-rollout": 4, "five-inference": 3}
    (event,) = scaled(state)
    assert event.what == "inference.scaled" and event.details["signals"]["queue_seconds"] == pytest.approx(0.03)


def test_another_pool_has_a_queue_of_its_own(state: RunState, api: KubernetesApi, server: ApiServer
                                                           ) -> None:
    cluster = Cluster(state.redis, server, needed=4)
    loop = looking(state, api, cluster)
    for _ in range(20):
        for name, queue in (("five-inference-5d4c9-abcde", 0.02), ("five-inference-past-77f6b-fghij", 2.0),
                            ("another-inference-8c1d2-klmno", 2.0)):
            cluster._beat("inference", name, requests=10, queued_seconds=10 * queue, forward_seconds=5, team_steps=320)
        cluster.pass_time()
        loop.run_once()
    view = state.table("autoscaler").get("inference")
    assert view["signals"]["inference"] == pytest.approx(1, abs=0.1)
    assert view["signals"]["queue_seconds"] == pytest.approx(0.02) and server.deployments["five-inference"] == 2


@pytest.mark.parametrize("status", [Status.PAUSING, Status.STOPPING, Status.FAILED])
def test_nothing_is_scaled_while_the_run_does_not_play(state: RunState, api: KubernetesApi, server: ApiServer,
                                                       status: Status) -> None:
    cluster = Cluster(state.redis, server, needed=10)
    loop = looking(state, api, cluster)
    cluster.run(loop, 75)
    state.transition(status, "test")
    server.requests.clear()
    assert cluster.run(loop, 240)[-1] == 4 and not server.requests and not scaled(state)


def test_after_a_pause_everything_is_measured_again(state: RunState, api: KubernetesApi, server: ApiServer) -> None:
    cluster = Cluster(state.redis, server, needed=10)
    loop = looking(state, api, cluster)
    cluster.run(loop, 90)
    state.transition(Status.PAUSING, "test")
    cluster.run(loop, 30)
    state.transition(Status.RUNNING, "test")
    assert set(cluster.run(loop, 90)) == {4} and cluster.run(loop, 60)[-1] == 6


def test_a_pod_that_becomes_ready_is_not_a_conflict(state: RunState, api: KubernetesApi, server: ApiServer
                                                    ) -> None:
    """The resource version changes constantly; only another size is an external decision."""
    cluster = Cluster(state.redis, server, needed=10)
    busy = iter([True, True, False] * 10)
    server.on_patch = lambda: server.touch("five-rollout") if next(busy) else None
    assert cluster.run(looking(state, api, cluster), 165)[-1] == 6


def test_concurrent_external_size_is_kept(state: RunState, api: KubernetesApi, server: ApiServer) -> None:
    cluster = Cluster(state.redis, server, needed=10)
    server.on_patch = lambda: server.resize("five-rollout", 7)
    assert cluster.run(looking(state, api, cluster), 135)[-1] == 7 and not scaled(state)


def test_refused_write_is_logged_once_and_retried(state: RunState, api: KubernetesApi, server: ApiServer,
                                                  caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(state.redis, server, needed=10)
    loop = looking(state, api, cluster)
    server.deny.add("patch")
    before = shown("five_controller_autoscaler_api_failures_total", status="403") or 0
    with caplog.at_level(logging.WARNING):
        cluster.run(loop, 600)
    refused = (shown("five_controller_autoscaler_api_failures_total", status="403") or 0) - before
    assert refused >= 3 and server.deployments["five-rollout"] == 4
    (event,) = scaled(state)
    assert event.what == "autoscaler.failed" and "Role" in event.details["error"]
    assert shown("five_controller_autoscaler_desired_instances", component="rollout") == 4
    server.deny.clear()
    assert cluster.run(loop, 300)[-1] > 4


def test_one_pool_that_cannot_be_read_does_not_hold_the_other(state: RunState, api: KubernetesApi, server: ApiServer
                                                              ) -> None:
    cluster = Cluster(state.redis, server, needed=10)
    config = settings().model_copy(update={"inference": InferenceScaling(deployment="renamed")})
    assert cluster.run(looking(state, api, cluster, config), 450)[-1] == 10
    assert [e.what for e in scaled(state)].count("autoscaler.failed") == 1


def test_a_kind_without_a_deployment_is_left_alone(state: RunState, api: KubernetesApi, server: ApiServer) -> None:
    cluster = Cluster(state.redis, server, needed=4, queue_seconds=1.0)
    config = AutoscalerConfig(enabled=True, rollout=RolloutScaling(deployment="five-rollout"))
    cluster.run(looking(state, api, cluster, config), 300)
    assert server.deployments["five-inference"] == 2
    assert all("five-inference" not in path for _, path in server.requests)


def service(state: RunState, config: AutoscalerConfig, looks: int, file: str = "laptop-1v1") -> Any:
    """Return the part of a service that keep_scaling uses, with its configuration in ``file``; it drains after some
    checks."""
    left = iter([False] * looks + [True] * 100)

    class Life:
        @property
        def draining(self) -> bool:
            return next(left)

    controller = SimpleNamespace(autoscaler=config)
    arguments = SimpleNamespace(config=file, overrides=())
    return SimpleNamespace(state=state, lifecycle=Life(), arguments=arguments, config=SimpleNamespace(
        services=SimpleNamespace(controller=controller), buffer=SimpleNamespace(sample_reuse=1.0)))


async def test_outside_a_cluster_it_is_off_and_says_so(state: RunState, monkeypatch: pytest.MonkeyPatch,
                                                       caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with caplog.at_level(logging.INFO):
        await asyncio.wait_for(keep_scaling(service(state, settings(), 100)), 30)
    assert [r.message for r in caplog.records if "autoscaler is off" in r.message]


async def test_disabled_autoscaler_never_contacts_a_cluster(state: RunState, monkeypatch: pytest.MonkeyPatch
                                                                ) -> None:
    def fail(*_: object) -> None:
        raise OutsideCluster("looked")

    monkeypatch.setattr(KubernetesApi, "in_cluster", fail)
    await asyncio.wait_for(keep_scaling(service(state, AutoscalerConfig(), 100)), 30)


async def test_failed_check_does_not_end_the_loop(
        state: RunState, api: KubernetesApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    failures = [redis.ConnectionError("away"), RuntimeError("a bug"), None]
    looks: list[int] = []

    def run_once(self: ScalingLoop) -> list[Any]:
        looks.append(1)
        failure = failures[min(len(looks) - 1, 2)]
        if failure is not None:
            raise failure
        return []

    monkeypatch.setattr(loop.ScalingLoop, "run_once", run_once)
    monkeypatch.setattr(KubernetesApi, "in_cluster", lambda *_: api)
    config = settings().model_copy(update={"interval_seconds": 0.01})
    await asyncio.wait_for(keep_scaling(service(state, config, 4)), 30)
    assert len(looks) == 4 and "a bug" in caplog.text and "away" in caplog.text


@pytest.mark.parametrize(("target", "deployment", "warned"), [
    (2.0, "five-rollout", True), (0.5, "five-rollout", True), (1.0, "five-rollout", False), (2.0, "", False)])
async def test_a_target_that_pacing_contradicts_is_pointed_out(
        state: RunState, api: KubernetesApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
        target: float, deployment: str, warned: bool) -> None:
    monkeypatch.setattr(KubernetesApi, "in_cluster", lambda *_: api)
    config = AutoscalerConfig(enabled=True, rollout=RolloutScaling(deployment=deployment, target=target))
    await asyncio.wait_for(keep_scaling(service(state, config, 0)), 30)
    assert ("buffer.sample_reuse" in caplog.text) == warned


async def test_changed_bounds_apply_at_the_next_check(
        state: RunState, api: KubernetesApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Simulates a ConfigMap update: a symbolic link to another folder."""
    def put(name: str, most: int) -> None:
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.yaml").write_text(yaml.safe_dump({"preset": "laptop-1v1", "services": {"controller": {
            "autoscaler": {"enabled": True, "interval_seconds": 0.01, "rollout": {"deployment": "r", "max": most}}}}}))
        (tmp_path / "beside").symlink_to(tmp_path / name)
        (tmp_path / "beside").rename(tmp_path / "data")

    put("first", 5)
    file = tmp_path / "data" / "run.yaml"
    seen: list[int] = []

    def run_once(self: ScalingLoop) -> list[Any]:
        rule = self._autoscaler.rollout
        assert rule is not None
        seen.append(rule.max)
        if len(seen) == 2:
            put("second", 9)
        if len(seen) == 4:
            (tmp_path / "second" / "run.yaml").write_text("services: {controller: {autoscaler: {rollout: {max: no}}}}")
        return []

    monkeypatch.setattr(loop.ScalingLoop, "run_once", run_once)
    monkeypatch.setattr(KubernetesApi, "in_cluster", lambda *_: api)
    started = load(file).services.controller.autoscaler
    await asyncio.wait_for(keep_scaling(service(state, started, 6, str(file))), 30)
    assert seen == [5, 5, 9, 9, 9, 9]


def test_a_new_rule_keeps_the_history(state: RunState, api: KubernetesApi) -> None:
    loop = ScalingLoop(settings(), api, state)
    before = dict(loop._autoscaler._scalers)
    loop.update(settings(min=2))
    assert loop._autoscaler._scalers == before and before["rollout"].rule.min == 2
    loop.update(AutoscalerConfig())
    assert loop._autoscaler.kinds == ()

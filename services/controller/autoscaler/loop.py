"""The autoscaler's loop: reads heartbeats, decides (autoscaler.rules), sets sizes and records the reasons."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import redis

from five.run.config import RunConfig
from five.run.config.autoscaler import AutoscalerConfig
from five.services.controller import metrics
from five.services.controller.autoscaler.kubernetes_api import (
    ApiFailed,
    DeploymentScale,
    KubernetesApi,
    OutsideCluster,
    Pod,
    ResourceConflict,
    deployment_of,
)
from five.services.controller.autoscaler.live_settings import LiveSettings
from five.services.controller.autoscaler.rules import Autoscaler, Decision, Kind
from five.services.controller.autoscaler.signals import HeartbeatSample, Signals, SignalWindow
from rapid.service import Service
from rapid.store.leases import Instance, Leases
from rapid.store.state import RunState, Status

log = logging.getLogger(__name__)

WHO = "autoscaler"
TABLE = "autoscaler"  # of the run's state: the last decision for each kind, for REST
MAX_ATTEMPTS = 3  # of a write that conflicts with others


class ScaleApi(Protocol):
    """The calls to the cluster that the loop needs (autoscaler.kubernetes_api.KubernetesApi)."""

    def scale(self, deployment: str) -> DeploymentScale: ...

    def resize(self, deployment: str, replicas: int, version: str) -> DeploymentScale: ...

    def pods(self, selector: str) -> list[Pod]: ...

    def set_deletion_cost(self, pod: str, cost: int) -> None: ...


@dataclass
class _DeploymentSize:
    """A Deployment and its scale."""

    name: str
    scale: DeploymentScale


class ScalingLoop:
    """The autoscaler's loop, which makes one blocking pass at a time. ``clock`` returns monotonic seconds."""

    def __init__(self, config: AutoscalerConfig, api: ScaleApi, state: RunState,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._state = state
        self._leases = Leases(state.redis, state.run)
        self._clock = clock
        self._window = SignalWindow(config.window_seconds)
        self._autoscaler = Autoscaler(None, None)
        self._reported_errors: dict[str, str] = {}
        self.update(config)

    def update(self, config: AutoscalerConfig) -> None:
        """Use other settings from the next pass on."""
        self._config = config
        self._window.seconds = config.window_seconds
        self._names: dict[Kind, str] = {"rollout": config.rollout.deployment, "inference": config.inference.deployment}
        self._autoscaler.update(config.rollout if config.rollout.deployment else None,
                                config.inference if config.inference.deployment else None)

    def run_once(self) -> list[Decision]:
        """Decide and apply the sizes once. Raise redis.RedisError if the run's state cannot be read."""
        now = self._clock()
        status = self._state.status()
        if status is None or status.status is not Status.RUNNING:
            self._reset()
            return []
        live = self._leases.live()
        if any(i.stats.get("holding") for i in live if i.kind == "optimizer"):
            self._reset()  # learning is blocked by a store, and everything else with it
            return []
        self._window.observe(now, [HeartbeatSample(i.kind, i.id, i.beaten_at, i.started_at, i.stats)
                                   for i in self._own_instances(live)])
        signals = self._window.signals()
        metrics.show_signals(signals.as_dict() if signals else {})
        seen = {kind: found for kind in self._autoscaler.kinds if (found := self._size(kind)) is not None}
        decisions = self._autoscaler.decide(now, signals, {kind: found.scale.replicas for kind, found in seen.items()})
        for decision in decisions:
            found = seen[decision.kind]
            done = not decision.changes or self._apply(decision, found, live, signals)
            desired = decision.after if done else decision.before
            metrics.show_decision(decision.kind, desired, found.scale.present, decision.reason)
            self._state.table(TABLE).set(decision.kind, {
                "at": time.time(), "deployment": found.name, "replicas": desired, "present": found.scale.present,
                "wanted": decision.wanted, "reason": str(decision.reason),
                "signals": signals.as_dict() if signals else {}})
        return decisions

    def _reset(self) -> None:
        """Drop all measurements: while the run is not running, waits say nothing about pool sizes."""
        self._window.reset()
        self._autoscaler.reset()
        metrics.show_signals({})

    def _own_instances(self, live: Sequence[Instance]) -> list[Instance]:
        """Return the instances without the pods of other Deployments of the same kind, such as a pool for past
        versions.

        Instances are identified by pod names. If no pod name belongs to the Deployment, all instances count.
        """
        present = {(i.kind, deployment_of(i.id)) for i in live}
        strict = {kind: name for kind, name in self._names.items() if (kind, name) in present}
        return [i for i in live if i.kind not in strict or deployment_of(i.id) == strict[i.kind]]

    def _size(self, kind: Kind) -> _DeploymentSize | None:
        name = self._names[kind]
        try:
            found = _DeploymentSize(name, self._api.scale(name))
        except ApiFailed as error:
            self._report_error(kind, error)
            return None
        self._reported_errors.pop(kind, None)
        return found

    def _apply(self, decision: Decision, found: _DeploymentSize, live: Sequence[Instance],
               signals: Signals | None) -> bool:
        """Set the decided size, unless somebody else has changed it meanwhile. Return whether it was set."""
        if self._config.deletion_cost and decision.after < decision.before:
            self._mark_for_deletion(decision, found.scale, live)
        try:
            done = self._resize(decision, found)
        except ApiFailed as error:
            self._report_error(f"resize {decision.kind}", error)
            return False
        self._reported_errors.pop(f"resize {decision.kind}", None)
        if not done:
            log.info("%s: replicas were changed by somebody else, skipping this pass", found.name)
            return False
        log.info("%s: %d -> %d replicas (%s)", found.name, decision.before, decision.after, decision.reason)
        self._state.events.append(WHO, f"{decision.kind}.scaled", {
            "deployment": found.name, "from": decision.before, "to": decision.after, "wanted": decision.wanted,
            "reason": str(decision.reason), "signals": signals.as_dict() if signals else {}})
        return True

    def _resize(self, decision: Decision, found: _DeploymentSize) -> bool:
        scale = found.scale
        for _ in range(MAX_ATTEMPTS):
            try:
                self._api.resize(found.name, decision.after, scale.version)
                return True
            except ResourceConflict:
                # The object's version changes with every pod; only another size is a conflict.
                scale = self._api.scale(found.name)
                if scale.replicas != decision.before:
                    return False
        return False

    def _mark_for_deletion(self, decision: Decision, scale: DeploymentScale, live: Sequence[Instance]) -> None:
        """Mark the pods to remove first: pods without a heartbeat, then the youngest, because they lose the least
        work."""
        started_at = {i.id: i.started_at for i in live if i.kind == decision.kind}
        try:
            pods = [pod for pod in self._api.pods(scale.selector) if not pod.ending]
            pods.sort(key=lambda pod: started_at.get(pod.name, float("inf")), reverse=True)
            for pod in pods[:decision.before - decision.after]:
                if pod.cost != -1:
                    self._api.set_deletion_cost(pod.name, -1)
            self._reported_errors.pop("pods", None)
        except ApiFailed as error:
            self._report_error("pods", error)

    def _report_error(self, what: str, error: ApiFailed) -> None:
        """Count every failure, and log it when its status is new."""
        metrics.API_FAILURES.labels(str(error.status)).inc()
        if self._reported_errors.get(what) != str(error.status):
            self._reported_errors[what] = str(error.status)
            log.warning("%s", error)
            self._state.events.append(WHO, "autoscaler.failed", {"what": what, "error": str(error)})


async def keep_scaling(service: Service[RunConfig]) -> None:
    """Run the autoscaler until the service drains. Errors are logged and never stop the controller."""
    settings = service.config.services.controller.autoscaler
    if not settings.enabled:
        return
    try:
        api = await asyncio.to_thread(KubernetesApi.in_cluster, settings.timeout_seconds)
    except OutsideCluster as error:
        log.warning("autoscaler is off: %s", error)
        return
    reuse = service.config.buffer.sample_reuse
    if settings.rollout.deployment and settings.rollout.target != reuse:
        log.warning("services.controller.autoscaler.rollout.target is %g, but optimizers are paced to a sample reuse "
                    "of %g (buffer.sample_reuse), so one side always waits: set both to the same value",
                    settings.rollout.target, reuse)
    loop = ScalingLoop(settings, api, service.state)
    file = LiveSettings(service.arguments.config, service.arguments.overrides, settings)
    log.info("autoscaler started: interval %g s, Deployments %s, namespace %s", settings.interval_seconds,
             ", ".join(n for n in (settings.rollout.deployment, settings.inference.deployment) if n) or "nothing",
             api.namespace)
    while not service.lifecycle.draining:
        try:
            now = await asyncio.to_thread(file.read)
            if now != settings:
                settings = now
                loop.update(settings)
            await asyncio.to_thread(loop.run_once)
        except redis.RedisError as error:
            log.warning("autoscaler cannot read the run: %s", error)
        except Exception:
            log.exception("autoscaler pass failed, trying again")
        await asyncio.sleep(settings.interval_seconds)

"""The autoscaler's loop: reads heartbeats, decides (scaling.rules), sets sizes, and writes down why."""

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
    Conflict,
    KubernetesApi,
    OutsideCluster,
    Pod,
    Scale,
)
from five.services.controller.autoscaler.live_settings import LiveSettings
from five.services.controller.autoscaler.rules import Autoscaler, Decision, Kind
from five.services.controller.autoscaler.signals import Beat, Signals, SignalWindow
from rapid.service import Service
from rapid.store.leases import Instance, Leases
from rapid.store.state import RunState, Status

log = logging.getLogger(__name__)

WHO = "autoscaler"
TABLE = "autoscaler"  # of the run's state: the last look at each kind, for REST
TRIES = 3  # of a write that others keep overtaking


class Api(Protocol):
    """What the loop asks of the cluster (services.controller.kubernetes_api.KubernetesApi)."""

    def scale(self, deployment: str) -> Scale: ...

    def resize(self, deployment: str, replicas: int, version: str) -> Scale: ...

    def pods(self, selector: str) -> list[Pod]: ...

    def set_deletion_cost(self, pod: str, cost: int) -> None: ...


@dataclass
class _Seen:
    """A Deployment as the last look found it."""

    name: str
    scale: Scale


class ScalingLoop:
    """One look at a time. Blocking: for a thread of its own. ``clock`` is in seconds of any origin."""

    def __init__(self, config: AutoscalerConfig, api: Api, state: RunState,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._state = state
        self._leases = Leases(state.redis, state.run)
        self._clock = clock
        self._window = SignalWindow(config.window_seconds)
        self._brain = Autoscaler(None, None)
        self._troubles: dict[str, str] = {}
        self.take(config)

    def take(self, config: AutoscalerConfig) -> None:
        """Goes on by other settings; bounds hold from the next look on."""
        self._config = config
        self._window.seconds = config.window_seconds
        self._names: dict[Kind, str] = {"rollout": config.rollout.deployment, "inference": config.inference.deployment}
        self._brain.take(config.rollout if config.rollout.deployment else None,
                         config.inference if config.inference.deployment else None)

    def look(self) -> list[Decision]:
        """Looks once, and acts. Raises redis.RedisError when the run's state cannot be read."""
        now = self._clock()
        status = self._state.status()
        if status is None or status.status is not Status.RUNNING:
            # Whoever is paused, starting or operated on waits for other reasons than too few or too many.
            self._window.forget()
            self._brain.forget()
            return []
        live = self._leases.live()
        if any(i.stats.get("holding") for i in live if i.kind == "optimizer"):
            # Learning waits for a store, and with it all else: that says nothing about sizes.
            self._window.forget()
            self._brain.forget()
            return []
        self._window.observe(now, [Beat(i.kind, i.id, i.beaten_at, i.started_at, i.stats) for i in self._ours(live)])
        signals = self._window.signals()
        metrics.show_signals(signals.as_dict() if signals else {})
        seen = {kind: found for kind in self._brain.kinds if (found := self._size(kind)) is not None}
        decisions = self._brain.decide(now, signals, {kind: found.scale.replicas for kind, found in seen.items()})
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

    def _ours(self, live: Sequence[Instance]) -> list[Instance]:
        """Without the pods of other Deployments of a kind: a pool for past versions has a queue of its own.

        Instances are known by their pods' names; where no name is one of the Deployment's, all count.
        """
        present = {(i.kind, self._deployment(i)) for i in live}
        strict = {kind: name for kind, name in self._names.items() if (kind, name) in present}
        return [i for i in live if i.kind not in strict or self._deployment(i) == strict[i.kind]]

    @staticmethod
    def _deployment(instance: Instance) -> str:
        return instance.id.rsplit("-", 2)[0]

    def _size(self, kind: Kind) -> _Seen | None:
        name = self._names[kind]
        try:
            found = _Seen(name, self._api.scale(name))
        except ApiFailed as error:
            self._trouble(kind, error)
            return None
        self._troubles.pop(kind, None)
        return found

    def _apply(self, decision: Decision, found: _Seen, live: Sequence[Instance], signals: Signals | None) -> bool:
        """Sets the size that was decided, unless somebody else has set another meanwhile. Returns whether it did."""
        if self._config.deletion_cost and decision.after < decision.before:
            self._choose(decision, found.scale, live)
        try:
            done = self._resize(decision, found)
        except ApiFailed as error:
            self._trouble(f"resize {decision.kind}", error)
            return False
        self._troubles.pop(f"resize {decision.kind}", None)
        if not done:
            log.info("%s: somebody else has set its replicas, they are left alone for now", found.name)
            return False
        log.info("%s: %d -> %d replicas (%s)", found.name, decision.before, decision.after, decision.reason)
        self._state.events.append(WHO, f"{decision.kind}.scaled", {
            "deployment": found.name, "from": decision.before, "to": decision.after, "wanted": decision.wanted,
            "reason": str(decision.reason), "signals": signals.as_dict() if signals else {}})
        return True

    def _resize(self, decision: Decision, found: _Seen) -> bool:
        scale = found.scale
        for _ in range(TRIES):
            try:
                self._api.resize(found.name, decision.after, scale.version)
                return True
            except Conflict:
                # The object changes with every pod that starts or ends; only another size matters.
                scale = self._api.scale(found.name)
                if scale.replicas != decision.before:
                    return False
        return False

    def _choose(self, decision: Decision, scale: Scale, live: Sequence[Instance]) -> None:
        """Has those pods removed first that have sent no heartbeat yet, then the youngest: they lose least."""
        begun = {i.id: i.started_at for i in live if i.kind == decision.kind}
        try:
            pods = [pod for pod in self._api.pods(scale.selector) if not pod.ending]
            pods.sort(key=lambda pod: begun.get(pod.name, float("inf")), reverse=True)
            for pod in pods[:decision.before - decision.after]:
                if pod.cost != -1:
                    self._api.set_deletion_cost(pod.name, -1)
            self._troubles.pop("pods", None)
        except ApiFailed as error:
            self._trouble("pods", error)

    def _trouble(self, what: str, error: ApiFailed) -> None:
        """Counts every failure; tells of it when it is a new one."""
        metrics.API_FAILURES.labels(str(error.status)).inc()
        if self._troubles.get(what) != str(error.status):
            self._troubles[what] = str(error.status)
            log.warning("%s", error)
            self._state.events.append(WHO, "autoscaler.failed", {"what": what, "error": str(error)})


async def keep_scaling(service: Service[RunConfig]) -> None:
    """Scales until the service drains. Whatever goes wrong here, the controller goes on."""
    settings = service.config.services.controller.autoscaler
    if not settings.enabled:
        return
    try:
        api = await asyncio.to_thread(KubernetesApi.in_cluster, settings.timeout_seconds)
    except OutsideCluster as error:
        log.warning("the autoscaler is off: %s", error)
        return
    reuse = service.config.buffer.sample_reuse
    if settings.rollout.deployment and settings.rollout.target != reuse:
        log.warning("services.controller.autoscaler.rollout.target is %g, but optimizers are paced to a sample reuse "
                    "of %g (buffer.sample_reuse): one side will always wait", settings.rollout.target, reuse)
    loop = ScalingLoop(settings, api, service.state)
    file = LiveSettings(service.arguments.config, service.arguments.overrides, settings)
    log.info("the autoscaler looks every %g s at %s in namespace %s", settings.interval_seconds,
             ", ".join(n for n in (settings.rollout.deployment, settings.inference.deployment) if n) or "nothing",
             api.namespace)
    while not service.lifecycle.draining:
        try:
            now = await asyncio.to_thread(file.read)
            if now != settings:
                settings = now
                loop.take(settings)
            await asyncio.to_thread(loop.look)
        except redis.RedisError as error:
            log.warning("the autoscaler cannot see the run: %s", error)
        except Exception:
            log.exception("the autoscaler failed; it tries again")
        await asyncio.sleep(settings.interval_seconds)

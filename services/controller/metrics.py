"""Metrics of the controller: the run as a whole, and its Redis servers, which have no metrics page."""

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping

import redis

from five.services.controller.run import environment_servers
from rapid.store.connection import Role
from rapid.store.leases import Instance
from rapid.store.state import Status
from rapid.telemetry.metrics import counter, gauge, set_unknown

STATE = gauge("controller", "run", "state", "1 for the run's current status, 0 for the others.", ("status",))
HEAD = set_unknown(gauge("controller", "head", "versions", "Newest version in the parameter store."))
LIVE = gauge("controller", "live", "instances", "Service instances with a current heartbeat, by component; for "
             "dota_env, servers that rollouts report.", ("component",))
EPOCH = set_unknown(gauge("controller", "run_epoch", "info", "The run's epoch; surgeries and reverts begin a new one."))
REVISION = set_unknown(gauge("controller", "run_record_revision", "info", "Revision of the run's record."))
DRIFT = set_unknown(gauge("controller", "config_drift", "keys",
                          "Keys of the game and the model in which the "
                          "controller's configuration file differs from the run's record, which takes precedence."))
NOT_IDLE = gauge("controller", "not_idle", "instances", "Services that are not idle yet in the current pause.")
REDIS_UP = gauge("controller", "redis_up", "state", "1 if the Redis of that role (state, params) responds, else 0.",
                 ("role",))
REDIS_SECONDS = gauge("controller", "redis_answer", "seconds", "Response time of the Redis of that role.",
                      ("role",))
REDIS_USED = gauge("controller", "redis_used", "bytes", "Memory used by the Redis of that role.", ("role",))
REDIS_LIMIT = gauge("controller", "redis_limit", "bytes", "Memory limit of the Redis of that role; 0: none.",
                    ("role",))
REDIS_SAVED = gauge("controller", "redis_append_only", "state", "1 if the Redis of that role has an append-only "
                    "file whose last write succeeded, else 0.", ("role",))
COMPONENTS = ("controller", "dota_env", "evaluator", "inference", "opponents", "optimizer", "play", "rollout")


def show_run(status: str | None, head: int | None, live: Iterable[Instance]) -> None:
    """Set the gauges of the run's state."""
    for each in Status:
        STATE.labels(str(each)).set(float(each == status))
    if head is not None:
        HEAD.set(head)
    instances = list(live)
    count = Counter(instance.kind for instance in instances)
    count[environment_servers.KIND] = len(environment_servers.environment_servers(instances))
    for component in {*COMPONENTS, *count}:
        LIVE.labels(component).set(count[component])


def show_record(epoch: int, revision: int, drift: int, not_idle: int) -> None:
    """Set the gauges of the run's record, of drifting keys and of services that are not idle yet."""
    EPOCH.set(epoch)
    REVISION.set(revision)
    DRIFT.set(drift)
    NOT_IDLE.set(not_idle)


def show_stores(clients: Mapping[Role, redis.Redis]) -> None:
    """Query each Redis, by role, for its state. A server that does not respond is shown as down."""
    for role, client in clients.items():
        began = time.perf_counter()
        try:
            found = client.info()
        except (redis.RedisError, OSError):
            REDIS_UP.labels(role).set(0)
            continue
        REDIS_UP.labels(role).set(1)
        REDIS_SECONDS.labels(role).set(time.perf_counter() - began)
        REDIS_USED.labels(role).set(float(found["used_memory"]))
        REDIS_LIMIT.labels(role).set(float(found.get("maxmemory", 0)))
        kept = bool(found.get("aof_enabled")) and found.get("aof_last_write_status") == "ok"
        REDIS_SAVED.labels(role).set(float(kept))


# Metrics of the autoscaler.
DESIRED = gauge("controller", "autoscaler_desired", "instances", "Pods requested by the autoscaler, by component.",
                ("component",))
CURRENT = gauge("controller", "autoscaler_current", "instances", "Existing pods of that component's Deployment.",
                ("component",))
DECISIONS = counter("controller", "autoscaler_decisions", "Decisions of the autoscaler, by component and reason "
                    "(autoscaler.rules.ScaleReason).", ("component", "reason"))
API_FAILURES = counter("controller", "autoscaler_api_failures", "Failed requests to the Kubernetes API, by HTTP "
                       "status; 0: no response.", ("status",))
UNPACED_REUSE = set_unknown(gauge("controller", "autoscaler_unpaced_reuse", "ratio",
                                  "Sample reuse if neither rollouts "
                                  "nor optimizers waited for each other: the signal for rollouts."))
THROTTLED = set_unknown(gauge("controller", "autoscaler_rollouts_throttled",
                              "ratio", "Share of their time that rollouts wait for learning."))
STARVED = set_unknown(gauge("controller", "autoscaler_optimizers_starved", "ratio",
                            "Share of their time that optimizers have no batch."))
QUEUE = set_unknown(gauge("controller", "autoscaler_queue", "seconds",
                          "Mean time a request waits for its batch; inference is scaled by it."))
BUSY = set_unknown(gauge("controller", "autoscaler_inference_busy", "ratio",
                         "Share of their time that inference servers compute."))
_SIGNALS = {"unpaced_reuse": UNPACED_REUSE, "rollouts_throttled": THROTTLED, "optimizers_starved": STARVED,
            "queue_seconds": QUEUE, "inference_busy": BUSY}


def show_signals(known: Mapping[str, float]) -> None:
    """Set the gauges of the autoscaler's signals (autoscaler.signals.Signals.as_dict); missing signals become NaN."""
    for name, metric in _SIGNALS.items():
        metric.set(known.get(name, math.nan))


def show_decision(component: str, desired: int, current: int, reason: str) -> None:
    """Count one pass of the autoscaler over a component."""
    DESIRED.labels(component).set(desired)
    CURRENT.labels(component).set(current)
    DECISIONS.labels(component, str(reason)).inc()

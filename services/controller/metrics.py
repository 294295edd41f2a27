"""What the controller shows on its metrics page: the run as a whole, and the Redis servers that hold it.

What a Redis says of itself is shown here because the servers have no metrics page of their own.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping

import redis

from rapid.store.connection import Role
from rapid.store.leases import Instance
from rapid.store.state import Status
from rapid.telemetry.metrics import gauge, unknown

STATE = gauge("controller", "run", "state", "1 for the status that the run is in, 0 for every other.", ("status",))
HEAD = unknown(gauge("controller", "head", "versions", "Newest version in the parameter store."))
LIVE = gauge("controller", "live", "instances", "Service instances that have given a sign of life lately, by component.",
             ("component",))
REDIS_UP = gauge("controller", "redis_up", "state", "1 when the Redis of that role (state, params) answers, else 0.",
                 ("role",))
REDIS_SECONDS = gauge("controller", "redis_answer", "seconds", "Time of one exchange with the Redis of that role.",
                      ("role",))
REDIS_USED = gauge("controller", "redis_used", "bytes", "Memory that the Redis of that role uses.", ("role",))
REDIS_LIMIT = gauge("controller", "redis_limit", "bytes", "Memory that the Redis of that role may use; 0: no limit.",
                    ("role",))
REDIS_SAVED = gauge("controller", "redis_append_only", "state", "1 when the Redis of that role keeps an append-only "
                    "file and its last write went well, else 0.", ("role",))
COMPONENTS = ("controller", "dota_env", "evaluator", "inference", "opponents", "optimizer", "rollout")


def show_run(status: str | None, head: int | None, live: Iterable[Instance]) -> None:
    """Brings the gauges to the run's state."""
    for each in Status:
        STATE.labels(str(each)).set(float(each == status))
    if head is not None:
        HEAD.set(head)
    count = Counter(instance.kind for instance in live)
    for component in {*COMPONENTS, *count}:
        LIVE.labels(component).set(count[component])


def show_stores(clients: Mapping[Role, redis.Redis]) -> None:
    """Asks each Redis, by role, how it is. One that does not answer is shown as down."""
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

"""Connections that a cluster holds to the state's Redis, against those that it takes (``maxclients``, 10,000).

Rollouts are many and hold one each; games beside them (dota-env, sidecars of the rollouts' pods) have no Redis and hold
none. The chart refuses values by the same sum (`charts/templates/_validate.tpl`).
"""

from five.capacity.cluster_sizes import Cluster
from rapid.store.connection import MAX_CONNECTIONS

MAX_CLIENTS = 10_000  # Redis' own default, and the chart's
OPTIMIZER = 10  # threads of a rank that use it at once, at most
OTHERS = 100  # controllers, opponents, evaluators, probes, people


def of_state(c: Cluster) -> int:
    """Connections to the state's Redis, all processes at their most."""
    return (c.rollouts * MAX_CONNECTIONS["rollout"] + c.inference * MAX_CONNECTIONS["inference"]
            + c.optimizers * OPTIMIZER + OTHERS)

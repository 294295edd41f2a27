"""Connections of a cluster to the state's Redis, compared with its limit (``maxclients``, 10,000).

Each rollout holds one connection. Environment servers and sidecars of the rollouts' pods hold none. The chart
refuses values by the same sum (`charts/templates/_validate.tpl`).
"""

from five.capacity.cluster_sizes import Cluster
from rapid.store.connection import MAX_CONNECTIONS

MAX_CLIENTS = 10_000  # Redis' own default, and the chart's
OPTIMIZER = 10  # most threads of a rank that use Redis at once
OTHERS = 100  # controllers, opponents, evaluators, probes, people


def of_state(c: Cluster) -> int:
    """Return the largest number of connections to the state's Redis."""
    return (c.rollouts * MAX_CONNECTIONS["rollout"] + c.inference * MAX_CONNECTIONS["inference"]
            + c.optimizers * OPTIMIZER + OTHERS)

"""Metrics of the opponents service."""

import math
from collections.abc import Mapping

from rapid.telemetry.metrics import counter, gauge, set_unknown

ASSIGNED = counter("opponents", "assigned_games", "Games with an assigned opponent: latest or past.", ("opponent",))
REPORTED = counter("opponents", "reported_games", "Results against past versions, by outcome for the training agent: "
                   "won, lost, drawn.", ("outcome",))
POOL_SIZE = gauge("opponents", "pool", "versions", "Past versions in the pool.")
POOL_NEWEST = set_unknown(gauge("opponents", "pool_newest", "versions", "Newest version in the pool."))
POOL_EFFECTIVE = gauge("opponents", "pool_effective", "versions", "Effective number of past opponents: the exponential "
                       "of the entropy of their probabilities, at most the pool's size.")

for _opponent in ("latest", "past"):
    ASSIGNED.labels(_opponent)
for _outcome in ("won", "lost", "drawn"):
    REPORTED.labels(_outcome)


def show_pool(chances: Mapping[int, float]) -> None:
    """Set the gauges of the pool from each version's probability among past opponents."""
    POOL_SIZE.set(len(chances))
    if chances:
        POOL_NEWEST.set(max(chances))
        total = sum(chances.values())
        shares = [c / total for c in chances.values() if c > 0]
        POOL_EFFECTIVE.set(math.exp(-sum(p * math.log(p) for p in shares)))

"""What the opponents service shows on its metrics page."""

from rapid.telemetry.metrics import counter, gauge

ASSIGNED = counter("opponents", "assigned_games", "Games that were given an opponent: latest or past.", ("opponent",))
REPORTED = counter("opponents", "reported_games", "Results against past versions, by outcome for the training agent.",
                   ("outcome",))
POOL_SIZE = gauge("opponents", "pool", "versions", "Past versions in the pool.")

"""Random kills of processes, and the losses they cause.

FIVE_FAULT_KILLS kills over FIVE_FAULT_MINUTES minutes: by default 20 over 4; a release needs 100 over 20.
"""

import os
import random
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
import redis

from tests.faults.cluster import running
from tests.faults.losses import keep, losses

pytestmark = [pytest.mark.faults, pytest.mark.timeout(7200)]
KILLS = int(os.environ.get("FIVE_FAULT_KILLS", "20"))
MINUTES = float(os.environ.get("FIVE_FAULT_MINUTES", "4"))
SEED = int(os.environ.get("FIVE_FAULT_SEED", "1"))
GAMES = 4  # per rollout of the tiny run; each loses at most its unfinished segment


def test_random_kills(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    with running(tmp_path) as run:
        before, began, killed = run.head(), time.monotonic(), Counter[str]()
        unsent = 0
        for number in range(KILLS):
            name = rng.choice(run.names())
            if name.startswith("rollout"):
                with suppress(redis.RedisError):
                    found = run.instance("rollout")
                    unsent += 0 if found is None else int(found.stats.get("unsent", 0))
            run.kill(name)
            killed[name.rpartition("-")[0]] += 1
            time.sleep(max(began + (number + 1) * 60 * MINUTES / KILLS - time.monotonic(), 0))
        took = run.goes_on(2)
        after = losses(run)
        rollouts = killed["rollout"]
        keep("kills", {
            "fault": f"{KILLS} random kills", "seconds": round(60 * MINUTES), "goes_on": round(took, 1),
            "versions": after.versions, "ratings": after.ratings, "games": after.games, "learning": after.learning,
            "killed": dict(killed), "from": before, "to": run.head(),
            "segments": {"rollouts killed": rollouts, "finished and not acknowledged then": unsent,
                         "unfinished, at most": (rollouts + killed["dota_env"]) * GAMES}})
        assert (after.versions, after.ratings, after.games) == (0, 0, 0), after
        # A checkpoint every two versions, with at most one version and one checkpoint unfinished.
        assert all(behind <= 4 for behind in after.learning), after.learning
        assert run.head() > before and not run.cluster.supervisor.failed()

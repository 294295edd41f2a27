"""A partition and a slow peer on each link between two processes: the run continues, and losses are counted."""

import os
import time
from pathlib import Path

import pytest

from tests.faults.cluster import LINKS, running
from tests.faults.links import HARMS
from tests.faults.losses import keep, losses

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]
SECONDS = float(os.environ.get("FIVE_FAULT_SECONDS", "6"))
ONLY = os.environ.get("FIVE_FAULT_LINKS", "")  # "rollout-inference,optimizer-state"; empty: all


def test_partition_and_slow_peer_on_each_link(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        for client, server in LINKS:
            way = f"{client}-{server}"
            if ONLY and way not in ONLY.split(","):
                continue
            link = run.cluster.links[client, server]
            for fault, harm in zip(HARMS, (link.partition, link.slow), strict=True):
                before = losses(run)
                harm()
                time.sleep(SECONDS)
                link.open()
                took = run.goes_on(2)
                after = losses(run)
                keep(f"link-{way}-{fault.replace(' ', '-')}", {
                    "fault": f"{fault}, {client} to {server}", "seconds": SECONDS, "goes_on": round(took, 1),
                    "versions": after.versions - before.versions, "ratings": after.ratings - before.ratings,
                    "games": after.games - before.games, "learning": after.learning[len(before.learning):]})
                assert (after.versions, after.ratings, after.games) == (0, 0, 0), (way, fault, after)
                assert after.learning == before.learning, (way, fault)  # no optimizer restarted from a checkpoint
        dead = [s.name for s in run.cluster.supervisor.status() if s.restarts]
        assert not dead, f"no process has to die of that: {dead}\n{run.logs()}"

"""Clocks that jump, hours forwards and back, of all processes and Redis (libfaketime): nobody is taken for dead,
nothing is lost or counted twice."""

import os
import time
from pathlib import Path

import pytest

from tests.faults.cluster import running
from tests.faults.losses import keep, losses

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]
LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
JUMPS = ("+3600", "-7200", "+86400", "+0")
SECONDS = float(os.environ.get("FIVE_FAULT_SECONDS", "6"))


def test_clocks_jump(tmp_path: Path) -> None:
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not there: apt-get install libfaketime")
    clock = tmp_path / "clock"
    clock.write_text("+0\n")
    # Durations are taken from the monotonic clock, which no jump concerns; it is left alone, as the kernel leaves it.
    environment = {"LD_PRELOAD": str(LIBRARY), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
                   "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    with running(tmp_path, environment=environment) as run:
        for jump in JUMPS:
            before = losses(run)
            clock.write_text(f"{jump}\n")
            time.sleep(SECONDS)
            took = run.goes_on(2)
            after = losses(run)
            keep(f"clock-{jump}", {
                "fault": f"all clocks at {jump} s", "seconds": SECONDS, "goes_on": round(took, 1),
                "versions": after.versions - before.versions, "ratings": after.ratings - before.ratings,
                "games": after.games - before.games, "learning": after.learning[len(before.learning):]})
            assert (after.versions, after.ratings, after.games) == (0, 0, 0), (jump, after)
        # The library is at work: the run's newest record was written a day away, when the clocks were.
        assert any(abs(r.created_at - time.time()) > 80_000 for r in run.store.records())

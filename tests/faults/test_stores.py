"""Stores that refuse writes for long (silent Redis, full disk): learning holds, reports why, and continues."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from tests.faults.cluster import Watched, running
from tests.faults.losses import keep, losses

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1200)]
SECONDS = float(os.environ.get("FIVE_FAULT_STORE_SECONDS", "30"))
MEBIBYTES = 48


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Create small volumes (tmpfs); skip where mounting is not allowed."""
    mounted: list[Path] = []

    def make(name: str) -> Path:
        path = tmp_path / name
        path.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={MEBIBYTES}m", "tmpfs", str(path)],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no volume can be mounted here: {done.stderr.strip()}")
        mounted.append(path)
        return path

    yield make
    for path in mounted:
        subprocess.run(["umount", "-l", str(path)], check=False)


@contextmanager
def full(path: Path) -> Iterator[None]:
    """Fill a volume completely within the block."""
    filler = path / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 65536)
        except OSError as error:
            assert error.errno == 28, error
    try:
        yield
    finally:
        filler.unlink()


def holding(run: Watched) -> str:
    """Return why learning holds, from the optimizer's last heartbeat."""
    found = run.instance("optimizer")
    return "" if found is None else str(found.stats.get("holding", ""))


def held_seconds(address: str) -> float:
    for line in httpx.get(f"http://{address}/metrics", timeout=10).text.splitlines():
        if line.startswith("five_optimizer_write_blocked_seconds"):
            return float(line.rpartition(" ")[2])
    raise AssertionError("the optimizer's page has no such metric")


def harmed(run: Watched, name: str, fault: str, block: Callable[[], Any], says: str = "") -> None:
    """Keep up a fault, require that learning holds, and that it continues without losses.

    ``says`` is part of the heartbeat's reason; '' where no heartbeat can be written.
    """
    before, head = losses(run), run.head()
    found = run.instance("optimizer")
    assert found is not None
    pid = run.pid("optimizer-0")
    reasons: set[str] = set()
    most = 0.0
    with block():
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                reasons.add(holding(run))
            except OSError:
                pass
            most = max(most, held_seconds(found.metrics_address))
            time.sleep(0.5)
        during = run.head()
    took = run.goes_on(2)
    after = losses(run)
    keep(f"store-{name}", {
        "fault": fault, "seconds": SECONDS, "goes_on": round(took, 1), "held": round(most, 1),
        "versions": after.versions - before.versions, "ratings": after.ratings - before.ratings,
        "games": after.games - before.games, "learning": after.learning[len(before.learning):]})
    assert most > SECONDS / 3, f"learning did not hold: {most} s, versions {head} to {during}"
    assert not says or any(says in reason for reason in reasons), reasons
    assert (after.versions, after.ratings, after.games) == (0, 0, 0), after
    assert after.learning == before.learning and run.pid("optimizer-0") == pid, run.logs()
    assert held_seconds(found.metrics_address) < 5


@contextmanager
def cut(run: Watched, server: str) -> Iterator[None]:
    links = [link for (_, to), link in run.cluster.links.items() if to == server]
    for link in links:
        link.partition()
    try:
        yield
    finally:
        for link in links:
            link.open()


@contextmanager
def refusing(run: Watched) -> Iterator[None]:
    """Make the params Redis refuse writes: it has no disk, so its memory is its volume."""
    server = redis.Redis.from_url(run.cluster.config.store.params_url)
    server.config_set("maxmemory", 1)
    try:
        yield
    finally:
        server.config_set("maxmemory", 0)


def test_silent_redis_is_waited_for(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        harmed(run, "params", "the params' Redis black-holed, for all", lambda: cut(run, "params"),
               "is not written yet")
        harmed(run, "params-full", "the params' Redis full (its maxmemory)", lambda: refusing(run))
        harmed(run, "state", "the state's Redis black-holed, for all", lambda: cut(run, "state"))


def test_full_volume_is_waited_for(tmp_path: Path, volume: Callable[[str], Path]) -> None:
    blobs, state = volume("blobs"), volume("state")
    with running(tmp_path, f"blobs.url={blobs}", redis_folders={"state": state}) as run:
        harmed(run, "blobs-full", f"the blobs' volume full ({MEBIBYTES} MiB tmpfs)", lambda: full(blobs),
               "No space left")
        # No heartbeat can be written either, so the optimizer's metrics page shows that learning holds.
        harmed(run, "state-full", "the volume of the state's append-only file full (tmpfs)", lambda: full(state))
        dead = [s.name for s in run.cluster.supervisor.status() if s.restarts]
        assert not dead, f"no process has to die of that: {dead}\n{run.logs()}"


def test_full_run_folder_is_waited_for(volume: Callable[[str], Path]) -> None:
    """The only disk is full: logs, blobs, append-only file, and the files that `five` reads."""
    place = volume("all")
    with running(place) as run:
        harmed(run, "run-folder-full", f"the volume of the whole run's folder full ({MEBIBYTES} MiB tmpfs)",
               lambda: full(place))
        dead = [s.name for s in run.cluster.supervisor.status() if s.restarts]
        assert not dead, f"no process has to die of that: {dead}\n{run.logs()}"

"""Fixtures of the command's tests."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from five.local.run_folder import RunFolder
from five.run.load import load
from rapid.embedded_redis import EmbeddedRedis
from rapid.store.leases import Leases
from rapid.store.series import Series
from rapid.store.state import RunState
from rapid.supervisor import Supervisor


class StoredRun:
    """The parts of a LocalCluster without running services, on a real Redis."""

    def __init__(self, client: redis.Redis, root: Path) -> None:
        self.state, self.series = RunState(client, "trial"), Series(client, "trial")
        self.leases, self.supervisor = Leases(client, "trial"), Supervisor(root / "logs")
        self.config, self.folder = load("laptop-1v1"), RunFolder(root / "trial")
        self.folder.create()
        self.state.create({}, "test")


@pytest.fixture
def stored_run(tmp_path: Path) -> Iterator[Any]:
    """Run without services, for code that takes a LocalCluster."""
    with EmbeddedRedis(tmp_path / "redis", append_only=False).start() as server:
        run = StoredRun(redis.Redis.from_url(server.url), tmp_path)
        yield run
        run.supervisor.stop()


@pytest.fixture
def own_handlers() -> Iterator[None]:
    """Restore the handlers of signals: a command that a signal ends leaves them ignored. nohup ignores SIGHUP from the
    start."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)

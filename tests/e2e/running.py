"""A real, tiny `five train` on this machine, observed and disturbed from outside."""

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
import redis

from five.local.run_folder import RunFolder
from five.run.config import RunConfig
from five.run.load import ConfigError, load_stored
from rapid.blobs import BlobStore
from rapid.store import acl
from rapid.store.connection import Role, connect
from rapid.store.parameters import ParameterStore
from rapid.store.state import RunState

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")

TINY = [
    "model.lstm=16", "model.lstm_input=16", "model.key=8", "model.unit_hidden=8", "model.unit=8", "model.set_hidden=4",
    "model.set=4", "model.conv_filters=2", "model.auxiliary_hidden=8",
    "learning.batch_samples=8", "learning.samples_per_segment=2", "learning.gradient_steps_per_iteration=2",
    "buffer.minimum_samples=8", "buffer.capacity_samples=64", "game.max_game_seconds=30", "game.start_seconds=-5",
    "services.rollout.games=4", "services.rollout.encoding=sparse", "services.evaluator.games=2",
    "services.evaluator.cpu_share=0.3", "services.optimizer.checkpoint_every_versions=2", "services.controller.port=0",
    "rating.games_per_rating=2", "rating.first_rating_games=2", "rating.anchors=[random]",
    "rating.required_references=[]", "league.add_every_versions=2", "store.archive_every=1",
    # A process of a busy machine may stand still for seconds: its lease lasts longer.
    "lifecycle.heartbeat_seconds=0.5", "lifecycle.lease_seconds=8", "lifecycle.poll_seconds=0.2",
    "lifecycle.grace_seconds=10"]

# For tests that need neither: each costs a process with PyTorch.
LEARNING_ONLY = ("services.evaluator.enabled=false", "services.play.enabled=false")

# Processes that tests kill: the name of the log, and a part of the command line.
KINDS = {
    "optimizer-0": "services.optimizer", "inference-0": "services.inference", "rollout-0": "services.rollout",
    "controller-0": "services.controller", "opponents-0": "services.opponents", "evaluator-0": "services.evaluator",
    "play-0": "services.play",
    "redis-state": "redis/state", "redis-params": "redis/params"}


def eventually(condition: Callable[[], T], seconds: float, what: str) -> T:
    """Return the first true value of ``condition``. Errors of an unavailable store or server are retried."""
    end = time.monotonic() + seconds
    last: Any = None
    while time.monotonic() < end:
        try:
            last = condition()
            if last:
                return last
        except (redis.RedisError, httpx.HTTPError, LookupError, OSError, ConfigError) as error:
            last = error
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds:g} s: {what} (last seen: {last!r})")


class Run:
    """A run's folder below ``place`` and its process of `five train`."""

    def __init__(self, place: Path, name: str = "tiny") -> None:
        self.place = place
        self.folder = RunFolder(place / "runs" / name)
        self.process: subprocess.Popen[bytes] | None = None

    def five(self, *arguments: str) -> list[str]:
        """The command."""
        return [sys.executable, "-m", "five.cli.main", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        """Return an environment with this source tree on the path, one thread, and without the caller's secret."""
        env = {k: v for k, v in os.environ.items() if k not in ("FIVE_CALLER_SECRET_FILE", "FIVE_CALLERS_FILE")}
        path = [ROOT / "tests/e2e/faulty_optimizer", ROOT / "libs", ROOT]
        return env | {"PYTHONPATH": os.pathsep.join(map(str, path)), "OMP_NUM_THREADS": "1"}

    def start(self, *arguments: str) -> None:
        """Start `five train` with ``arguments`` in the background; its output goes to train.log."""
        with (self.place / "train.log").open("ab") as log:
            self.process = subprocess.Popen(self.five("train", *arguments), cwd=self.place, env=self.environment,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                            start_new_session=True)

    def start_new(self, *overrides: str) -> None:
        """Start a new tiny run."""
        sets = [part for override in (*TINY, *overrides) for part in ("--set", override)]
        self.start("--preset", "laptop-1v1", "--name", self.folder.name, "--seed", "1", *sets)

    def command(self, *arguments: str, seconds: float = 300.0) -> subprocess.CompletedProcess[str]:
        """Run another `five` command to its end."""
        return subprocess.run(self.five(*arguments), cwd=self.place, env=self.environment, capture_output=True,
                              text=True, timeout=seconds, check=False)

    @functools.cached_property
    def config(self) -> RunConfig:
        """Return the configuration with the addresses of the local cluster; equal at each start."""
        return load_stored(self.folder.path / "cluster.yaml")

    @functools.cached_property
    def store(self) -> ParameterStore:
        """Return the run's versions, through new connections."""
        config = self.config
        return ParameterStore(self.redis("params"), self.redis("state"), config.name, config.store,
                              BlobStore(config.blobs.url))

    def redis(self, role: Role, user: str = acl.ADMIN) -> redis.Redis:
        """Return a client of the run's Redis as one of its users."""
        store = self.config.store
        url = store.state_url if role == "state" else store.params_url
        return connect(url, store, role, self.folder.login(user, url))

    def refusals(self) -> list[tuple[str, str, str]]:
        """Return what the run's Redis servers have refused: user, kind (command, key, channel, auth), object."""
        rows: list[Any] = [row for role in acl.ROLES for row in self.redis(role).acl_log()]
        return [(row["username"], row["reason"], row["object"]) for row in rows]

    def state(self) -> RunState:
        """Return the run's state."""
        return RunState(self.redis("state"), self.config.name)

    def head(self) -> int:
        """Return the newest version; -1 before the first."""
        head = self.store.head()
        return -1 if head is None else head

    def wait_version(self, version: int, seconds: float = 300.0) -> int:
        """Wait until a version of at least that number is published."""
        def reached() -> bool:
            self.check()
            return self.head() >= version

        try:
            eventually(reached, seconds, f"version {version} is out")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None
        return self.head()

    def check(self) -> None:
        """Fail if `five train` has ended."""
        assert self.process is not None
        assert self.process.poll() is None, f"five train ended with {self.process.returncode}\n{self.logs()}"

    def logs(self) -> str:
        """Return the ends of all logs."""
        paths = [self.place / "train.log", *sorted((self.folder.path / "logs").glob("*.log"))]
        return "\n".join(f"--- {p.name}\n" + "\n".join(p.read_text(errors="replace").splitlines()[-8:])
                         for p in paths if p.exists())

    def pids(self, name: str) -> list[int]:
        """Return the processes of a kind, found by their command line."""
        assert self.process is not None
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                line = " ".join(child.cmdline())
            except psutil.Error:
                continue
            if KINDS[name] in line and child.status() != psutil.STATUS_ZOMBIE:
                found.append(child.pid)
        return found

    def kill(self, name: str) -> None:
        """Kill a process with signal 9 and wait until another one replaces it."""
        before = eventually(lambda: self.pids(name), 120, f"{name} runs")
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: set(self.pids(name)) - set(before), 120, f"{name} is started again")

    def everything(self) -> list[psutil.Process]:
        """Return `five train` and all of its descendants."""
        assert self.process is not None
        top = psutil.Process(self.process.pid)
        return [top, *top.children(recursive=True)]

    def rest(self, method: str, path: str, token: str | None = None, **arguments: Any) -> httpx.Response:
        """Send a request to the controller, by default with the operator's token."""
        given = self.folder.operator_token() if token is None else token
        headers = {"Authorization": f"Bearer {given}"} if given else {}
        return httpx.request(method, f"{self.folder.cluster().rest}/v1/{path}", headers=headers, timeout=60,
                             **arguments)

    def status(self) -> str:
        """Return the run's status from the controller."""
        answer = self.rest("GET", "status")
        answer.raise_for_status()
        return str(answer.json()["status"])

    def report(self) -> dict[str, Any]:
        """Return the data of the run's report."""
        found = re.search(r'<script type="application/json" id="run">(.*?)</script>', self.folder.report.read_text())
        assert found is not None
        data: dict[str, Any] = json.loads(found[1])
        return data

    def check_versions(self) -> list[int]:
        """Fetch every version from 0 to the newest completely. Return their numbers."""
        store = self.store
        versions = [record.version for record in store.records()]
        names = None
        for version in versions:
            tensors, meta = store.fetch(version)
            assert names is None or tensors.keys() == names, f"version {version} has other tensors"
            names = tensors.keys()
            assert meta["layout"]
        assert versions == list(range(len(versions))), f"versions are missing: {versions}"
        return versions

    def end(self, seconds: float = 240.0) -> int:
        """Send Ctrl-C and return the exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(seconds)

    def destroy(self) -> None:
        """Kill the rest of the run at the end of a test."""
        if self.process is not None and self.process.poll() is None:
            for process in self.everything():
                try:
                    process.kill()
                except psutil.Error:
                    pass
            self.process.wait(60)

"""Certificates and the services' token change under a run that trains: nobody is replaced, nothing is refused, and the
versions keep coming. What it measures is printed and kept (build/faults/rotation.txt); docs/reliability.md has it."""

import os
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from five.cli import rotation
from rapid.clients.evaluator import EvaluatorClient
from rapid.rpc.errors import CallFailed, StatusCode
from tests.e2e.running import KINDS, ROOT, Run, eventually
from tests.rapid.test_tls import Authority

SECONDS = float(os.environ.get("FIVE_ROTATION_SECONDS", "60"))  # without changes, and with them
ROUNDS = 3


class Watch:
    """When each version came out, as somebody sees who looks all the time."""

    def __init__(self, run: Run) -> None:
        self.at: list[float] = []
        self._run = run
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        head = self._run.head()
        while not self._ends.wait(0.01):
            now = self._run.head()
            self.at += [time.monotonic()] * (now - head)
            head = now

    def gaps(self, begin: float, end: float) -> list[float]:
        """Seconds from the version before, of those that came out between two moments."""
        return [b - a for a, b in pairwise(self.at) if begin <= b <= end]

    @contextmanager
    def on(self) -> Iterator["Watch"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._ends.set()
            self._thread.join()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.destroy()


async def refused(run: Run, token: str) -> bool:
    """Whether the evaluator refuses that token."""
    config = run.config
    client = EvaluatorClient([config.services.evaluator.address], config.rpc, config.name, token)
    try:
        await client.ratings()
        return False
    except CallFailed as error:
        assert error.code is StatusCode.UNAUTHENTICATED, error
        return True
    finally:
        await client.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_certificates_and_the_token_change_while_it_trains(run: Run, tmp_path: Path) -> None:
    authority, place = Authority(tmp_path / "authority"), tmp_path / "tls"
    tls = authority.issue(place, "IP:127.0.0.1")
    # More games than it learns from: versions come at the pace of learning, not of games that end.
    run.start_new("services.rollout.environment=remote", "services.rollout.games=16",
                  "services.evaluator.cpu_share=0.05",
                  "rpc.tls.require_client_certificate=true",
                  *(f"rpc.tls.{name}={getattr(tls, name)}" for name in ("authority", "certificate", "key")))
    run.wait_version(3)
    pids = {name: run.pids(name) for name in KINDS}
    host, _, port = run.config.services.inference.addresses[0].rpartition(":")
    shown, tokens = [ssl.get_server_certificate((host, int(port)))], [run.folder.token()]
    with Watch(run).on() as watch:
        before: list[float] = []
        during: list[float] = []
        for _ in range(ROUNDS):  # by turns: what else the machine does slows both down
            began = time.monotonic()
            time.sleep(SECONDS / ROUNDS)
            changing = time.monotonic()
            authority.issue(place, "IP:127.0.0.1")
            rotation.rotate_token(run.folder.path / "token")
            time.sleep(max(changing + SECONDS / ROUNDS - time.monotonic(), 0))
            before += watch.gaps(began, changing)
            during += watch.gaps(changing, ended := time.monotonic())
            tokens.append(run.folder.token())
            shown.append(ssl.get_server_certificate((host, int(port))))
            assert [await refused(run, token) for token in tokens[-2:]] == [True, False]
        eventually(lambda: watch.at and watch.at[-1] > ended, 60, "a version after the last change")
    assert len(set(shown)) == len(set(tokens)) == ROUNDS + 1
    assert {name: run.pids(name) for name in KINDS} == pids, "nobody had to begin again"
    logs = {path.name: path.read_text() for path in (run.folder.path / "logs").glob("*-0.log")}
    said = "\n".join(logs.values())
    assert not [token for token in tokens if token in said]
    assert "UNAUTHENTICATED" not in said and "no valid token" not in said
    for name in ("rollout-0.log", "inference-0.log", "evaluator-0.log"):
        assert "the services' token is read again" in logs[name], name
    mean = sum(before) / len(before)
    text = (f"{ROUNDS} changes of certificates and token in {SECONDS:g} s of training: from version to version "
            f"{mean:.2f} s on average ({len(before)}, {max(before):.2f} at most) in as many seconds without, "
            f"{sum(during) / len(during):.2f} s ({len(during)}, {max(during):.2f} at most) with them: "
            f"{max(during) / mean:.2f} times the mean at most")
    print(text)
    (ROOT / "build" / "faults").mkdir(parents=True, exist_ok=True)
    (ROOT / "build" / "faults" / "rotation.txt").write_text(text + "\n")

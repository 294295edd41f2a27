"""Reads of the REST API a second, compared with a response of the same server that needs neither token nor store.

``python -m five.benchmarks.rest --url URL`` measures what 200 reads a second cost a run that trains.
"""

import argparse
import http.client
import os
import statistics
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from five.agent.config import SchedulesConfig
from five.benchmarks.child_process import ChildProcess
from five.benchmarks.results import BenchmarkRow, as_json, as_text, machine, row
from five.local.rest_client import TOKEN_VARIABLE, ControllerClient
from five.run.config.controller import LimitsConfig
from five.services.controller.http.app import create_app
from five.services.controller.http.auth import Authenticator
from five.services.controller.http.dependencies import Context
from five.services.controller.http.server import OVERVIEW_SECONDS, create_server
from five.services.controller.http.tokens import FixedTokens
from rapid.config import StoreConfig
from rapid.embedded_redis import EmbeddedRedis
from rapid.store.connection import connect
from rapid.store.parameters import ParameterStore
from rapid.store.series import Series
from rapid.store.state import RunState

RUN, TOKEN = "bench", "a-token-of-the-benchmark"
PATHS = {"status": "/v1/status", "versions": "/v1/versions?limit=100", "events": "/v1/events?limit=100",
         "series": "/v1/series/versions?limit=100"}
NOTHING = "/healthz"  # the reference
FREE = LimitsConfig(requests_per_second=1e6, burst=1e6, client_requests_per_second=1e6, client_burst=1e6)


@dataclass(frozen=True)
class RestWorkload:
    """Workload of the benchmark ``rest``."""

    versions: int = 1000
    clients: int = 4
    seconds: float = 3.0
    repeats: int = 3


def _serve(pipe: Connection, redis_url: str) -> None:
    """Serve the controller's application with limits above the benchmark's rate."""
    config = StoreConfig(archive_every=0)
    client = connect(redis_url, config)
    context = Context(RUN, RunState(client, RUN), ParameterStore(client, client, RUN, config), SchedulesConfig(),
                      Authenticator(FixedTokens.of(bench=("viewer", TOKEN))), FREE, overview_seconds=OVERVIEW_SECONDS)
    serving = create_server(create_app(context), FREE, "127.0.0.1", 0)
    thread = threading.Thread(target=serving.run, daemon=True)
    thread.start()
    while not serving.started:
        time.sleep(0.01)
    pipe.send(serving.servers[0].sockets[0].getsockname()[1])
    try:
        pipe.recv()
    except EOFError:
        pass
    serving.should_exit = True
    thread.join(10)


def _fill(redis_url: str, versions: int) -> None:
    config = StoreConfig(archive_every=0)
    client = connect(redis_url, config)
    RunState(client, RUN).create({"name": RUN}, "bench")
    store = ParameterStore(client, client, RUN, config)
    for v in range(versions):
        store.publish(v, {"w": np.full(4, v, np.float32)}, {})
    Series(client, RUN).extend("versions", [{"version": v, "entropy": 2.0, "hero_steps_per_second": 1e4}
                                            for v in range(versions)])
    for v in range(versions):
        RunState(client, RUN).events.append("bench", "version.published", {"version": v})


class Reader(threading.Thread):
    """Client with one connection that reads ``path`` until ``end``, at most ``rate`` times a second (0: without limit).
    ``seconds`` are the durations; ``failed`` counts failed reads. A lost connection is one, and ends the client."""

    def __init__(self, url: str, path: str, token: str, end: float, rate: float = 0.0) -> None:
        super().__init__(daemon=True)
        address = urllib.parse.urlsplit(url)
        self._connect = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        self._address = (address.hostname or "", address.port)
        self._path, self._token, self._end, self._rate = path, token, end, rate
        self.seconds: list[float] = []
        self.failed = 0

    def run(self) -> None:
        connection = self._connect(*self._address, timeout=10)
        try:
            self._read_until_end(connection)
        except (OSError, http.client.HTTPException):
            self.failed += 1
        finally:
            connection.close()

    def _read_until_end(self, connection: http.client.HTTPConnection) -> None:
        due = time.perf_counter()
        while (now := time.perf_counter()) < self._end:
            if self._rate:
                if now < due:
                    time.sleep(due - now)
                due += 1.0 / self._rate
            began = time.perf_counter()
            connection.request("GET", self._path, headers={"Authorization": f"Bearer {self._token}"})
            answer = connection.getresponse()
            answer.read()
            self.seconds.append(time.perf_counter() - began)
            self.failed += answer.status != 200


def read(url: str, path: str, token: str, seconds: float, clients: int, rate: float = 0.0) -> tuple[float, list[float]]:
    """Return the reads a second of all clients together and the duration of each. Raises RuntimeError if one failed."""
    began = time.perf_counter()
    readers = [Reader(url, path, token, began + seconds, rate / clients) for _ in range(clients)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    spent = time.perf_counter() - began
    failed = sum(r.failed for r in readers)
    if failed:
        raise RuntimeError(f"{failed} reads of {path} were not answered with 200")
    took = [s for r in readers for s in r.seconds]
    return len(took) / spent, took


def measure(size: RestWorkload = RestWorkload()) -> list[BenchmarkRow]:
    """Return the rows ``rest.*``: reads a second of each resource. The reference is a response without a token or
    store."""
    found = []
    with tempfile.TemporaryDirectory() as folder, EmbeddedRedis(Path(folder), append_only=False).start() as store:
        _fill(store.url, size.versions)
        with ChildProcess(_serve, store.url) as child:
            url = f"http://127.0.0.1:{child.first}"
            for name, path in PATHS.items():
                reference, value, slow = [], [], []
                for _ in range(size.repeats):  # in turn, so that load affects both equally
                    reference.append(read(url, NOTHING, TOKEN, size.seconds, size.clients)[0])
                    rate, took = read(url, path, TOKEN, size.seconds, size.clients)
                    value.append(rate)
                    slow.append(float(np.percentile(took, 99)))
                conditions = machine(clients=size.clients, versions=size.versions,
                                     p99_milliseconds=round(1000 * statistics.median(slow), 1))
                found.append(row(f"rest.{name}", statistics.median(value), "reads/s", statistics.median(reference),
                                 conditions))
    return found


def while_training(url: str, token: str, rate: float = 200.0, seconds: float = 60.0,
                   clients: int = 4) -> list[BenchmarkRow]:
    """Return a run's hero-steps a second with ``rate`` reads of its status a second, compared with an interval without.

    Both are means over the versions that ended in their interval.
    """
    controller = ControllerClient(url, token)

    def measure_interval(reading: bool) -> tuple[float, float, list[float]]:
        newest = controller.get("series/versions", limit=1)["newer"]
        achieved, took = 0.0, [0.0]
        if reading:
            achieved, took = read(url, PATHS["status"], token, seconds, clients, rate)
        else:
            time.sleep(seconds)
        records = controller.get("series/versions", after=newest, limit=1000)["items"]
        speeds = [r["values"]["hero_steps_per_second"] for r in records if "hero_steps_per_second" in r["values"]]
        if not speeds:
            raise RuntimeError(f"no version was published within {seconds:g} s: there is nothing to compare")
        return statistics.mean(speeds), achieved, took

    without, _, _ = measure_interval(False)
    with_reads, achieved, took = measure_interval(True)
    conditions = machine(seconds=seconds, clients=clients, reads_per_second=round(achieved, 1),
                         p50_milliseconds=round(1000 * float(np.percentile(took, 50)), 1),
                         p99_milliseconds=round(1000 * float(np.percentile(took, 99)), 1))
    return [row("rest.training_while_read", with_reads, "hero-steps/s", without, conditions)]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure a run that trains. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m five.benchmarks.rest", description=__doc__)
    parser.add_argument("--url", required=True, help=f"controller of the run; its token is read from {TOKEN_VARIABLE}")
    parser.add_argument("--rate", type=float, default=200.0, help="reads a second (200)")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each of the two intervals (60)")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    arguments = parser.parse_args(argv)
    if not (token := os.environ.get(TOKEN_VARIABLE, "")):
        parser.error(f"{TOKEN_VARIABLE} is not set: it must hold a token of the run")
    rows = while_training(arguments.url, token, arguments.rate, arguments.seconds)
    print(as_json(rows) if arguments.json else as_text(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

import os
import pty
import re
import termios
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis
from rich.console import Console

from five.cli import train
from five.cli.first_version import FirstVersionCheck
from five.cli.live import LINE_WIDTH, LiveView, bottleneck, plain, spark
from five.cli.terminal import Terminal
from five.run.load import load
from rapid.embedded_redis import EmbeddedRedis
from rapid.store.leases import Instance, Lease, Leases
from rapid.store.series import Series
from rapid.store.state import RunState, Status

VERSION = {"version": 12345, "staleness_median": 1.0, "reuse": 0.98, "busy_share": 0.5, "wait_share": 0.5,
           "hero_steps_per_second": 123456.0, "consumed_per_second": 123456.0, "seconds": 10.0, "entropy": 3.21,
           "explained_variance": -0.12}
RATING = {"version": 12345, "mu": 12.34, "sigma": 1.0, "win_rates": {"random": 0.9, "scripted": 0.55},
          "win_intervals": {"random": [0.8, 0.95]}}


class FakeCluster:
    """The parts of a LocalCluster that the live display reads. ``on_round`` is called before each reading, by its
    number from 1."""

    def __init__(self, client: "redis.Redis") -> None:
        self.state, self.series = RunState(client, "trial"), Series(client, "trial")
        self.leases = Leases(client, "trial")
        self.config = load("laptop-1v1")
        self.rounds = 0
        self.on_round: Callable[[int], None] = lambda number: None

    def check(self) -> None:
        self.rounds += 1
        self.on_round(self.rounds)

    def faults(self) -> dict[str, str]:
        return {"evaluator-0": "keeps failing, exited with code 1"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FakeCluster]:
    with EmbeddedRedis(tmp_path, append_only=False).start() as server:
        client = redis.Redis.from_url(server.url)
        cluster = FakeCluster(client)
        cluster.state.create({}, "test")
        cluster.series.append("versions", VERSION)
        cluster.series.append("ratings", RATING)
        cluster.series.append("games", {"statistics": {"last_hits": 3.0, "denies": 1.0}})
        Lease(client, "trial", "optimizer", "0", 30.0).renew({"buffer": 5, "words": "many " * 40})
        yield cluster


def view_of(cluster: FakeCluster) -> LiveView:
    view = LiveView(cluster.state, cluster.series, cluster.leases, None)
    view.read()
    return view


def watch(cluster: FakeCluster, terminal: Terminal, rounds: int, monkeypatch: pytest.MonkeyPatch,
          on_round: Callable[[int], object] = lambda number: None) -> None:
    """Show the run's progress for a number of readings."""
    monkeypatch.setattr(train, "LINE_SECONDS", 0.0)
    monkeypatch.setattr("five.cli.terminal.CLOSE_SECONDS", 60.0)
    ending = threading.Event()

    def proceed(number: int) -> None:
        on_round(number)
        if number == rounds:
            ending.set()

    cluster.on_round = proceed
    train._watch(cluster, SimpleNamespace(write=lambda: None), terminal, ending, None,  # type: ignore[arg-type]
                 FirstVersionCheck(cluster, ""))  # type: ignore[arg-type]


def instance(kind: str, **stats: object) -> Instance:
    return Instance(kind, "0", "", "", 0.0, 0.0, dict(stats))


ALL = [instance("inference"), instance("optimizer"), instance("rollout")]


def test_missing_service_is_the_bottleneck() -> None:
    assert bottleneck([], {}) == "no optimizer is up"
    assert bottleneck(ALL[1:], {}) == "no inference server is up"
    assert bottleneck(ALL[:2], {}) == "no rollout is up"


def test_bottleneck_follows_shares_of_time() -> None:
    assert "first version" in bottleneck(ALL, {})
    assert bottleneck(ALL, {"busy_share": 0.95, "wait_share": 0.0}).startswith("the optimizer")
    assert bottleneck(ALL, {"busy_share": 0.2, "wait_share": 0.8}).startswith("the games")
    waiting = [*ALL[:2], instance("rollout", inference_wait_share=0.9)]
    assert bottleneck(waiting, {"busy_share": 0.2, "wait_share": 0.8}).startswith("inference")


def test_spark_line_spans_the_values() -> None:
    assert spark([0.0, 0.5, 1.0]) == "▁▄█"
    assert spark([2.0, 2.0]) == "▁▁"
    assert spark([]) == ""
    assert len(spark([float(i) for i in range(100)])) == 24


def test_panel_shows_records_without_wrapping(cluster: FakeCluster) -> None:
    view = view_of(cluster)
    console = Console(width=80, record=True, file=open(os.devnull, "w"))
    console.print(view.render())
    lines = console.export_text().splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert len(lines) == 9  # the border, 3 rows of figures, the rating, services with a header, the bottleneck
    text = "\n".join(lines)
    for words in ("trial", "starting", "123,456", "12.3 ± 1.0", "random 90 %", "last hits/game", "no inference server",
                  "optimizer  0   buffer 5  words many"):
        assert words in text, words


def test_view_reads_only_new_records(cluster: FakeCluster) -> None:
    view = view_of(cluster)
    view.read()
    assert len(view._records["versions"]) == 1


def test_plain_line_drops_what_exceeds_80_columns(cluster: FakeCluster) -> None:
    assert plain(cluster.state, {}, {}) == "0:00  starting  no version yet"
    line = plain(cluster.state, VERSION, RATING)
    assert len(line) <= LINE_WIDTH and "version 12345" in line and "123,456 hero-steps/s" in line
    cluster.state.transition(Status.RUNNING, "test", "")
    assert plain(cluster.state, VERSION, RATING).endswith("TrueSkill 12.3  staleness 1.0")


def test_train_prints_one_line_per_change_into_a_pipe(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def publish(number: int) -> None:
        if number == 3:
            cluster.series.append("versions", VERSION | {"version": 12346})

    read, write = os.pipe()
    with open(write, "w") as pipe, Terminal(pipe) as terminal:
        watch(cluster, terminal, 4, monkeypatch, publish)
    with open(read) as pipe:
        lines = pipe.read().splitlines()
    assert [line.split("version ")[1].split()[0] for line in lines] == ["12345", "12346"]
    assert all(len(line) <= 80 and "\x1b" not in line for line in lines)
    assert all("evaluator-0 fails" in line for line in lines)


def test_train_wraps_no_line_on_an_80_column_terminal(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLUMNS", raising=False)
    controller, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (40, 80))
    shown = bytearray()

    def read_all() -> None:
        try:
            while part := os.read(controller, 4096):
                shown.extend(part)
        except OSError:  # the terminal's end was closed
            pass

    reader = threading.Thread(target=read_all)
    reader.start()
    with open(terminal, "w") as stream, Terminal(stream) as output:
        assert output.is_terminal
        watch(cluster, output, 2, monkeypatch)
    reader.join(60)
    os.close(controller)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r", "\n").split("\n")
    assert any("hero-steps/s" in line and "123,456" in line for line in lines)
    assert any("evaluator-0 keeps failing" in line for line in lines)
    assert max(len(line) for line in lines) == 80


def test_panel_shows_heads_relative_to_their_limits(cluster: FakeCluster) -> None:
    heads = {"of_max_entropy_action": 0.291, "of_max_entropy_delay": 0.998, "of_chance_win_probability": 0.874}
    cluster.series.append("versions", VERSION | heads)
    console = Console(width=80, record=True, file=open(os.devnull, "w"))
    console.print(view_of(cluster).render())
    text = console.export_text()
    assert "max. entropy   action 29 %   delay 100 %" in text
    assert "loss of chance win 87 %" in text

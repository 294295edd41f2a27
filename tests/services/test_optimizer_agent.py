"""Agent of a node's optimizers: its command line, the rendezvous that follows from it, and how it ends."""

import argparse
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from torch.distributed.elastic.multiprocessing import SignalException

from five.run.config import RunConfig
from five.services.optimizer import agent
from five.services.optimizer.agent import parse, rendezvous_of
from rapid.startup import OWN_NAME, configure_process
from rapid.store.rendezvous import GroupRendezvous, Waiting
from tests.waiting import eventually


def test_command_line() -> None:
    given = parse(["--nodes", "1:4", "--ranks", "2", "--node", "pod-3", "--", "--config", "x", "--id", "hostname"])
    assert (given.minimum, given.maximum, given.ranks, given.node) == (1, 4, 2, "pod-3")
    assert given.service == ["--config", "x", "--id", "hostname"]
    assert parse(["--nodes", "3", "--ranks", "1", "--"]).minimum == 3


def test_defaults_of_the_command_line() -> None:
    given = parse(["--nodes", "3", "--ranks", "1"])
    assert (given.group, given.node, given.address, given.max_restarts) == (
        "optimizers", socket.gethostname(), "", 1000)
    assert (given.minimum, given.maximum) == (3, 3)
    assert (given.waiting, given.replaced_last, given.service) == (None, "", [])
    assert parse(["--nodes", "1", "--ranks", "1", "--node", OWN_NAME]).node == socket.gethostname()


def test_arguments_of_the_service_may_repeat_the_separator() -> None:
    assert parse(["--nodes", "1", "--ranks", "1", "--", "--config", "x", "--"]).service == ["--config", "x", "--"]


@pytest.mark.parametrize("missing", [["--nodes", "1"], ["--ranks", "1"]])
def test_numbers_of_nodes_and_ranks_are_required(missing: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(missing)
    assert "required" in capsys.readouterr().err


@pytest.mark.parametrize("nodes", ["", "two", "1:", ":2x", "1:2:3"])
def test_invalid_numbers_of_nodes_are_refused(nodes: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--nodes", nodes, "--ranks", "1"])
    assert "expected MAXIMUM or MINIMUM:MAXIMUM" in capsys.readouterr().err


def command_line(*more: str) -> argparse.Namespace:
    return parse(["--nodes", "1", "--ranks", "1", "--group", "g", "--node", "pod-0", *more])


@pytest.fixture
def config(redis_client: redis.Redis, redis_url: str) -> RunConfig:
    return RunConfig.model_validate({
        "name": "trial", "store": {"state_url": redis_url, "params_url": redis_url},
        "lifecycle": {"lease_seconds": 0.5, "heartbeat_seconds": 0.1}})


def test_rendezvous_offers_a_free_port_at_the_given_address(config: RunConfig, tmp_path: Path) -> None:
    """A file of a container that was killed while it waited is removed."""
    file = tmp_path / "waiting"
    file.write_text("2 nodes wait\n")
    found = rendezvous_of(command_line("--waiting", str(file), "--address", "10.1.2.3"), config)
    try:
        assert not file.exists() and found.get_run_id() == "g"
        info = found.next_rendezvous()
        assert (info.rank, info.world_size) == (0, 1) and info.bootstrap_store_info is not None
        assert info.bootstrap_store_info.master_addr == "10.1.2.3"
        with socket.socket() as free:
            free.bind(("127.0.0.1", info.bootstrap_store_info.master_port))
    finally:
        assert found.shutdown()


def test_rendezvous_renews_its_lease(config: RunConfig, redis_client: redis.Redis) -> None:
    """Another node of the group that comes later is noticed with the next renewal."""
    first = rendezvous_of(command_line("--nodes", "1:2"), config)
    first.next_rendezvous()
    second = rendezvous_of(command_line("--nodes", "1:2", "--node", "pod-1"), config)
    try:
        second._group.begin()
        eventually(lambda: second._group.join("host", 7) and first.num_nodes_waiting() == 1)
    finally:
        first.shutdown()
        second.shutdown()


@pytest.mark.parametrize(("last", "shown"), [("pod-0", False), ("pod-1", True), ("", True)])
def test_only_the_node_replaced_last_hides_its_first_wait(config: RunConfig, tmp_path: Path, last: str, shown: bool
                                                          ) -> None:
    found = rendezvous_of(command_line("--replaced-last", last, "--waiting", str(tmp_path / "waiting")), config)
    found.shutdown()
    assert found._hides_wait != shown


def test_signal_ends_the_wait_by_its_name() -> None:
    with pytest.raises(SignalException, match="got SIGTERM") as ended:
        agent._on_signal(signal.SIGTERM, None)
    assert ended.value.sigval is signal.SIGTERM


RANK = """
import os, signal, sys
from pathlib import Path
with Path(__file__).with_name("starts").open("a") as file:
    print(os.environ["RANK"], os.environ["TORCHELASTIC_USE_AGENT_STORE"], *sys.argv[1:], file=file)
if os.environ["OUTCOME"] == "signal":
    os.kill(os.getppid(), signal.SIGTERM)
    signal.pause()  # until the agent passes the signal on
sys.exit(int(os.environ["OUTCOME"]))
"""


class Agent:
    """The agent in this process. Its ranks are small programs that end as ``OUTCOME`` says."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        (folder / "rank_program.py").write_text(RANK)
        monkeypatch.setattr(agent, "MODULE", "rank_program")
        monkeypatch.setenv("PYTHONPATH", str(folder))
        monkeypatch.setenv("TORCH_ELASTIC_WORKER_IDENTICAL", "0")  # and restored after the test

    def run(self, outcome: str, *arguments: str, file: str = "c.yaml") -> int:
        self._monkeypatch.setenv("OUTCOME", outcome)
        self._monkeypatch.setattr(sys, "argv", ["agent", "--nodes", "1", "--ranks", "1", "--node", "pod-0",
                                                *arguments, "--", "--config", file])
        return agent.main()

    def starts(self) -> list[str]:
        return (self.folder / "starts").read_text().splitlines()


@pytest.fixture
def running(config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    handlers = {number: signal.getsignal(number)
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)}
    # The settings of a whole process, such as its logs, would outlive the test.
    monkeypatch.setattr(agent, "configure_process", lambda *_: config)
    yield Agent(tmp_path, monkeypatch)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_agent_ends_without_an_error_after_its_ranks(running: Agent) -> None:
    assert running.run("0", "--ranks", "2") == 0
    assert sorted(running.starts()) == ["0 False --config c.yaml", "1 False --config c.yaml"]


def test_agent_restarts_failed_ranks_and_ends_with_an_error(running: Agent) -> None:
    assert running.run("9", "--max-restarts", "1") == 1
    assert len(running.starts()) == 2, "one restart was allowed"


def test_agent_that_is_stopped_ends_without_an_error(running: Agent) -> None:
    assert running.run("signal") == 0 and len(running.starts()) == 1


def test_signal_ends_the_wait_for_other_nodes(running: Agent, tmp_path: Path, redis_client: redis.Redis) -> None:
    """The node leaves the group, so that the others do not wait for its lease to expire."""
    file = tmp_path / "waiting"

    def stop() -> None:
        eventually(file.exists)
        os.kill(os.getpid(), signal.SIGTERM)

    stopping = threading.Thread(target=stop)
    stopping.start()
    assert running.run("0", "--nodes", "2", "--group", "g", "--waiting", str(file)) == 0
    stopping.join()
    other = GroupRendezvous(redis_client, "trial", "g", "pod-1", 2, 2, 1.0, 1.0)
    other.begin()
    assert other.join("host", 7) == Waiting(1, ())


@pytest.mark.parametrize(("nodes", "file", "reason"), [
    ("3:2", "c.yaml", "nodes 3:2: the minimum must be"), ("1", "absent.yaml", "absent.yaml")])
def test_invalid_settings_end_the_agent_with_one_line(
        running: Agent, nodes: str, file: str, reason: str, capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch) -> None:
    if file == "absent.yaml":
        monkeypatch.setattr(agent, "configure_process", configure_process)
    with pytest.raises(SystemExit) as ended:
        running.run("0", "--nodes", nodes, file=file)
    error = capsys.readouterr().err
    assert ended.value.code == 2 and error.startswith("optimizer agent: ") and reason in error
    assert error.count("\n") == 1

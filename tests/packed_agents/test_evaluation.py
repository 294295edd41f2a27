"""Evaluation games in several processes."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from dota.vec_game import BOTS
from five.packed_agents import evaluation
from five.packed_agents.evaluation import WeightsFile, play_games, recorded_games
from five.packed_agents.folder import WEIGHTS, PackedAgent
from tests.repository import ROOT
from tests.waiting import eventually


def test_several_processes_play_every_game_once(shared_agent: PackedAgent, tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "BOTS", {"random": BOTS["random"]})
    monkeypatch.setattr(evaluation, "CHUNK_PAIRS", 1)
    journal, said = tmp_path / "games.jsonl", list[str]()
    weights = WeightsFile(shared_agent.path / WEIGHTS, shared_agent.card.weights_sha256, shared_agent.spec)
    play_games(journal, weights, 0, 1)
    once = recorded_games(journal, weights, 0)
    play_games(journal, weights, 0, 3, 2, said.append)
    games = recorded_games(journal, weights, 0)
    assert [(row.pair, row.side) for row in games.games] == [(pair, side) for pair in range(3) for side in (0, 1)]
    assert games.games[:2] == once.games  # what was played is not played again
    (line,) = said
    assert line.startswith("random: 6 games, score ")
    assert recorded_games(journal, weights, 1).games == []  # of another seed


@pytest.fixture
def command(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a pool of one worker, whose id it prints."""
    program = tmp_path / "command.py"
    program.write_text(textwrap.dedent("""
        import os, sys, time
        from five.packed_agents.evaluation import worker_pool
        if __name__ == "__main__":
            try:
                with worker_pool(1) as workers:
                    print(workers.submit(os.getpid).result(), flush=True)
                    time.sleep(600)
            except KeyboardInterrupt:
                sys.exit(130)
        """), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'libs'}:{ROOT}"}
    # The children of a shell's `make test &` ignore SIGINT.
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          start_new_session=True, env=environment,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
        yield process
        process.kill()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux ties processes to their parents")
def test_workers_end_with_a_killed_command(command: "subprocess.Popen[bytes]") -> None:
    assert command.stdout is not None
    worker = int(command.stdout.readline())
    assert is_running(worker)
    command.kill()
    eventually(lambda: not is_running(worker))


def test_interrupted_workers_print_nothing(command: "subprocess.Popen[bytes]") -> None:
    """Ctrl-C reaches every process of the terminal's foreground group."""
    assert command.stdout is not None and command.stderr is not None
    command.stdout.readline()
    for _ in range(4):  # one in a hundred right after the print has no effect; the cause is unknown
        os.killpg(command.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            command.wait(15)
            break
    assert (command.wait(30), command.stderr.read()) == (130, b"")


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

"""Progress, cancellation and loss of rehearsals on a real Redis with real processes. A complete rehearsal:
tests/e2e/test_surgery.py."""

import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest
import redis

from five.agent.surgery import AgentSpec, Plan
from five.cli.surgery import describe_rehearsal
from five.local.run_folder import RunFolder, RunUnavailable
from five.rehearsal import runner
from five.rehearsal.progress import RehearsalProgress, RehearsalStopped, raise_on_signals
from five.rehearsal.rehearsal import _fork_config, _fork_name, run_rehearsal
from five.rehearsal.runner import RehearsalRunner
from five.run.config import RunConfig
from five.services.controller.operations.document import OperatorDecision
from five.services.controller.surgery.rehearsals import (
    MAX_VERSIONS,
    Rehearsal,
    Rehearsals,
    RehearsalScope,
    RehearsalState,
    RehearsalWorker,
    new_rehearsal,
)
from rapid.store.archive_policy import ArchivePolicy
from rapid.store.state import RunState
from tests.waiting import eventually

HERE = RehearsalWorker(host="workstation", pid=4711)
WORD = OperatorDecision(who="eve", at=1.0, reason="")


@pytest.fixture
def state(redis_url: str) -> RunState:
    redis.Redis.from_url(redis_url).flushall()
    return RunState(redis.Redis.from_url(redis_url), "trial")


@pytest.fixture
def kept(state: RunState) -> Rehearsals:
    return Rehearsals(state)


def begun(kept: Rehearsals, state: RehearsalState = RehearsalState.PREPARING) -> Rehearsal:
    rehearsal = new_rehearsal("name: wider\n", "ab" * 32, "wider", 1, "ada", RehearsalScope(versions=4, games=5))
    kept.announce(HERE)
    return kept.begin(rehearsal.model_copy(update={"state": state}))


def now(kept: Rehearsals, rehearsal: Rehearsal) -> Rehearsal:
    found = kept.get(rehearsal.id)
    assert found is not None
    return found


def test_progress_and_end_are_written(state: RunState, kept: Rehearsals) -> None:
    rehearsal = begun(kept)
    progress = RehearsalProgress(kept, rehearsal.id)
    with raise_on_signals(), progress:
        progress.update(state=RehearsalState.LEARNING, first=3, warm=5, until=9, version=7, fork="tiny-wider")
        eventually(lambda: now(kept, rehearsal).version == 7)
        assert "learning, version 2 of 4" in describe_rehearsal(now(kept, rehearsal).model_dump(mode="json"))
        assert not kept.hold("another")
        progress.update(state=RehearsalState.PLAYING, played=2)
        eventually(lambda: now(kept, rehearsal).played == 2)
        assert "playing, 2 of 6 games" in describe_rehearsal(now(kept, rehearsal).model_dump(mode="json"))
    progress.end(RehearsalState.FAILED, error="no room")
    done = now(kept, rehearsal)
    assert (done.state, done.error, done.fork) == (RehearsalState.FAILED, "no room", "tiny-wider")
    assert done.began_at is not None and done.ended_at is not None and done.ended_at >= done.began_at
    (event,) = [e for e in state.events.read() if e.what == "rehearsal.ended"]
    assert event.details["rehearsal"] == rehearsal.id and event.details["error"] == "no room"
    assert kept.hold("another")


def rehearsal_processes() -> list[int]:
    """Return the child processes that run a rehearsal."""
    return [p.pid for p in psutil.Process().children(recursive=True) if "five.rehearsal" in " ".join(p.cmdline())]


def waits() -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        time.sleep(10)
    raise AssertionError("nobody has stopped it")


def test_cancellation_stops_the_rehearsal(kept: Rehearsals) -> None:
    rehearsal = begun(kept)
    progress = RehearsalProgress(kept, rehearsal.id)
    with pytest.raises(RehearsalStopped), raise_on_signals(), progress:
        threading.Timer(0.2, lambda: kept.cancel(rehearsal.id, WORD)).start()
        waits()
    assert progress.cancelled and now(kept, rehearsal).cancel == WORD
    assert progress.stop_reason == "the rehearsal was cancelled"


def test_signal_stops_the_rehearsal_and_restores_handlers(kept: Rehearsals) -> None:
    rehearsal, before = begun(kept), signal.getsignal(signal.SIGTERM)
    progress = RehearsalProgress(kept, rehearsal.id)
    with pytest.raises(RehearsalStopped, match="SIGTERM"), raise_on_signals(), progress:
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
        waits()
    assert not progress.cancelled and signal.getsignal(signal.SIGTERM) is before


def test_replaced_rehearsal_ends(state: RunState, kept: Rehearsals) -> None:
    rehearsal = begun(kept)
    progress = RehearsalProgress(kept, rehearsal.id)
    with pytest.raises(RehearsalStopped), raise_on_signals(), progress:
        progress.update(state=RehearsalState.PLAYING)
        eventually(lambda: now(kept, rehearsal).state is RehearsalState.PLAYING)
        kept.change(rehearsal.id, lambda r: r.model_copy(update={"state": RehearsalState.ABANDONED, "error": "left"}))
        eventually(lambda: now(kept, rehearsal).state is RehearsalState.PLAYING and not now(kept, rehearsal).error)
        state.redis.set(state.keys.rehearsing, "another")
        waits()
    assert progress.stop_reason.startswith("another rehearsal has started")


def test_failed_rehearsal_names_the_reason(kept: Rehearsals, tmp_path: Path) -> None:
    rehearsal = begun(kept)
    plan = Plan.from_yaml(f"name: wider\nparent: {'a' * 16}\nsteps:\n- kind: grow_lstm\n  to: 16\n")
    with pytest.raises(RunUnavailable):
        run_rehearsal(RunFolder(tmp_path / "gone"), plan, rehearsal, kept)
    failed = now(kept, rehearsal)
    assert failed.state is RehearsalState.FAILED and "run 'gone' is not running" in failed.error
    assert kept.hold("another")


def test_fork_keeps_its_first_version_for_the_match() -> None:
    config = RunConfig.model_validate({"store": {"max_archived": 10}})
    fork = _fork_config(config, AgentSpec(config.game, config.model), "five-wider")
    assert fork.name == "five-wider" and ArchivePolicy.of(fork.store).stays(813, 813 + MAX_VERSIONS)


def test_fork_of_long_names_has_a_valid_free_name(tmp_path: Path) -> None:
    for _ in range(2):
        name = _fork_name("r" * 57, "wider", tmp_path)
        assert RunConfig.model_validate({"name": name}).name.startswith("r" * 57)
        (tmp_path / name).mkdir()
    assert len(list(tmp_path.iterdir())) == 2 and _fork_name("tiny", "wider", tmp_path) == "tiny-wider"
    assert len(_fork_name("r" * 63, "p" * 63, tmp_path)) <= 63


@pytest.mark.runs
def test_dead_rehearsal_is_recorded_and_the_next_runs(state: RunState, kept: Rehearsals, tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "POLL_SECONDS", 0.1)
    left = begun(kept, RehearsalState.PLAYING)  # of a dead process
    folder = RunFolder(tmp_path / "gone")
    with RehearsalRunner(folder, state):
        eventually(lambda: state.table("rehearsals").all()[left.id]["state"] == "abandoned")
        eventually(lambda: kept.available_worker() is not None and kept.available_worker() != HERE)
        for _ in range(2):
            asked = begun(kept, RehearsalState.WAITING)
            # Its process finds no run in that folder.
            eventually(lambda asked=asked: now(kept, asked).state is RehearsalState.FAILED, 120)  # type: ignore[misc]
            assert "exited with code 1" in now(kept, asked).error and "is not running" in now(kept, asked).error
    assert kept.available_worker() is None
    assert not rehearsal_processes()


def test_end_of_the_run_ends_rehearsals(
        state: RunState, kept: Rehearsals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "POLL_SECONDS", 0.1)
    folder = RunFolder(tmp_path / "gone")
    with RehearsalRunner(folder, state):
        eventually(lambda: kept.available_worker() is not None)
        asked = kept.begin(new_rehearsal("name: wider\n", "ab" * 32, "wider", 1, "ada", RehearsalScope()))
        kept.cancel(asked.id, WORD)
        eventually(lambda: now(kept, asked).is_over)
        asked = kept.begin(new_rehearsal("name: wider\n", "ab" * 32, "wider", 1, "ada", RehearsalScope()))
        eventually(lambda: bool(rehearsal_processes()))
    ended = now(kept, asked)
    assert ended.state is RehearsalState.FAILED and ended.error
    assert not rehearsal_processes()

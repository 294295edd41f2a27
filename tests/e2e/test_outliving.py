"""`five train` goes on without what only watches it, keeps its folder to itself, and says when it learned nothing."""

import os
import resource
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.running import LEARNING_ONLY, TINY, Run, eventually

FULL_SECONDS = 25.0


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.destroy()


@pytest.mark.runs
@pytest.mark.timeout(1200)
def test_run_outlives_evaluator_terminal_and_full_disk(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:  # the evaluator cannot listen there
        with monkeypatch.context() as proxied:  # nothing of the run goes through this proxy, which does not exist
            for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
                proxied.setenv(name, "http://127.0.0.1:1")
            run.start_new(f"services.evaluator.address=127.0.0.1:{taken.getsockname()[1]}",
                          "services.play.enabled=false")
        run.wait_version(1)
        assert run.process is not None

        # A second process is refused, and the live run's stores go on.
        for arguments in (("--name", run.folder.name), ("--resume", run.folder.name)):
            refused = run.command("train", *arguments)
            assert refused.returncode == 2
            assert f"in use by process {run.process.pid} on " in refused.stderr and refused.stderr.count("\n") == 1

        faults = eventually(lambda: run.rest("GET", "status").json()["faults"], 240, "the evaluator's fault is shown")
        assert list(faults) == ["evaluator-0"]
        assert "service.failing" in [e.what for e in run.state().events.last(500)]

        # Every write to a file fails for a while, of the output too; its terminal closes.
        limit = resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (0, limit[1]))
        run.process.send_signal(signal.SIGHUP)
        time.sleep(FULL_SECONDS)
        run.check()
        resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, limit)
        size = (run.place / "train.log").stat().st_size
        run.wait_version(run.head() + 2)
        eventually(lambda: (run.place / "train.log").stat().st_size > size, 180, "progress is printed again")
        assert run.end() == 0, run.logs()
    output = (run.place / "train.log").read_text()
    assert output.count("evaluator-0 failing: ") == 1
    assert max(map(len, output.splitlines())) < 200 and "Traceback" not in output
    assert "service.failing" in run.folder.report.read_text()


@pytest.mark.runs
@pytest.mark.timeout(300)
def test_training_without_a_version_fails(run: Run) -> None:
    sets = [part for override in (*TINY, *LEARNING_ONLY, "buffer.sample_reuse=1e-9") for part in ("--set", override)]
    done = run.command("train", "--name", run.folder.name, "--minutes", "0.2", *sets)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "no version was made: training ended after" in done.stdout
    assert not os.path.exists(run.folder.path / "cluster.json")

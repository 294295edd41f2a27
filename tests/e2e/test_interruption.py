"""Ctrl-C and SIGTERM while `five train` starts: it ends soon, with all its processes, and the run can be resumed."""

import fcntl
import os
import signal
import subprocess
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from five.cli.run_preparation import prepare
from five.local.run_folder import RunFolder
from tests.e2e.running import TINY, Run, eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
END_SECONDS, HURRIED_SECONDS = 60.0, 30.0  # three times what it takes on two busy cores
# Learning never begins, so that every moment is before version 1.
OVERRIDES = [part for override in (*TINY, "buffer.sample_reuse=1e-9") for part in ("--set", override)]
MOMENTS = {
    "imports": lambda run: True,
    "folder": lambda run: run.folder.config.exists(),
    "redis": lambda run: (run.folder.path / "logs" / "redis-state.log").exists(),
    "services": lambda run: (run.folder.path / "logs" / "rollout-0.log").exists(),
    "playing": lambda run: run.status() == "running",
}
CTRL_C = b"\x03"


class Starting(Run):
    """A `five train` on a terminal of its own, or piped."""

    output = b""

    def begin(self, terminal: bool) -> None:
        """Start a new run."""
        arguments = self.five("train", "--preset", "laptop-1v1", "--name", self.folder.name, *OVERRIDES)
        if terminal:
            self._ours, theirs = os.openpty()
            self.process = subprocess.Popen(
                arguments, cwd=self.place, env=self.environment, stdin=theirs, stdout=theirs, stderr=theirs,
                start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        else:
            self._ours, theirs = os.pipe()
            self.process = subprocess.Popen(arguments, cwd=self.place, env=self.environment, stdin=subprocess.DEVNULL,
                                            stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        self.terminal = terminal
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._ours, 65536):
                self.output += data
        except OSError:
            pass  # a terminal without processes
        os.close(self._ours)

    def send(self, number: signal.Signals) -> None:
        """Send a signal; SIGINT on a terminal by its key."""
        assert self.process is not None
        if not self.terminal or number != signal.SIGINT:
            self.process.send_signal(number)
            return
        try:
            os.write(self._ours, CTRL_C)
        except OSError:
            assert self.process.wait(10)  # the first signal has ended it

    def left(self) -> list[str]:
        """Return the command lines of processes of this run."""
        found = []
        for process in psutil.process_iter():
            try:
                line = " ".join(process.cmdline())
                if str(self.place) in line or process.cwd() == str(self.place):
                    found.append(line)
            except psutil.Error:
                continue
        return found


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Starting]:
    run = Starting(tmp_path)
    yield run
    run.destroy()


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("number", "times", "terminal"), [
    (signal.SIGINT, 1, True), (signal.SIGINT, 2, True), (signal.SIGINT, 1, False), (signal.SIGTERM, 1, False)],
    ids=["ctrl-c", "ctrl-c-twice", "piped-ctrl-c", "sigterm"])
def test_interrupted_start_ends_without_leftovers(run: Starting, moment: str, number: signal.Signals, times: int,
                                                  terminal: bool) -> None:
    run.begin(terminal)
    assert run.process is not None
    time.sleep(0.4)  # the interpreter has started
    eventually(lambda: MOMENTS[moment](run), 90, moment)
    began = time.monotonic()
    for _ in range(times):
        run.send(number)
        time.sleep(0.3)
    code = run.process.wait(120)
    seconds = time.monotonic() - began
    run.reader.join(10)
    text = run.output.decode()
    print(f"{moment} {number.name} x{times}: {seconds:.1f} s, rc {code}\n{text}")  # pytest -s shows it
    assert run.left() == []
    assert seconds < (HURRIED_SECONDS if times > 1 else END_SECONDS)
    assert code == 128 + number or (moment == "imports" and code == -number)
    assert "Traceback" not in text and "Exception ignored" not in text, text
    assert "Traceback" not in run.logs()
    if not run.folder.config.exists():
        assert moment == "imports"
        return
    assert f"resume: five train --resume {run.folder.name}" in text
    prepare(None, (), None, run.folder.name, root=run.place / "runs")[2].release()  # neither locked nor damaged


def test_interrupted_start_is_resumed(run: Starting) -> None:
    run.begin(terminal=False)
    eventually(lambda: MOMENTS["services"](run), 90, "services start")
    assert run.process is not None
    run.send(signal.SIGINT)
    time.sleep(0.2)
    run.send(signal.SIGINT)
    assert run.process.wait(60) == 130
    resumed = run.command("train", "--resume", run.folder.name, "--accept-changes", "--set", "buffer.sample_reuse=1",
                          "--minutes", "0.5", seconds=200)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr + run.logs()
    assert RunFolder(run.folder.path).report.exists()

"""The lock of a run's folder, with real processes."""

import errno
import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from five.local.run_lock import FILE, RunInUse, RunLock
from tests.repository import ROOT

HOLD = """
import sys, time
from pathlib import Path
from five.local.run_lock import RunLock
lock = RunLock(Path(sys.argv[1]))
print("locked", flush=True)
time.sleep(600)
"""
# Starts a process that shares the lock, as a run's Redis does, and prints its id.
SHARE = """
import subprocess, sys, time
from pathlib import Path
from five.local.run_lock import RunLock
lock = RunLock(Path(sys.argv[1]))
child = subprocess.Popen(["sleep", "600"], pass_fds=(lock.fd,), stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
time.sleep(600)
"""


def started(code: str, folder: Path) -> tuple["subprocess.Popen[str]", str]:
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "PYTHONPATH": f"{ROOT / 'libs'}:{ROOT}"})
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def test_refusal_names_the_holder(tmp_path: Path) -> None:
    process, _ = started(HOLD, tmp_path / "trial")
    try:
        holder = f"process {process.pid} on {socket.gethostname()} since 20"
        with pytest.raises(RunInUse, match=f"{holder}.*stop --run trial"):
            RunLock(tmp_path / "trial")
    finally:
        end(process)


def test_lock_is_free_after_release_and_after_death(tmp_path: Path) -> None:
    process, _ = started(HOLD, tmp_path)
    end(process)
    with RunLock(tmp_path):
        with pytest.raises(RunInUse, match=f"process {os.getpid()} "):
            RunLock(tmp_path)
    with RunLock(tmp_path):
        pass
    assert (tmp_path / FILE).read_text() == ""


def test_lock_is_held_while_a_redis_of_a_dead_holder_runs(tmp_path: Path) -> None:
    process, child = started(SHARE, tmp_path)
    end(process)
    try:
        with pytest.raises(RunInUse, match=f"process {process.pid} .*has died, and a process that it started"):
            RunLock(tmp_path, wait_seconds=0.2)
    finally:
        os.kill(int(child), 9)
    with RunLock(tmp_path):
        pass


def test_filesystem_without_locks_refuses_a_living_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with RunLock(tmp_path):
        with pytest.raises(RunInUse, match=r"in use by process.*no locks.*remove .*lock"):
            RunLock(tmp_path)
    with RunLock(tmp_path):  # it was released
        pass
    process, _ = started(HOLD, tmp_path)
    end(process)
    with RunLock(tmp_path):  # its holder has died
        pass

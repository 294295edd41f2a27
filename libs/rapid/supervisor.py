"""Supervisor of local processes: it starts them in order, restarts those that die, and ends all of them together.

Each process leads its own process group, so a Ctrl-C in the terminal reaches only the supervisor. Each process is tied
to the supervisor's life, so none survives when the supervisor is killed.
"""

import errno
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO

from rapid.child_process import SUPERVISED_VARIABLE, launcher
from rapid.log_rotation import LOG_BYTES, rotate

log = logging.getLogger(__name__)

_TICK = 0.05
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
_FAILING_PAUSE = 60.0  # longest pause before a restart of an optional process that keeps failing
_TAIL_BYTES = 16384
_EXHAUSTED = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE)
_HURRIED_SECONDS = 1.0  # grace period of each stage at a hurried end
_ROTATION_SECONDS = 10.0  # between checks of the logs' sizes
_SETTLED_SECONDS = 30.0  # after this uptime the restart backoff is reset


class ProcessState(StrEnum):
    """State of a supervised process."""

    STARTING = "starting"  # running, not ready yet
    READY = "ready"
    WAITING = "waiting"  # died, to be restarted
    ENDED = "ended"  # ended and not to be restarted
    FAILED = "failed"  # died too often in a row
    STOPPED = "stopped"


@dataclass(frozen=True)
class ProcessSpec:
    """A process to keep alive. Processes of a lower ``stage`` start earlier and end later.

    ``ready`` quickly returns whether the process can be used; None means as soon as it runs. With ``restart`` False its
    end is final. After ``give_up_after`` deaths in a row, each within 30 s of its start, a ``required`` process is
    FAILED. Any other one is failing: its restarts go on, with longer pauses, until it has run for 30 s. ``explain``
    receives the beginning and the end of a dead process's log. It returns why no restart helps, '' if it may. With
    a reason the state is FAILED at once. The process inherits the open files ``pass_fds``.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    ready: Callable[[], bool] | None = None
    stage: int = 0
    restart: bool = True
    give_up_after: int = 10
    grace_seconds: float = 20.0
    explain: Callable[[str], str] | None = None
    required: bool = True
    pass_fds: tuple[int, ...] = ()


@dataclass(frozen=True)
class ProcessStatus:
    """Snapshot of a process. ``last_end`` says how it ended the last time; ``failing``: it died too often in a row."""

    name: str
    state: ProcessState
    pid: int | None
    restarts: int
    last_end: str
    since: float
    failing: bool = False


class _Process:
    def __init__(self, spec: ProcessSpec, log_path: Path) -> None:
        self.spec = spec
        self.log_path = log_path
        self.popen: subprocess.Popen[bytes] | None = None
        self.state = ProcessState.STOPPED
        self.restarts = 0
        self.deaths_in_a_row = 0
        self.last_end = ""
        self.explanation = ""  # why no restart helps
        self.log_start = 0  # size of the log file when the process was started
        self.since = time.time()
        self.started_at = 0.0
        self.start_at = 0.0
        self.wanted = False

    @property
    def failing(self) -> bool:
        return self.deaths_in_a_row >= self.spec.give_up_after

    def enter(self, state: ProcessState) -> None:
        if state is not self.state:
            self.state = state
            self.since = time.time()


class Supervisor:
    """Starter and restarter of local processes. Use it as a context: leaving it ends all of them.

    Each process gets a log file in ``folder``, rotated at `LOG_BYTES`. ``on_event`` receives (name, event, details) of
    starts, deaths, give-ups and recoveries on the supervising thread. Of a process that keeps failing it receives only
    the change. When ``hurried`` returns True, processes that are being ended are killed after a second.
    """

    def __init__(self, folder: Path, on_event: Callable[[str, str, str], None] | None = None,
                 hurried: Callable[[], bool] = lambda: False) -> None:
        self._folder = folder
        self._hurried = hurried
        self._on_event = on_event
        self._processes: dict[str, _Process] = {}
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._stopping = False
        self._stopped = threading.Event()
        # The kernel ties a child to the thread that started it, so this one thread starts all children and ends last.
        self._thread = threading.Thread(target=self._supervise, name="supervisor", daemon=True)
        folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        # Probes may be slow, so they run outside the thread that restarts processes.
        self._prober = threading.Thread(target=self._probe, name="readiness-probe", daemon=True)
        self._prober.start()

    def start(self, spec: ProcessSpec) -> None:
        """Start a process and keep it alive. Raise ValueError for a name in use."""
        with self._lock:
            if self._stopping:
                raise ValueError("the supervisor is stopping")
            if spec.name in self._processes:
                raise ValueError(f"a process named {spec.name!r} already exists")
            process = _Process(spec, self._folder / f"{spec.name}.log")
            process.wanted = True
            process.enter(ProcessState.WAITING)
            self._processes[spec.name] = process
        self._wake.set()

    def remove(self, *names: str) -> None:
        """End processes, all at once, and forget them. Raise KeyError."""
        with self._lock:
            processes = [self._processes[name] for name in names]
            for process in processes:
                process.wanted = False
        self._end(processes)
        with self._lock:
            for name in names:
                self._processes.pop(name, None)

    def wait_ready(self, names: Sequence[str], timeout: float) -> None:
        """Wait until processes are ready. Raise TimeoutError, or RuntimeError when one has failed, with the tail of its
        log."""
        end = time.monotonic() + timeout
        for name in names:
            process = self._processes[name]
            while process.state is not ProcessState.READY:
                if process.state in (ProcessState.FAILED, ProcessState.ENDED):
                    raise RuntimeError(process.explanation or
                                       f"{name} did not start: {process.last_end}\n{self.log_tail(name)}")
                if time.monotonic() >= end:
                    raise TimeoutError(f"{name} was not ready within {timeout:g} s"
                                       f"{', it ' + process.last_end if process.last_end else ''}\n"
                                       f"{self.log_tail(name)}")
                time.sleep(_TICK)

    def _probe(self) -> None:
        while not self._stopped.wait(_TICK):
            with self._lock:
                starting = [(p, p.popen) for p in self._processes.values() if p.state is ProcessState.STARTING]
            for process, popen in starting:
                try:
                    ready = process.spec.ready is None or process.spec.ready()
                except Exception:
                    log.exception("the probe of %s failed", process.spec.name)
                    ready = False
                with self._lock:
                    if ready and process.popen is popen and process.state is ProcessState.STARTING:
                        process.enter(ProcessState.READY)

    def status(self) -> list[ProcessStatus]:
        """Return all processes in the order of `start`."""
        with self._lock:
            return [ProcessStatus(p.spec.name, p.state, p.popen.pid if p.popen else None, p.restarts, p.last_end,
                                  p.since, p.failing) for p in self._processes.values()]

    def failed(self) -> list[str]:
        """Return the names of processes in state FAILED."""
        return [s.name for s in self.status() if s.state is ProcessState.FAILED]

    def why_failed(self, name: str) -> str:
        """Return why a process is in state FAILED: its explanation, or the tail of its log."""
        return self._processes[name].explanation or f"{name} does not start:\n{self.log_tail(name)}"

    def log_tail(self, name: str, lines: int = 20) -> str:
        """Return the last ``lines`` lines of a process's log."""
        try:
            with self._processes[name].log_path.open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(file.tell() - _TAIL_BYTES, 0))
                return "\n".join(file.read().decode("utf-8", "replace").splitlines()[-lines:])
        except OSError:
            return ""

    def stop(self) -> None:
        """End all processes, the last stage first: SIGTERM, the grace period, then SIGKILL to the process group."""
        with self._lock:
            self._stopping = True
            for process in self._processes.values():
                process.wanted = False
            stages = sorted({p.spec.stage for p in self._processes.values()}, reverse=True)
        for stage in stages:
            self._end([p for p in self._processes.values() if p.spec.stage == stage])
        self._stopped.set()
        self._wake.set()
        self._thread.join()
        self._prober.join(timeout=5)

    def __enter__(self) -> "Supervisor":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _supervise(self) -> None:
        next_rotation = time.monotonic() + _ROTATION_SECONDS
        while not self._stopped.is_set():
            if time.monotonic() >= next_rotation:
                self._rotate_logs()
                next_rotation = time.monotonic() + _ROTATION_SECONDS
            with self._lock:
                for process in self._processes.values():
                    try:
                        self._check(process)
                    except Exception:  # the end of this thread would kill every child
                        log.exception("supervision of %s failed", process.spec.name)
            self._wake.wait(_TICK)
            self._wake.clear()

    def _rotate_logs(self) -> None:
        with self._lock:
            processes = list(self._processes.values())
        for process in processes:  # without the lock: the copy may take a second
            try:
                if rotate(process.log_path, LOG_BYTES):
                    process.log_start = 0
            except OSError as error:
                log.debug("%s is not rotated: %s", process.log_path, error)

    def _check(self, process: _Process) -> None:
        if process.popen is None:
            due = process.wanted and process.state is ProcessState.WAITING and time.monotonic() >= process.start_at
            if due:
                self._spawn(process)
            return
        code = process.popen.poll()
        if code is None:
            if process.failing and time.monotonic() - process.started_at >= _SETTLED_SECONDS:
                process.deaths_in_a_row = 0
                self._report(process, "recovered", f"has run for {_SETTLED_SECONDS:g} s")
            return
        _kill_group(process.popen.pid, signal.SIGKILL)  # its remaining descendants
        process.popen = None
        self._ended(process, _end_of(code))

    def _ended(self, process: _Process, how: str, exhausted: bool = False) -> None:
        """Decide how a process that ended goes on. ``exhausted``: it was not started for lack of disk space, memory or
        the like. That may pass, counts as no death and is reported once."""
        now = time.monotonic()
        known = exhausted and process.last_end == how
        process.last_end = how
        if not process.wanted:
            process.enter(ProcessState.STOPPED)
            return
        if not process.spec.restart:
            process.enter(ProcessState.ENDED)
            self._report(process, "ended", process.last_end)
            return
        if process.spec.explain is not None:
            process.explanation = process.spec.explain(_ends_of_log(process.log_path, process.log_start))
            if process.explanation:
                process.enter(ProcessState.FAILED)
                self._report(process, "failed", process.explanation)
                return
        settled = now - process.started_at >= _SETTLED_SECONDS
        if not exhausted:
            process.deaths_in_a_row = 1 if settled else process.deaths_in_a_row + 1
        if process.failing and process.spec.required:
            process.enter(ProcessState.FAILED)
            self._report(process, "failed", f"{process.last_end}, {process.deaths_in_a_row} times in a row")
            return
        pause = _LONGEST_PAUSE if exhausted else min(_FIRST_PAUSE * 2 ** min(process.deaths_in_a_row - 1, 20),
                                                     _FAILING_PAUSE if process.failing else _LONGEST_PAUSE)
        process.start_at = now + pause
        process.restarts += 1
        process.enter(ProcessState.WAITING)
        if known:
            return
        if not process.failing:
            # A service exits with 0 to be started again: after a stop, or with another configuration.
            what = "ended" if how == _end_of(0) else "died"
            self._report(process, what, f"{process.last_end}; restarting in {pause:.1f} s")
        elif process.deaths_in_a_row == process.spec.give_up_after:
            self._report(process, "failing", f"{process.last_end}, {process.deaths_in_a_row} times in a row; "
                                             f"restarting at most every {_FAILING_PAUSE:g} s")

    def _spawn(self, process: _Process) -> None:
        process.started_at = time.monotonic()
        output: IO[bytes]
        try:
            with process.log_path.open("ab") as output:
                process.log_start = output.tell()
                process.popen = subprocess.Popen(
                    launcher(list(process.spec.argv)), env={**os.environ, SUPERVISED_VARIABLE: "1", **process.spec.env},
                    stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                    pass_fds=process.spec.pass_fds)
        except OSError as error:
            self._ended(process, f"could not be started ({error})", error.errno in _EXHAUSTED)
            return
        process.enter(ProcessState.STARTING)
        if not process.failing:
            self._report(process, "started", f"pid {process.popen.pid}")

    def _end(self, processes: Sequence[_Process]) -> None:
        with self._lock:
            for process in processes:
                if process.popen is not None:
                    _kill_group(process.popen.pid, signal.SIGTERM)
                elif process.state is ProcessState.WAITING:
                    process.enter(ProcessState.STOPPED)
        began, hurried_at = time.monotonic(), None
        grace = max((p.spec.grace_seconds for p in processes), default=0.0)
        while any(p.popen is not None for p in processes):
            now = time.monotonic()
            if hurried_at is None and self._hurried():
                hurried_at = now
            if now - began >= grace or (hurried_at is not None and now - hurried_at >= _HURRIED_SECONDS):
                break
            time.sleep(_TICK)
        with self._lock:
            for process in processes:
                if process.popen is not None:
                    log.warning("killing %s: still running after %.0f s", process.spec.name, time.monotonic() - began)
                    _kill_group(process.popen.pid, signal.SIGKILL)
        while any(p.popen is not None for p in processes):
            time.sleep(_TICK)

    def _report(self, process: _Process, what: str, details: str) -> None:
        level = logging.INFO if what in ("started", "ended", "recovered") else logging.WARNING
        log.log(level, "%s %s: %s", process.spec.name, what, details)
        if self._on_event is not None:
            try:
                self._on_event(process.spec.name, what, details)
            except Exception:
                log.exception("supervisor event callback failed")


def _ends_of_log(path: Path, start: int) -> str:
    """Return the first and the last kilobytes of a log after its first ``start`` bytes; '' for an unreadable log."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            found = file.read(_TAIL_BYTES)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _TAIL_BYTES, start + len(found)))
            return (found + file.read()).decode("utf-8", "replace")
    except OSError:
        return ""


def _end_of(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _kill_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass

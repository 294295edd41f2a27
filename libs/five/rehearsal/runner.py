"""Runner of the rehearsals that are requested over REST, one process each, in the process of `five train`.

The controller only records the requests (`controller.surgery.rehearsals`). This runner announces itself for some
seconds at a time, takes one request at a time, and ends its process, and with it the fork's processes, before the
run's stores stop. Each process is bound to its parent (`rapid.child_process`), so that none outlives it.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Callable

import redis

from five.local.run_folder import RunFolder
from five.services.controller.surgery.rehearsals import Rehearsal, Rehearsals, RehearsalState, RehearsalWorker
from rapid.store.state import RunState
from rapid.supervisor import ProcessSpec, ProcessState, Supervisor

POLL_SECONDS = 1.0
GRACE_SECONDS = 60.0  # time for the fork's processes to end one by one
NAME = "rehearsal"  # name of its log


class RehearsalRunner:
    """Thread that runs requested rehearsals. As a context manager it ends the current rehearsal on exit; ``hurried`` is
    an argument of Supervisor."""

    def __init__(self, folder: RunFolder, state: RunState, hurried: Callable[[], bool] = lambda: False) -> None:
        self._folder = folder
        self._rehearsals = Rehearsals(state)
        self._worker = RehearsalWorker(host=socket.gethostname(), pid=os.getpid())
        self._supervisor = Supervisor(folder.path / "logs", hurried=hurried)
        self._running = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rehearsal-runner", daemon=True)

    def _run(self) -> None:
        settled = False
        while not self._over.is_set():
            try:
                if not settled:
                    self._rehearsals.settle()
                    settled = True
                self._rehearsals.announce(self._worker)
                self._poll_requests()
            except redis.RedisError:
                pass  # Redis is unavailable: try again
            self._over.wait(POLL_SECONDS)

    def _poll_requests(self) -> None:
        if self._running:
            status = self._supervisor.status()[0]
            if status.state is ProcessState.ENDED:
                self._failed(self._running, f"its process {status.last_end}\n{self._supervisor.log_tail(NAME, 5)}")
                self._supervisor.remove(NAME)
                self._running = ""
            return
        waiting = [r for r in self._rehearsals.all() if r.state is RehearsalState.WAITING and r.by == "run"]
        if waiting:
            identity = waiting[-1].id
            argv = [sys.executable, "-m", "five.rehearsal", str(self._folder.path.resolve()), identity]
            self._supervisor.start(ProcessSpec(NAME, argv, {"PYTHONUNBUFFERED": "1"}, restart=False,
                                               grace_seconds=GRACE_SECONDS))
            self._running = identity

    def _failed(self, identity: str, error: str) -> None:
        """Record the failure of a process that ended without a result."""
        def failed(rehearsal: Rehearsal) -> Rehearsal:
            return rehearsal if rehearsal.is_over else rehearsal.model_copy(update={
                "state": RehearsalState.FAILED, "error": error[:2000], "ended_at": time.time()})

        self._rehearsals.change(identity, failed, ("five train", "rehearsal.ended", {
            "rehearsal": identity, "state": RehearsalState.FAILED.value, "error": error[:400]}))
        self._rehearsals.release(identity)

    def __enter__(self) -> "RehearsalRunner":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._supervisor.stop()
        try:
            if self._running:
                self._failed(self._running, "the run has ended")
            self._rehearsals.withdraw()
        except redis.RedisError:
            pass  # its keys expire

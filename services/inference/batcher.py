"""Dynamic batching: evaluate requests of many streams in one forward pass and return each row to its request."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from five.clients.inference import CLOSE, GREEDY, NEWEST, REPLAY, RESET, RESTORE, WANT_POLICY_DEBUG, WANT_STATE
from five.services.inference.forward import Forward, HostForward, VersionRows
from five.services.inference.models import Models, ResidentVersion, VersionUnavailable
from five.services.inference.queue import BatchQueue, PendingRequest
from five.services.inference.requests import Arrays, Reply, Request, unknown_reply
from five.services.inference.rows import concatenate, groups, merge
from five.services.inference.sessions import UNKNOWN, SessionsExhausted, SessionTable
from rapid.critical_tasks import CriticalTasks, Watchdog
from rapid.rpc.errors import Unavailable

log = logging.getLogger(__name__)
FAILURES_IN_A_ROW = 20  # batches; after that many the device has failed, not a batch


@dataclass(frozen=True)
class BatcherOptions:
    """Options of the batcher (five.run.config.inference documents them)."""

    max_batch: int = 256
    queue_delay_seconds: float = 0.001
    request_timeout_seconds: float = 15.0


@dataclass
class BatchObserver:
    """Callbacks through which the batcher reports its work (services.inference.metrics counts it)."""

    batch: Callable[[int, float], None] = lambda rows, forward_seconds: None
    queued: Callable[[float], None] = lambda seconds: None
    dropped: Callable[[str, int], None] = lambda reason, requests: None
    sessions: Callable[[int, int], None] = lambda open_sessions, expired: None


class RequestTimeout(Unavailable):
    """Error of a request that waited longer than ``request_timeout_seconds``."""


class Batcher:
    """Thread that runs the forward passes of the batches of a queue (``BatchQueue``), by default on the CPU.

    A request for a version that is not in memory waits outside the queue. When a request fails, its sessions are
    closed, because their states may be half a step ahead.
    """

    def __init__(self, models: Models, table: SessionTable, options: BatcherOptions,
                 observer: BatchObserver | None = None, clock: Callable[[], float] = time.monotonic,
                 forward: Forward | None = None) -> None:
        self._models = models
        self._table = table
        self._options = options
        self._observer = observer or BatchObserver()
        self._clock = clock
        self._forward = forward or HostForward(table, seed=0)
        self.takes_packed = self._forward.packed
        self.prepared = threading.Event()  # set once batches are served
        self._queue = BatchQueue(options.max_batch, options.queue_delay_seconds, clock)
        self.open_stream, self.close_stream = self._queue.open_stream, self._queue.close_stream
        self._unanswered: set[Future[Reply]] = set()
        self._thread = threading.Thread(target=self._run, name="forward", daemon=True)
        self._watchdog: Watchdog | None = None
        self._failed_in_a_row = 0

    def start(self, critical_tasks: CriticalTasks | None = None) -> None:
        """Start the thread. With ``critical_tasks``, the death of the thread ends the process."""
        if critical_tasks is not None:
            self._watchdog = critical_tasks.watchdog("forward-passes")
            self._thread = critical_tasks.thread("forward-passes", self._run, may_end=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after the current batch. Requests still waiting fail with VersionUnavailable."""
        self._queue.close()
        if self._thread.is_alive():
            self._thread.join()
        for pending in self._queue.drain():
            self._fail_request(pending, VersionUnavailable("the server is shutting down"))

    @property
    def idle(self) -> bool:
        """Return whether every request has been answered."""
        return not self._unanswered

    def require_size(self, rows: int) -> None:
        """Raise ValueError for a request without team-steps or with more than fit into a batch."""
        if not 0 < rows <= self._options.max_batch:
            raise ValueError(f"sessions: {rows} team-steps in a request; 1 to {self._options.max_batch} are allowed")

    def submit(self, request: Request) -> "Future[Reply]":
        """Queue a request. Raise ValueError if it is empty, too large, or names a session twice.

        The future raises VersionUnavailable, SessionsExhausted or RequestTimeout. Cancelling it removes the request.
        """
        rows = len(request.sessions)
        self.require_size(rows)
        if len(set(request.sessions)) != rows:
            raise ValueError("sessions: a session occurs twice in a request; send its second step in another one")
        lowest = int(request.policies.min())
        if lowest < NEWEST:
            raise ValueError(f"policies: {lowest} is not a version; allowed are -1 (the newest) and numbers from 0")
        self._forward.stage(request)
        pending = PendingRequest(request, Future(), self._clock())
        self._unanswered.add(pending.future)
        pending.future.add_done_callback(self._unanswered.discard)
        needed = [v for v in np.unique(request.policies).tolist() if v != NEWEST]
        if not needed:
            self._enqueue(pending)
            return pending.future
        left = len(needed)
        lock = threading.Lock()

        def arrived(version: int, reserved: "Future[ResidentVersion]") -> None:
            nonlocal left
            error = reserved.exception()
            with lock:
                left -= 1
                if error is None:
                    pending.served[version] = reserved.result()
                last = left == 0
            if error is not None:
                self._observer.dropped("version", 1)
                _set_exception(pending.future, error)
            if last and pending.future.done():
                self._release(pending)
            elif last:
                self._enqueue(pending)

        for version in needed:
            self._models.reserve(version).add_done_callback(
                lambda reserved, version=version: arrived(version, reserved))  # type: ignore[misc]
        return pending.future

    def _enqueue(self, pending: PendingRequest) -> None:
        if not self._queue.put(pending):
            self._fail_request(pending, VersionUnavailable("the server is shutting down"))

    # ------------------------------------------------------------------------------------------------ the thread

    def _run(self) -> None:
        self._forward.prepare(self._beat)
        self.prepared.set()
        swept = self._clock()
        while not self._queue.closed:
            self._beat()
            batch = self._queue.take()
            if batch:
                self._serve(batch)
            now = self._clock()
            if now - swept > 1.0:
                swept = now
                self._observer.sessions(len(self._table), self._table.expire(now))
        if self._watchdog is not None:
            self._watchdog.stop()

    def _beat(self) -> None:
        if self._watchdog is not None:
            self._watchdog.beat()

    def _serve(self, batch: list[PendingRequest]) -> None:
        now = self._clock()
        live = [pending for pending in batch if self._admit(pending, now)]
        if not live:
            return
        try:
            with self._models.use_newest() as newest:
                replies = self._evaluate(live, newest, now)
        except Exception as error:
            if not isinstance(error, VersionUnavailable):
                log.exception("a batch of %d requests failed", len(live))
                self._failed_in_a_row += 1
                self._observer.dropped("error", len(live))
            for pending in live:
                self._table.close(pending.request.sessions)
                self._fail_request(pending, error)
            if self._failed_in_a_row >= FAILURES_IN_A_ROW:
                raise RuntimeError(f"{self._failed_in_a_row} batches in a row have failed") from error
            return
        self._failed_in_a_row = 0
        for pending, reply in zip(live, replies, strict=True):
            self._release(pending)
            _set_result(pending.future, reply)

    def _admit(self, pending: PendingRequest, now: float) -> bool:
        """Assign state slots to the rows of a request. Return False if the request was answered without evaluation."""
        request = pending.request
        if not pending.future.set_running_or_notify_cancel():
            self._observer.dropped("cancelled", 1)
            self._release(pending)
            return False
        waited = now - pending.enqueued
        if waited > self._options.request_timeout_seconds:
            self._observer.dropped("expired", 1)
            self._fail_request(pending, RequestTimeout(f"the request waited {waited:.1f} s for its batch"))
            return False
        slots = self._table.find(request.sessions)
        unknown = (slots == UNKNOWN) & (request.flags & (RESET | RESTORE) == 0)
        if unknown.any():
            self._observer.dropped("unknown_sessions", 1)
            self._release(pending)
            _set_result(pending.future, unknown_reply([s for s, u in zip(request.sessions, unknown, strict=True) if u]))
            return False
        try:
            self._table.open(request.sessions, slots)
            reset = request.flags & RESET != 0
            if reset.any():
                self._table.clear(slots[reset])
            restore = request.flags & RESTORE != 0
            if restore.any():
                self._table.write(slots[restore], request.states or {})
        except (SessionsExhausted, ValueError) as error:
            self._table.close(request.sessions)
            self._observer.dropped("refused", 1)
            self._fail_request(pending, error)
            return False
        self._table.touch(slots, now)
        pending.slots = slots
        self._observer.queued(waited)
        return True

    def _evaluate(self, live: list[PendingRequest], newest: ResidentVersion, now: float) -> list[Reply]:
        closed_ns = time.time_ns()
        slots = concatenate([p.slots for p in live])
        flags = concatenate([p.request.flags for p in live])
        policies = concatenate([p.request.policies for p in live])
        versions = np.where(policies == NEWEST, newest.version, policies)
        greedy = flags & GREEDY != 0
        want, want_debug = flags & WANT_STATE != 0, flags & WANT_POLICY_DEBUG != 0
        batch = self._forward.join([p.request for p in live])
        replayed = self._replayed_actions(live, flags)
        served = {version: held for pending in live for version, held in pending.served.items()}
        served[newest.version] = newest  # even if a request still holds that number with another digest

        launched_ns = time.time_ns()
        began = time.perf_counter()
        launched = [(rows, self._forward.launch(served[version], batch,
                                                VersionRows.of(rows, slots, want, want_debug, is_greedy, replayed)))
                    for (version, is_greedy), rows in groups(versions, greedy)]
        outputs = [(rows, results()) for rows, results in launched]
        merged = merge(outputs, len(slots), {"state": want, "aux": want, "debug": want_debug})
        forward = time.perf_counter() - began
        self._observer.batch(len(slots), forward)

        closing = flags & CLOSE != 0
        if closing.any():
            sessions = [s for p in live for s in p.request.sessions]
            self._table.close([s for s, c in zip(sessions, closing, strict=True) if c])
        return self._split(live, merged, versions, want, want_debug, now, forward, newest.reward_std,
                           closed_ns, launched_ns)

    def _replayed_actions(self, live: list[PendingRequest],
                          flags: npt.NDArray[np.uint8]) -> npt.NDArray[np.int16] | None:
        """Return int16 [rows, H, 6]: the action to take, -1 where the policy chooses. None if no row is replayed."""
        replay = flags & REPLAY != 0
        if not replay.any():
            return None
        given = concatenate([p.request.replayed for p in live if p.request.replayed is not None])
        out = np.full((len(flags), *given.shape[1:]), -1, np.int16)
        out[replay] = given
        return out

    def _split(self, live: list[PendingRequest], merged: Arrays, versions: npt.NDArray[np.int64],
               want: npt.NDArray[np.bool_], want_debug: npt.NDArray[np.bool_], now: float, forward: float,
               reward_std: float, closed_ns: int, launched_ns: int) -> list[Reply]:
        replies = []
        start, wanted, debugged = 0, 0, 0
        for pending in live:
            rows = slice(start, start + pending.rows)
            stated = slice(wanted, wanted + int(want[rows].sum()))
            watched = slice(debugged, debugged + int(want_debug[rows].sum()))
            start, wanted, debugged = rows.stop, stated.stop, watched.stop
            has_states, has_debug = stated.stop > stated.start, watched.stop > watched.start
            replies.append(Reply(
                [], merged["actions"][rows], merged["logp"][rows], merged["values"][rows], versions[rows],
                {n[6:]: a[stated] for n, a in merged.items() if has_states and n.startswith("state/")},
                {n[4:]: a[stated] for n, a in merged.items() if has_states and n.startswith("aux/")},
                int((now - pending.enqueued) * 1e6), int(forward * 1e6), reward_std,
                {n[6:]: a[watched] for n, a in merged.items() if has_debug and n.startswith("debug/")},
                closed_ns, launched_ns))
        return replies

    def _fail_request(self, pending: PendingRequest, error: BaseException) -> None:
        self._release(pending)
        _set_exception(pending.future, error)

    def _release(self, pending: PendingRequest) -> None:
        for served in pending.served.values():
            self._models.release(served)
        pending.served.clear()


def _set_result(future: "Future[Reply]", reply: Reply) -> None:
    with contextlib.suppress(InvalidStateError):  # its client cancelled it
        future.set_result(reply)


def _set_exception(future: "Future[Reply]", error: BaseException) -> None:
    with contextlib.suppress(InvalidStateError):
        future.set_exception(error)

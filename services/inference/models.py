"""Resident versions: the newest, swapped in between batches, and past ones."""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy.typing as npt
import torch

from rapid.critical_tasks import CriticalTasks
from rapid.rpc.errors import NotFound, Unavailable
from rapid.store.errors import Corrupt

log = logging.getLogger(__name__)

Arrays = Mapping[str, npt.NDArray[Any]]
FETCH_TRIES = 5  # attempts to read a version whose contents are replaced during the read
PERMANENT_ERRORS = (LookupError, ValueError, Corrupt)  # of a load that would fail again: missing, unsuitable, damaged


class PolicyOutput(Protocol):
    """Output of a policy for B teams of H heroes."""

    @property
    def actions(self) -> torch.Tensor:
        """int16 [B, H, 6]."""
        ...

    @property
    def logp(self) -> torch.Tensor:
        """float32 [B, H]."""
        ...

    @property
    def values(self) -> torch.Tensor:
        """float32 [B, H]."""
        ...

    @property
    def aux(self) -> dict[str, torch.Tensor]:
        """Probabilities by head, [B, H, ...]."""
        ...

    @property
    def state(self) -> dict[str, torch.Tensor]:
        """The recurrent state after the step, [B, ...]."""
        ...


class ActingPolicy(Protocol):
    """The part of five.agent.model.policy.Policy that serving needs."""

    @property
    def reward_std(self) -> float: ...

    def act(self, obs: dict[str, torch.Tensor], state: dict[str, torch.Tensor], *,
            generator: torch.Generator | None = None, greedy: bool = False,
            replay: torch.Tensor | None = None) -> PolicyOutput: ...


class VersionSource(Protocol):
    """Source of versions (rapid.store.parameters.ParameterStore)."""

    def head(self) -> int | None: ...

    def digests(self, versions: Sequence[int]) -> dict[int, str]:
        """Return the digests of the contents of these versions in the run. Unknown versions are left out."""
        ...

    def fetch(self, version: int) -> tuple[Arrays, Mapping[str, Any]]: ...


class PolicyBuilder(Protocol):
    """Factory of policies, which also loads a version's tensors into them."""

    def create(self, past: bool = False) -> ActingPolicy:
        """Create a policy to load a version into. A policy for ``past`` versions may use less memory."""
        ...

    def nbytes(self, policy: ActingPolicy) -> int:
        """Return the memory that the policy uses on its device, in bytes."""
        ...

    def load(self, policy: ActingPolicy, tensors: Arrays, meta: Mapping[str, Any]) -> None: ...


class VersionUnavailable(Unavailable):
    """Error of a version that could not be loaded now, or of a server without any version."""


class VersionNotFound(NotFound):
    """Error of a version that no later attempt can load: it does not exist, was deleted or is damaged, or has another
    layout or model."""


@dataclass
class ResidentVersion:
    """Resident version: a number and the digest of its contents.

    ``users`` counts the requests that still need it. ``past``: the policy was created for past versions.
    """

    version: int
    digest: str
    policy: ActingPolicy
    reward_std: float
    nbytes: int = 0
    past: bool = False
    users: int = 0
    used_at: float = field(default=0.0)


class Models:
    """Resident versions by number. The digest identifies the contents of a version.

    When the contents of a number change (after a revert), the version is loaded again. One thread polls for a newer
    version, loads it into an unused policy that was created beforehand, and makes it the newest. A batch that is
    running ends with the parameters it began with. Another thread loads past versions on demand. Versions without users
    stay resident while all past versions together use at most ``past_bytes``. Versions that requests wait for are never
    evicted.

    A client announces a past version before it plays it (`want`), and plays another version until it is resident. A
    version that was requested within ``play_seconds`` is in play. While the versions in play use all the memory, no
    other version is loaded that way: the server would load them again and again in turn.
    """

    def __init__(self, source: VersionSource, builder: PolicyBuilder, *, past_bytes: int, poll_seconds: float,
                 load_jitter_seconds: float = 0.0, play_seconds: float = 60.0,
                 on_swap: Callable[[ResidentVersion, float], None] = lambda served, seconds: None,
                 on_past: Callable[[ResidentVersion], None] = lambda served: None) -> None:
        self._source = source
        self._builder = builder
        self._past_bytes = past_bytes
        self._play_seconds = play_seconds
        self._poll_seconds = poll_seconds
        self._load_jitter = load_jitter_seconds
        self._on_swap = on_swap
        self._on_past = on_past
        self._lock = threading.Lock()
        self._resident: dict[int, ResidentVersion] = {}
        self._loading: dict[int, list[Future[ResidentVersion]]] = {}
        self._spare: list[ActingPolicy] = []  # at most one
        self._spare_past: list[ActingPolicy] = []
        self._size_of_past = 0  # bytes of the past version loaded last
        self._newest: int | None = None
        self.failure = ""  # why the newest version could not be loaded at the last attempt
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._loader = ThreadPoolExecutor(1, "past-versions")
        self._watcher: threading.Thread | None = None
        self._critical_tasks: CriticalTasks | None = None
        self._swap_lock = threading.Lock()

    def start(self, critical_tasks: CriticalTasks | None = None) -> None:
        """Start the threads. With ``critical_tasks``, the death of the thread that follows the newest version ends the
        process."""
        if critical_tasks is None:
            self._watcher = threading.Thread(target=self._watch, name="newest-version", daemon=True)
        else:
            self._watcher = critical_tasks.thread("newest-version-loader", self._watch, may_end=True)
        self._critical_tasks = critical_tasks
        self._watcher.start()

    def close(self) -> None:
        """Stop both threads after the current load."""
        self._closing.set()
        self._wake.set()
        if self._watcher is not None:
            self._watcher.join()
        self._loader.shutdown(cancel_futures=True)

    def wake(self) -> None:
        """Check for a newer version now. Any thread may call this, for instance on a notification of the store."""
        self._wake.set()

    @property
    def newest(self) -> int | None:
        """Return the number of the newest loaded version, or None before the first."""
        return self._newest

    @property
    def past_bytes(self) -> int:
        """Return the memory of all versions except the newest, in bytes."""
        with self._lock:
            return sum(s.nbytes for s in self._resident.values() if s.version != self._newest)

    @property
    def resident(self) -> list[int]:
        """Return the numbers of the versions in memory, ascending."""
        with self._lock:
            return sorted(self._resident)

    @contextmanager
    def use_newest(self) -> Iterator[ResidentVersion]:
        """Yield the newest version and keep it resident while the block runs. Raise VersionUnavailable before the
        first."""
        with self._lock:
            if self._newest is None:
                raise VersionUnavailable("no version has been published yet: the optimizer publishes the first")
            served = self._resident[self._newest]
            served.users += 1
        try:
            yield served
        finally:
            self.release(served)

    def reserve(self, version: int) -> "Future[ResidentVersion]":
        """Return a future that resolves to the version once it is in memory. The version stays there until ``release``.

        The future raises VersionNotFound or VersionUnavailable if the version cannot be loaded.
        """
        with self._lock:
            served = self._resident.get(version)
            if served is not None:
                served.users += 1
                served.used_at = time.monotonic()
                done: Future[ResidentVersion] = Future()
                done.set_result(served)
                return done
            waiting: Future[ResidentVersion] = Future()
            waiters = self._loading.get(version)
            if waiters is None:
                self._begin_load(version, waiting)
            else:
                waiters.append(waiting)
            return waiting

    def want(self, version: int) -> bool:
        """Return whether a version is in memory, and mark it as in play.

        If it is not in memory, its load begins when the past versions in play leave enough memory. The caller must ask
        again later.
        """
        now = time.monotonic()
        with self._lock:
            served = self._resident.get(version)
            if served is not None:
                served.used_at = now
                return True
            if version in self._loading:
                return False
            in_play = sum(s.nbytes for s in self._resident.values()
                          if s.version != self._newest and (s.users or now - s.used_at < self._play_seconds))
            pending = self._size_of_past * (len(self._loading) + 1)
            if in_play and in_play + pending > self._past_bytes:
                return False
            self._begin_load(version)
            return False

    def release(self, served: ResidentVersion) -> None:
        """Release one use of a version."""
        with self._lock:
            served.users -= 1
            self._evict()

    def refresh(self) -> bool:
        """Load and swap in the newest version if its number or digest differs. Return whether it was swapped.

        Past versions whose digest changed are released, and loaded again on demand. Raise what the source raises.
        """
        with self._swap_lock:
            head = self._source.head()
            digests = self._source.digests(sorted({*self.resident, *([] if head is None else [head])}))
            self._forget_changed(digests)
            if head is None:
                return False
            with self._lock:
                already = self._resident.get(head)
                if already is not None and already.digest != digests.get(head, already.digest):
                    log.info("version contents changed version=%d digest=%s previous=%s", head, digests[head],
                             already.digest)
                    already = None
                if already is not None and head == self._newest:
                    return False
            began = time.monotonic()
            served = already or self._fetch(head)
            with self._lock:
                self._resident[head] = served
                self._newest = head
                self._evict()
            self._on_swap(served, time.monotonic() - began)
        return True

    def _forget_changed(self, digests: Mapping[int, str]) -> None:
        """Release past versions whose digest in the run changed.

        Requests that hold such a version finish with it. The newest version stays until its successor is loaded.
        """
        with self._lock:
            changed = [s for s in self._resident.values()
                       if s.version != self._newest and s.digest != digests.get(s.version, s.digest)]
            for served in changed:
                del self._resident[served.version]
                log.info("version contents changed, reload on demand version=%d", served.version)

    def stock(self) -> None:
        """Create a spare policy for the next version. At the paper's size, creating one takes longer than loading
        it."""
        with self._lock:
            if self._spare:
                return
        policy = self._builder.create()
        with self._lock:
            if not self._spare:
                self._spare.append(policy)

    def _watch(self) -> None:
        delay = self._poll_seconds
        while not self._closing.is_set():
            try:
                self._wait_jitter()
                self.refresh()
                self.stock()
                delay, self.failure = self._poll_seconds, ""
            except Exception as error:
                log.exception("loading the newest version failed, keeping version=%s", self._newest)
                self.failure = f"{type(error).__name__}: {error}"
                delay = min(2 * delay, 30.0)
            self._wake.wait(delay)
            self._wake.clear()

    def _wait_jitter(self) -> None:
        """Wait a random part of ``load_jitter_seconds`` before loading any version but the first."""
        if self._load_jitter and self._newest is not None and self._source.head() != self._newest:
            self._closing.wait(random.uniform(0.0, self._load_jitter))

    def _begin_load(self, version: int, *waiting: "Future[ResidentVersion]") -> None:
        self._loading[version] = [*waiting]
        self._loader.submit(self._load_past, version).add_done_callback(self._on_loaded)

    def _on_loaded(self, load: "Future[None]") -> None:
        """End the process after an unexpected error in a load, whose requests would never be answered."""
        error = None if load.cancelled() else load.exception()
        if error is not None and self._critical_tasks is not None:
            self._critical_tasks.fail("past-version-loader", error)

    def _load_past(self, version: int) -> None:
        try:
            served = self._fetch(version, past=True)
        except Exception as cause:
            log.warning("loading failed version=%d: %s", version, cause)
            with self._lock:
                waiters = self._loading.pop(version)
            for waiting in waiters:
                gone = isinstance(cause, PERMANENT_ERRORS)
                kind = VersionNotFound if gone else VersionUnavailable
                error = kind(f"version {version} could not be loaded: {cause}")
                error.__cause__ = cause
                waiting.set_exception(error)
            return
        with self._lock:
            present = self._resident.get(version)
            if present is not None and (present.digest == served.digest or version == self._newest):
                served = present
            self._resident[version] = served
            self._size_of_past = served.nbytes
            served.used_at = time.monotonic()
            waiters = self._loading.pop(version)
            served.users += len(waiters)
            self._evict()
        self._on_past(served)
        for waiting in waiters:
            waiting.set_result(served)

    def _fetch(self, version: int, past: bool = False) -> ResidentVersion:
        digest = None
        for _ in range(FETCH_TRIES):
            before = self._source.digests([version]).get(version, "")
            tensors, meta = self._source.fetch(version)
            if self._source.digests([version]).get(version, "") == before:
                digest = before
                break
        if digest is None:
            raise VersionUnavailable(f"version {version} was replaced {FETCH_TRIES} times while it was being read")
        with self._lock:
            spare = self._spare_past if past else self._spare
            policy = spare.pop() if spare else None
        policy = policy if policy is not None else self._builder.create(past)
        self._builder.load(policy, tensors, meta)
        return ResidentVersion(version, digest, policy, float(policy.reward_std), self._builder.nbytes(policy), past)

    def _evict(self) -> None:
        past = [s for s in self._resident.values() if s.version != self._newest]
        nbytes = sum(s.nbytes for s in past)
        for served in sorted((s for s in past if s.users == 0), key=lambda s: s.used_at):
            if nbytes <= self._past_bytes:
                break
            nbytes -= served.nbytes
            del self._resident[served.version]
            spare = self._spare_past if served.past else self._spare
            if not spare:
                spare.append(served.policy)

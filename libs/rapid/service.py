"""Startup and lifecycle of every service that follows a run: pages, stores, run record, heartbeat, draining."""

import logging
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import redis

from rapid.address import join_address
from rapid.blobs import BlobStore
from rapid.reexec import reexec
from rapid.scheduling import set_time_slice
from rapid.standalone_service import StandaloneService
from rapid.startup import (
    Arguments,
    PlatformConfig,
    advertised_host,
    configure_process,
    exit_with_error,
    parse_arguments,
)
from rapid.store import acl, functions
from rapid.store.blob_owner import claim_blobs
from rapid.store.connection import MAX_CONNECTIONS, Role, connect, password_of, require_no_eviction, require_reachable
from rapid.store.errors import Corrupt, FencedOut, FunctionsMissing, StoreRefused, StoreUnreachable
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import ENDED, RunState, Status

log = logging.getLogger(__name__)
C = TypeVar("C", bound=PlatformConfig)
WITHOUT_BLOBS = frozenset((acl.OPPONENTS, acl.PLAY, acl.ROLLOUT))  # services that use no blobs


class Service(StandaloneService[C]):
    """A started service.

    Attributes: ``config`` is the file's configuration with the run record's values in place, once the service is
    entered; ``file_config`` is the file's own; ``record`` is the run record that it works under, ``epoch`` its epoch;
    ``arguments``; ``kind`` and ``id``; ``caller_secret`` for calls and ``callers`` of its server (None without them);
    ``lifecycle``; ``state`` and ``parameters`` of the run; ``blobs``, except in `WITHOUT_BLOBS`; ``folder`` of the
    run; ``critical_tasks``, which starts threads and tasks whose death ends the process.

    ``report_with`` sets what the heartbeat and /readyz report.

    Entering waits for the stores, the run and its record; the pages respond from the first moment. ``open_run`` creates
    the run instead of waiting for it. With ``claims_blobs`` it also waits until the run owns its blobs. With
    ``ends_with_run`` False the service outlives a stopped run. When the run
    record changes, the service drains, and leaving it execs a new process of the same command line under the new
    record.
    """

    def __init__(self, kind: str, config: C, arguments: Arguments, folder: Path,
                 open_run: "Callable[[Service[C]], None] | None" = None, ends_with_run: bool = True,
                 overlay: Callable[[C, RunRecord], C] = lambda config, record: config,
                 claims_blobs: bool = False) -> None:
        super().__init__(kind, config, arguments)
        self.file_config = config
        self.record = RunRecord()
        self.folder = folder
        # Pods of the services without blobs may lack the credentials, and a store cannot be opened without them.
        self._blobs = None if kind in WITHOUT_BLOBS else BlobStore(config.blobs.url or str(folder / "blobs"))
        most = MAX_CONNECTIONS.get(kind)
        state = connect(config.store.state_url, config.store, "state", most=most)
        self._params = connect(config.store.params_url, config.store, "params", most=most)
        self.state = RunState(state, config.name, kind)
        self.parameters = ParameterStore(self._params, state, config.name, config.store, self._blobs)
        self._stats: Callable[[], dict[str, Any]] = dict
        self._is_idle: Callable[[], bool] = lambda: False  # busy until the service knows better
        self._before_restart: Callable[[], None] = lambda: None
        self._exit_status = 0
        self._inherited: dict[str, socket.socket] = {}  # listening sockets that stay open through the exec, by name
        self._overlay = overlay
        self._joined = False  # whether ``record`` was read from the run
        self._record_moved = False  # whether the run has a newer record
        self._acknowledged_pause = 0  # number of the last acknowledged pause
        self._open_run = open_run
        self._claims_blobs = claims_blobs
        self._identity: str | None = None  # of the run, once its blobs are claimed
        self._ends_with_run = ends_with_run
        self._waits_for = "starting"
        self._missing_functions = ""  # reported by the last heartbeat
        self._lease = self.state.lease(kind, self.id, config.lifecycle.lease_seconds)
        self._ended = threading.Event()
        self._wake = threading.Event()  # ends the heartbeat's wait
        self._heartbeat_thread = self.critical_tasks.thread("heartbeat", self._heartbeat, may_end=True)

    def _open(self) -> None:
        self._lease.metrics_address = self._start_process()
        store = self.config.store
        self._wait_for_store(self.state.redis, store.state_url, "state")
        if "params" in acl.roles_of(self.kind) or self.kind not in acl.SERVICES:
            self._wait_for_store(self._params, store.params_url, "params")
        self._wait_for_functions()
        if self._open_run is not None:
            self._open_run(self)
        else:
            self._wait_for_run()
        self._wait_for_record()
        if self._claims_blobs:
            self._wait_for_blobs()
        self._waits_for = ""
        if self.lifecycle.draining:
            raise SystemExit(0)
        self.config = self._overlay(self.file_config, self.record)
        self.lifecycle.watch(self.state, self.config.lifecycle.poll_seconds, self._ends_with_run, self._on_poll)
        self._heartbeat_thread.start()
        log.info("started, process %d, metrics at %s", os.getpid(), self._lease.metrics_address)

    def _wait_for_store(self, client: redis.Redis, url: str, role: Role) -> None:
        """Wait until that Redis responds. Raise StoreUnreachable after ``store.reconnect_seconds``."""
        end = time.monotonic() + self.config.store.reconnect_seconds
        while not self.lifecycle.draining:
            try:
                require_reachable(client, url, role)
                if "info" in acl.commands(self.kind, role):
                    require_no_eviction(client, url, role)
                return
            except StoreRefused:
                raise
            except StoreUnreachable as error:
                if time.monotonic() >= end:
                    raise
                self._wait(str(error))

    def _wait_for_functions(self) -> None:
        """Wait until the state Redis has this release's functions, which the controller loads."""
        while not self.lifecycle.draining:
            try:
                functions.require(self.state.redis)
                return
            except FunctionsMissing as error:
                self._wait(str(error))
            except redis.RedisError as error:
                self._wait(f"the state Redis does not respond: {error}")

    def _wait_for_run(self) -> None:
        """Wait until the run exists and is not stopped."""
        name = self.config.name
        while not self.lifecycle.draining:
            try:
                status = self.state.status()
            except redis.RedisError as error:
                self._wait(f"the state Redis does not respond: {error}")
                continue
            if status is None:
                self._wait(f"run {name!r} does not exist yet; the controller creates it")
            elif status.status in ENDED:
                self._wait("the run has failed" if status.status is Status.FAILED else "the run is stopped")
            else:
                return

    def _wait_for_record(self) -> None:
        """Wait until the run has a record, and adopt it."""
        while not self.lifecycle.draining:
            try:
                record = self.state.record()
            except redis.RedisError as error:
                self._wait(f"the state Redis does not respond: {error}")
                continue
            if record is not None:
                self.record, self._joined = record, True
                return
            self._wait(f"run {self.config.name!r} is of an earlier release and has no record yet; the controller "
                       "creates it")

    def _wait_for_blobs(self) -> None:
        """Wait until the run owns its blobs. Raise BlobsOwned or Corrupt."""
        while not self.lifecycle.draining:
            try:
                self._identity = self.state.identity()
                if self._identity is not None:
                    claim_blobs(self.blobs, self.config.name, self._identity, self.config.blobs.adopt)
                    self._remove_partial_blobs()
                    return
                self._wait(f"run {self.config.name!r} is of an earlier release and has no id yet; the controller "
                           "creates it")
            except redis.RedisError as error:
                self._wait(f"the state Redis does not respond: {error}")
            except OSError as error:
                self._wait(f"the blob store cannot be used: {error}")

    def _remove_partial_blobs(self) -> None:
        """Remove what died writers left, which would fill a volume. The run does not need it."""
        try:
            if removed := self.blobs.remove_partial():
                log.info("unfinished blobs of earlier writers removed count=%d", removed)
        except OSError as error:
            log.warning("unfinished blobs cannot be removed: %s", error)

    def confirm_blob_owner(self) -> None:
        """Raise BlobsOwned when another run has adopted the blobs that this service claimed."""
        if self._identity is not None:
            claim_blobs(self.blobs, self.config.name, self._identity)

    @property
    def blobs(self) -> BlobStore:
        """Blob store of the run. Raise RuntimeError in a service of `WITHOUT_BLOBS`."""
        if self._blobs is None:
            raise RuntimeError(f"{self.kind} has no blob store: rapid.service.WITHOUT_BLOBS names it")
        return self._blobs

    @property
    def epoch(self) -> int:
        """Epoch that the service works in. Everything that it sends or writes carries it."""
        return self.record.epoch

    @property
    def restarting(self) -> bool:
        """Whether the service drains because the run record changed, and restarts under the new one."""
        return self._record_moved

    def _on_poll(self, record: RunRecord | None) -> None:
        pause = self.lifecycle.pause
        if pause and pause != self._acknowledged_pause:
            self._wake.set()
        if record is not None and record.run_revision != self.record.run_revision:
            self.restart(f"the run's record is at revision {record.revision} of epoch {record.epoch}")

    def restart(self, reason: str) -> None:
        """Drain, and exec a new process once the service is left. A repeated call changes nothing."""
        self._record_moved = True
        self.lifecycle.drain(f"restarting: {reason}")

    def _wait(self, reason: str) -> None:
        if reason != self._waits_for:
            log.info("waiting: %s", reason)
        self._waits_for = reason
        self.lifecycle.wait_drain(self.config.lifecycle.poll_seconds)

    def report_with(self, not_ready: Callable[[], str] | None = None, *,
                    stats: Callable[[], dict[str, Any]] | None = None,
                    is_idle: Callable[[], bool] | None = None) -> None:
        """Set the functions that the heartbeat and /readyz call. None keeps the previous one.

        ``not_ready`` returns why the service cannot work yet, '' when it can. ``stats`` returns JSON values for the
        heartbeat. ``is_idle`` returns whether playing and learning have stopped here; it is called during a pause.
        """
        super().report_with(not_ready)
        self._stats, self._is_idle = stats or self._stats, is_idle or self._is_idle

    def end_with(self, exit_status: int, before_restart: Callable[[], None]) -> None:
        """Set the exit status of a process that neither fails nor restarts itself, and a call just before exec."""
        self._exit_status, self._before_restart = exit_status, before_restart

    def keep_listening(self, name: str, listening: socket.socket) -> None:
        """Keep a copy of a listening socket open through a restart, for `rapid.reexec.inherited_socket`."""
        self._inherited[name] = listening.dup()

    def why_not_ready(self) -> str:
        """Return why the service cannot work now; '' when it can."""
        waits_for = self._waits_for or self._missing_functions
        return super().why_not_ready() if self.lifecycle.draining or not waits_for else waits_for

    def folder_for(self, name: str, configured: str = "") -> Path:
        """Return the folder for files called ``name``: the configured one, else one in the run's folder.

        If the run's folder is read-only, it is in the temporary folder.
        """
        if configured:
            return Path(configured)
        return (self.folder if os.access(self.folder, os.W_OK) else Path(tempfile.gettempdir())) / name

    def announce(self, port: int, host: str | None = None) -> str:
        """Publish the service's address with the heartbeat, and return it. ``host`` defaults to ``rpc.listen_host``."""
        self._lease.address = join_address(advertised_host(self.config.rpc.listen_host if host is None else host), port)
        self._renew()
        return self._lease.address

    def _renew(self) -> None:
        # Read the pause first: the idle state read after it is then valid for that pause.
        pause = self.lifecycle.pause
        idle = bool(pause) and self._is_idle()
        try:
            self._lease.renew(self._stats(), *self.record.run_revision, pause, idle)
            self._acknowledged_pause = pause if idle else 0
            self._missing_functions = ""
        except redis.RedisError as error:
            self._missing_functions = str(error) if isinstance(error, FunctionsMissing) else ""
            log.warning("heartbeat failed: %s", error)

    def _heartbeat(self) -> None:
        while not self._ended.is_set():
            try:
                self._renew()
            except Exception:
                log.exception("heartbeat stats failed")
            self._wake.wait(self.config.lifecycle.heartbeat_seconds)
            self._wake.clear()

    def close(self, restarting: bool = False) -> None:
        """End the heartbeat, the pages and the status poller. With ``restarting`` the instance returns soon."""
        self._ended.set()
        self._wake.set()
        if self._heartbeat_thread.is_alive():
            self._heartbeat_thread.join(timeout=5)
            try:
                self._lease.release(restarting)
            except redis.RedisError:
                pass  # the lease expires
        self._end_process()

    def __enter__(self) -> Self:
        try:
            self._open()
        except (ValueError, OSError, Corrupt) as error:
            self.close()
            exit_with_error(self.kind, error)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        restarting = self._should_restart(error)
        self.close(restarting)
        if restarting and not self.lifecycle.signal_received:  # a signal may arrive while the service closes
            self._before_restart()
            reexec(self._inherited)
        self._exit_on_failure(error)
        if error is None and self._exit_status:
            raise SystemExit(self._exit_status)

    def _should_restart(self, error: BaseException | None) -> bool:
        """Return whether the process continues under another record instead of ending."""
        fine = error is None or (isinstance(error, SystemExit) and not error.code)
        fenced = _is_fenced_by_epoch(error)
        if not self._joined or self.critical_tasks.failure or self.lifecycle.signal_received or not (fine or fenced):
            return False
        if self._record_moved or fenced:
            return True
        if self.lifecycle.draining:
            return False
        # It returned by itself. With several optimizers, another may have seen the new record earlier.
        try:
            now = self.state.record()
        except redis.RedisError:
            return False
        return now is not None and now.run_revision != self.record.run_revision


def start(kind: str, load: Callable[[str, Sequence[str]], C], argv: Sequence[str] | None = None,
          open_run: Callable[[Service[C]], None] | None = None,
          ends_with_run: Callable[[C], bool] = lambda config: True,
          overlay: Callable[[C, RunRecord], C] = lambda config, record: config,
          claims_blobs: bool = False, long_time_slices: Callable[[C], bool] = lambda config: False) -> Service[C]:
    """Create a service from its command line, to be entered as a context.

    ``load`` reads the configuration; ``overlay`` applies the run record to it. ``long_time_slices`` returns
    whether the service computes most of the time and shares its cores with others that do (`rapid.scheduling`). Any
    error in the configuration, the secret or the stores is one line on standard error and exit code 2, here or on
    entering. A service that receives SIGTERM while it waits for its stores or its run exits with 0.
    """
    arguments = parse_arguments(kind, argv)
    try:
        config = configure_process(kind, arguments, load, (password_of("state"), password_of("params")))
        if long_time_slices(config):
            set_time_slice()
        path = Path(arguments.config)
        folder = path.resolve().parent if path.is_file() else Path("runs") / config.name
        service = Service(kind, config, arguments, folder, open_run, ends_with_run(config), overlay, claims_blobs)
    except (ValueError, OSError) as error:
        exit_with_error(kind, error)
    return service


def _is_fenced_by_epoch(error: BaseException | None) -> bool:
    return isinstance(error, FencedOut) and error.reason == "epoch"

"""The start of every service: configuration, allocator, logs, metrics, run state, sign of life, draining."""

import argparse
import faulthandler
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import redis

from rapid.allocator import tune_allocator
from rapid.blobs import BlobStore
from rapid.config import AllocatorConfig, BlobConfig, LifecycleConfig, RpcConfig, StoreConfig, TelemetryConfig
from rapid.lifecycle import Lifecycle
from rapid.processes import SUPERVISED_VARIABLE, die_with_parent
from rapid.rpc.security import load_token
from rapid.store.connection import connect, require_reachable
from rapid.store.parameters import ParameterStore
from rapid.store.state import RunState
from rapid.telemetry.logs import configure_logs
from rapid.telemetry.metrics import MetricsServer, identify, start_metrics_server

log = logging.getLogger(__name__)


class PlatformConfig(Protocol):
    """What a run's configuration tells the platform."""

    @property
    def name(self) -> str: ...
    @property
    def rpc(self) -> RpcConfig: ...
    @property
    def store(self) -> StoreConfig: ...
    @property
    def blobs(self) -> BlobConfig: ...
    @property
    def telemetry(self) -> TelemetryConfig: ...
    @property
    def allocator(self) -> AllocatorConfig: ...
    @property
    def lifecycle(self) -> LifecycleConfig: ...


C = TypeVar("C", bound=PlatformConfig)


@dataclass(frozen=True)
class Arguments:
    """The command line of a service."""

    config: str
    overrides: tuple[str, ...]
    id: str
    port: int | None
    metrics_port: int | None


def parse_arguments(kind: str, argv: Sequence[str] | None = None) -> Arguments:
    """``--config FILE --set a.b=c --id N --port P --metrics-port P``; explains itself with ``--help``."""
    parser = argparse.ArgumentParser(prog=f"python -m services.{kind}", description=f"The {kind} service of a run.")
    parser.add_argument("--config", required=True, help="the run's configuration, a YAML file or a preset's name")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                        help="changes a value of it; may be given several times")
    parser.add_argument("--id", default=os.environ.get("RANK", "0"),
                        help="which instance of the service this is (default: torchrun's rank, or 0)")
    parser.add_argument("--port", type=int, help="port to listen on; by default the configuration's")
    parser.add_argument("--metrics-port", type=int, help="port of the metrics page; 0: any free one")
    found = parser.parse_args(argv)
    return Arguments(found.config, tuple(found.overrides), found.id, found.port, found.metrics_port)


class Service(Generic[C]):
    """A started service.

    Attributes: ``config``; ``arguments``; ``kind`` and ``id``; ``token`` for gRPC (None: there is none);
    ``lifecycle``; ``state`` and ``parameters`` of the run; ``blobs``; ``folder`` of the run. Set ``stats`` to a
    function that returns JSON values: they go with each sign of life.
    """

    def __init__(self, kind: str, config: C, arguments: Arguments, folder: Path) -> None:
        self.kind = kind
        self.id = arguments.id
        self.config = config
        self.arguments = arguments
        self.folder = folder
        self.token = load_token(config.rpc)
        self.lifecycle = Lifecycle(config.lifecycle.grace_seconds)
        self.blobs = BlobStore(config.blobs.url or str(folder / "blobs"))
        state = connect(config.store.state_url, config.store)
        params = connect(config.store.params_url, config.store)
        require_reachable(state, config.store.state_url, "state")
        require_reachable(params, config.store.params_url, "params")
        self.state = RunState(state, config.name)
        self.parameters = ParameterStore(params, state, config.name, config.store, self.blobs)
        self.stats: Callable[[], dict[str, Any]] = dict
        self._metrics: MetricsServer | None = None
        self._lease = self.state.lease(kind, self.id, config.lifecycle.lease_seconds)
        self._ended = threading.Event()
        self._beat = threading.Thread(target=self._heartbeat, name="heartbeat", daemon=True)

    def _open(self) -> None:
        telemetry = self.config.telemetry
        port = telemetry.metrics_port if self.arguments.metrics_port is None else self.arguments.metrics_port
        self._metrics = start_metrics_server(port, telemetry.metrics_host)
        identify(self.config.name, self.kind, self.id)
        self._lease.metrics_address = f"{_reachable(telemetry.metrics_host)}:{self._metrics.port}"
        self.lifecycle.install()
        self.lifecycle.watch(self.state, self.config.lifecycle.poll_seconds)
        self._beat.start()
        log.info("started, process %d, metrics at %s", os.getpid(), self._lease.metrics_address)

    def announce(self, address: str) -> None:
        """Says, with the sign of life, at which address the service is reached."""
        self._lease.address = address
        self._renew()

    def _renew(self) -> None:
        try:
            self._lease.renew(self.stats())
        except redis.RedisError as error:
            log.warning("no sign of life could be given: %s", error)

    def _heartbeat(self) -> None:
        while not self._ended.is_set():
            try:
                self._renew()
            except Exception:
                log.exception("the service's stats failed")
            self._ended.wait(self.config.lifecycle.heartbeat_seconds)

    def close(self) -> None:
        """Ends the sign of life, the metrics page and the watching of the run."""
        self._ended.set()
        self._beat.join(timeout=5)
        try:
            self._lease.release()
        except redis.RedisError:
            pass  # it ends by itself
        if self._metrics is not None:
            self._metrics.close()
        self.lifecycle.close()
        log.info("ended")

    def __enter__(self) -> "Service[C]":
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start(kind: str, load: Callable[[str, Sequence[str]], C], argv: Sequence[str] | None = None) -> Service[C]:
    """A service ready to be entered as a context, from its command line; ``load`` reads the configuration.

    Whatever is wrong with the configuration, the token or the stores is one clear line and exit code 2.
    """
    arguments = parse_arguments(kind, argv)
    if os.environ.get(SUPERVISED_VARIABLE):
        # The supervisor ties its children to itself; this ties theirs (an optimizer's ranks) to them.
        die_with_parent()
    try:
        config = load(arguments.config, arguments.overrides)
        if config.allocator.tune:
            tune_allocator()
        token = load_token(config.rpc)
        configure_logs(config.telemetry, config.name, kind, arguments.id, [token] if token else [])
        path = Path(arguments.config)
        folder = path.resolve().parent if path.is_file() else Path("runs") / config.name
        service = Service(kind, config, arguments, folder)
    except (ValueError, OSError) as error:
        _refuse(kind, error)
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, all_threads=True)  # shows where a stuck service is
    return service


def _refuse(kind: str, error: Exception) -> NoReturn:
    print(f"{kind}: {error}", file=sys.stderr)
    raise SystemExit(2) from None


def _reachable(host: str) -> str:
    """The address others use for a service that listens on ``host``."""
    if host not in ("0.0.0.0", "::", ""):
        return host
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"

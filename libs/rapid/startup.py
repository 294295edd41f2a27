"""Common startup of every service: command line, process settings from the configuration, and fatal errors."""

import argparse
import faulthandler
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeVar

from rapid.address import ANY_ADDRESS
from rapid.allocator import tune_allocator
from rapid.child_process import SUPERVISED_VARIABLE, die_with_parent
from rapid.config import (
    AllocatorConfig,
    BlobConfig,
    LifecycleConfig,
    RpcConfig,
    StoreConfig,
    TelemetryConfig,
    TracingConfig,
)
from rapid.redaction import redact
from rapid.rpc.caller_secret import load_secret
from rapid.telemetry.logs import configure_logs
from rapid.telemetry.tracing import start_tracing

OWN_NAME = "hostname"  # as an --id: the machine's name, which is the pod's or container's in a container


class PlatformConfig(Protocol):
    """The sections of a run's configuration that the platform reads."""

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
    def tracing(self) -> TracingConfig: ...
    @property
    def allocator(self) -> AllocatorConfig: ...
    @property
    def lifecycle(self) -> LifecycleConfig: ...


C = TypeVar("C", bound=PlatformConfig)


@dataclass(frozen=True)
class Arguments:
    """Command line of a service."""

    config: str
    overrides: tuple[str, ...]
    id: str
    port: int | None
    metrics_port: int | None


def parse_arguments(kind: str, argv: Sequence[str] | None = None) -> Arguments:
    """Parse ``--config FILE --set a.b=c --id N --port P --metrics-port P``."""
    parser = argparse.ArgumentParser(prog=f"python -m five.services.{kind}",
                                     description=f"The {kind} service of a run.")
    parser.add_argument("--config", required=True, help="the run's configuration, a YAML file or a preset's name")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                        help="changes a value of it; may be given several times")
    parser.add_argument("--id", default=os.environ.get("RANK", "0"),
                        help="which instance of the service this is (default: its rank, or 0); 'hostname' is "
                             "the machine's name")
    parser.add_argument("--port", type=int, help="port to listen on; by default the configuration's. Under an agent "
                        "each process of a machine adds its LOCAL_RANK, to this and to the metrics' port")
    parser.add_argument("--metrics-port", type=int, help="port of the pages /metrics, /healthz and /readyz; 0: any "
                        "free one; by default the configuration's")
    found = parser.parse_args(argv)
    return Arguments(found.config, tuple(found.overrides), _identity(found.id), rank_port(found.port),
                     rank_port(found.metrics_port))


def local_rank() -> int:
    """Return this process's rank among the processes of this machine's agent; 0 without one."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def rank_port(port: int | None) -> int | None:
    """Return the port of this process: ``port`` plus its local rank."""
    return port + local_rank() if port else port


def _identity(given: str) -> str:
    if given != OWN_NAME:
        return given
    several = int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > 1
    return f"{socket.gethostname()}-{local_rank()}" if several else socket.gethostname()


def configure_process(kind: str, arguments: Arguments, load: Callable[[str, Sequence[str]], C],
                      passwords: Sequence[str | None] = ()) -> C:
    """Load the configuration and apply it to the process: parent death, allocator, logs, traces, stack dumps on
    SIGUSR1.

    The caller's secret and ``passwords`` are hidden from the logs. Raises ValueError or OSError for an invalid
    configuration or secret, and for traces without their packages.
    """
    if os.environ.get(SUPERVISED_VARIABLE):
        # The supervisor ties its children to itself. This ties their children (an optimizer's ranks) to them.
        die_with_parent()
    config = load(arguments.config, arguments.overrides)
    if config.allocator.tune:
        tune_allocator()
    load_secret(config.rpc)  # which hides it
    secrets = [secret for secret in passwords if secret]
    configure_logs(config.telemetry, config.name, kind, arguments.id, secrets)
    start_tracing(config.tracing, config.name, kind, arguments.id)
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, file=sys.__stderr__ or sys.stderr, all_threads=True)  # dumps all stacks
    return config


def exit_with_error(kind: str, error: Exception) -> NoReturn:
    """Exit with code 2 after one line with the error on standard error."""
    print(f"{kind}: {redact(str(error))}", file=sys.stderr)
    raise SystemExit(2) from None


def advertised_host(host: str) -> str:
    """Return the host name that other machines use for a service that listens on ``host``.

    For a service on every interface this is the machine's full name if it has one, else its address, else its short
    name: where the machine resolves that to a loopback address, as on Debian, other machines may still resolve it. The
    name of a StatefulSet's pod outlives its addresses.
    """
    if host not in ANY_ADDRESS:
        return host
    name = socket.getfqdn()
    if "." in name and not name.startswith("localhost") and not name.endswith(".arpa"):
        return name
    try:
        found = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
    except OSError:
        return socket.gethostname()
    # A server on 0.0.0.0 may have no IPv6 address; one on :: has both, and the preferred one is first.
    usable = [row for row in found if host == "::" or row[0] == socket.AF_INET]
    address = next((text for row in usable or found if not _is_loopback(text := str(row[4][0]))), "")
    return address or socket.gethostname()


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback

"""Startup of a service that has no store and follows no run: configuration, logs, callers, health pages, draining.

It holds no Redis password and knows of the run only what its callers send. It lives until a signal ends it, whatever
the run's status is.
"""

import logging
import os
from collections.abc import Callable, Sequence
from typing import Generic, Self, TypeVar

from rapid.address import join_address
from rapid.lifecycle import Lifecycle
from rapid.rpc.caller_secret import load_secret
from rapid.rpc.callers import load_callers
from rapid.startup import (
    Arguments,
    PlatformConfig,
    advertised_host,
    configure_process,
    exit_with_error,
    parse_arguments,
    rank_port,
)
from rapid.telemetry.metrics import identify
from rapid.telemetry.pages import PagesServer, start_pages
from rapid.telemetry.tracing import stop_tracing

log = logging.getLogger(__name__)
C = TypeVar("C", bound=PlatformConfig)


class StandaloneService(Generic[C]):
    """A started service without a store. Use it as a context in the main thread.

    Attributes: ``config``; ``arguments``; ``kind`` and ``id``; ``caller_secret`` for calls and ``callers`` of its
    server (None without them); ``lifecycle``; ``critical_tasks``, which starts threads and tasks whose death ends the
    process. /readyz says "starting" until ``report_with`` is called.
    """

    def __init__(self, kind: str, config: C, arguments: Arguments) -> None:
        self.kind = kind
        self.id = arguments.id
        self.config = config
        self.arguments = arguments
        self.caller_secret = load_secret(config.rpc)
        self.callers = load_callers(config.rpc, kind)
        self.lifecycle = Lifecycle(config.lifecycle.grace_seconds, watchdog_seconds=config.lifecycle.watchdog_seconds)
        self.critical_tasks = self.lifecycle.critical_tasks
        self._not_ready: Callable[[], str] = lambda: "starting"
        self._pages: PagesServer | None = None

    def report_with(self, not_ready: Callable[[], str] | None = None) -> None:
        """Set the function that returns why the service cannot work yet, '' when it can."""
        self._not_ready = not_ready or self._not_ready

    def why_not_ready(self) -> str:
        """Return why the service cannot work now; '' when it can."""
        return f"draining ({self.lifecycle.drain_reason})" if self.lifecycle.draining else self._not_ready()

    def listen_address(self, port: int = 0) -> str:
        """Return the gRPC listen address, ``rpc.listen_host``:port. The command line's port replaces ``port``."""
        return join_address(self.config.rpc.listen_host,
                            port if self.arguments.port is None else self.arguments.port)

    def _start_process(self) -> str:
        """Start the pages and the signal handlers. Return the address of the metrics page. Raise OSError."""
        telemetry = self.config.telemetry
        port = rank_port(telemetry.metrics_port) if self.arguments.metrics_port is None else self.arguments.metrics_port
        self._pages = start_pages(port or 0, telemetry.metrics_host, self.why_not_ready,
                                  self.critical_tasks.failure_reason)
        identify(self.config.name, self.kind, self.id)
        self.lifecycle.install()
        return join_address(advertised_host(telemetry.metrics_host), self._pages.port)

    def _end_process(self) -> None:
        if self._pages is not None:
            self._pages.close()
        self.lifecycle.close()
        stop_tracing()
        log.info("service ended")
        self.critical_tasks.report_failure()

    def _exit_on_failure(self, error: BaseException | None) -> None:
        if self.critical_tasks.failure and (error is None or isinstance(error, SystemExit)):
            raise SystemExit(1)

    def __enter__(self) -> Self:
        try:
            address = self._start_process()
        except (ValueError, OSError) as error:
            exit_with_error(self.kind, error)
        log.info("started, process %d, metrics at %s", os.getpid(), address)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._end_process()
        self._exit_on_failure(error)


def start_standalone(kind: str, load: Callable[[str, Sequence[str]], C], argv: Sequence[str] | None = None
                    ) -> StandaloneService[C]:
    """Create a service from its command line, to be entered as a context. ``load`` reads the configuration.

    Any error in the configuration, the secret or the callers is one line on standard error and exit code 2, here or on
    entering.
    """
    arguments = parse_arguments(kind, argv)
    try:
        config = configure_process(kind, arguments, load)
        service = StandaloneService(kind, config, arguments)
    except (ValueError, OSError) as error:
        exit_with_error(kind, error)
    return service

"""`five train`: run every service on this machine, show progress and write the report."""

import logging
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler

import redis

from five.cli.console import link
from five.cli.first_version import FirstVersionCheck
from five.cli.interruption import Interruption
from five.cli.live import LiveView, plain
from five.cli.origin import store_origin
from five.cli.run_preparation import prepare
from five.cli.terminal import Terminal, TerminalHandler
from five.cli.training_report import OptionalTask, Reporter
from five.local.cluster import LocalCluster
from five.local.rest_client import ApiError, ControllerClient
from five.local.run_folder import RunFolder, RunUnavailable
from five.local.run_lock import RunLock
from five.packed_agents.folder import find_agent
from five.rehearsal.runner import RehearsalRunner
from five.run.config import RunConfig
from five.run.load import ConfigError
from rapid.log_rotation import LOG_BYTES, OLD_LOGS
from rapid.store.state import ENDED, Status

log = logging.getLogger(__name__)

REPORT_SECONDS = 120.0
LINE_SECONDS = 15.0
UNCHANGED_SECONDS = 60.0  # between two lines with the same figures
NOTHING_LEARNED = 1  # exit status of a training that made no version


def train(preset: str | None, minutes: float | None, overrides: Sequence[str], name: str | None, resume: str | None,
          accept_changes: bool = False, agent: str | None = None, temperature: float | None = None) -> int:
    """Train until ``minutes`` have passed, Ctrl-C or `five stop`. Return the exit status.

    A new run begins with the packed agent ``agent``, if given, by default at its own temperature. Raises ConfigError
    for a temperature without an agent.

    Training goes on when its terminal is closed. The first SIGINT or SIGTERM ends it in order; after a second one,
    processes that still run are killed. Raises KeyboardInterrupt with the signal if no version was made before.
    """
    if temperature is not None and not agent:
        raise ConfigError(f"--temperature {temperature:g}: only with --from, for the agent that the run begins with")
    with Interruption() as interruption:
        try:
            with interruption.raising():
                folder, config, lock = prepare(preset, overrides, name, resume, accept_changes,
                                               agent=find_agent(agent, temperature) if agent else None)
        except OSError as error:
            raise RuntimeError(f"the run's folder cannot be written: {error}") from None
        with lock, Terminal() as terminal, _logging(folder, terminal):
            try:
                return _train(folder, config, lock, terminal, minutes, interruption)
            except KeyboardInterrupt:
                terminal.say(f"resume: five train --resume {folder.name}")
                raise


def _train(folder: RunFolder, config: RunConfig, lock: RunLock, terminal: Terminal, minutes: float | None,
           interruption: Interruption) -> int:
    terminal.say(f"run [bold]{folder.name}[/bold] in {folder.path}/", markup=True)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # ignored under nohup
        signal.signal(signal.SIGHUP, lambda *_: log.info("the terminal is closed; training continues"))
    with LocalCluster.start(folder, config, lambda text: terminal.say(text, "dim"), lock, interruption.raising,
                            interruption.hurried, prepare=store_origin) as cluster:
        before = cluster.series.last("versions")
        reporter = Reporter(cluster)
        cluster.wait_running(interrupted=lambda: interruption.number is not None,
                             say=lambda text: terminal.say(text, "yellow"))
        with suppress(KeyboardInterrupt), interruption.raising():  # the controller may answer late
            _show_link(folder, terminal)
        until = time.time() + 60 * minutes if minutes else None
        failure, first_version = "", FirstVersionCheck(cluster, before.id if before else "")
        try:
            with RehearsalRunner(folder, cluster.state, interruption.hurried):
                reason = _watch(cluster, reporter, terminal, interruption, until, first_version)
        except RuntimeError as error:
            reason = failure = str(error)
        reason = reason.partition("\n")[0]
        terminal.say(f"ending: {reason}", "dim")
        cluster.stop(reason)
        if not interruption.hurried():
            reporter.write()
        unlearned = first_version.why_unlearned()
    if folder.report.exists():
        terminal.say(f"report: [bold]{folder.report}[/bold]", markup=True)
    if unlearned and not failure and interruption.number is not None:
        raise KeyboardInterrupt(interruption.number)
    terminal.say(f"resume: five train --resume {folder.name}")
    if failure:
        raise RuntimeError(failure)
    if unlearned:
        terminal.say(f"no version was made: {unlearned}", "bold red")
        return NOTHING_LEARNED
    return 0


@contextmanager
def _logging(folder: RunFolder, terminal: Terminal) -> Iterator[None]:
    """Log this process into the run's folder, and warnings on the terminal too."""
    file = RotatingFileHandler(folder.path / "logs" / "train.log", maxBytes=LOG_BYTES, backupCount=OLD_LOGS,
                               encoding="utf-8")
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    file.handleError = lambda record: None  # type: ignore[method-assign]  # a full disk
    handlers = (file, TerminalHandler(terminal))
    loggers = [logging.getLogger(package) for package in ("five", "rapid")]
    for logger in loggers:
        logger.setLevel(logging.INFO)
        for handler in handlers:
            logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            for handler in handlers:
                logger.removeHandler(handler)
        file.close()


def _show_link(folder: RunFolder, terminal: Terminal) -> None:
    """Print the link to the run's console. Print the error if there is no link; the run goes on."""
    try:
        address = link(ControllerClient(folder.cluster().rest, folder.operator_token()))
    except (ApiError, RunUnavailable) as error:
        terminal.say(f"console: {error}", "yellow")
        return
    # On one line, so that the terminal recognises the link.
    terminal.say(f"console: {address}")
    terminal.say("         (valid once, for ten minutes; `five console` prints another)", "dim")


def _watch(cluster: LocalCluster, reporter: Reporter, terminal: Terminal, interruption: Interruption,
           until: float | None, first_version: FirstVersionCheck) -> str:
    """Show progress until the run ends. Return the reason.

    On a terminal it redraws a panel; otherwise it prints one line of at most 80 characters every `LINE_SECONDS`, and
    every `UNCHANGED_SECONDS` while its figures do not change.
    """
    view = LiveView(cluster.state, cluster.series, cluster.leases, until)
    part = OptionalTask("progress")
    began = next_line = next_unchanged = next_warning = time.monotonic()
    next_report = began + REPORT_SECONDS
    printed = ""

    def show(status: Status | None) -> None:
        nonlocal next_line, next_unchanged, next_warning, printed
        view.read()
        faults, warnings, now = cluster.faults(), first_version.update(status), time.monotonic()
        if terminal.is_terminal:
            terminal.show(view.render([*(f"{name} {why}" for name, why in faults.items()), *warnings]))
            return
        if warnings and now >= next_warning:
            terminal.say("\n".join(f"warning: {warning}" for warning in warnings))
            next_warning = now + REPORT_SECONDS
        if now >= next_line:
            line = plain(cluster.state, view.newest("versions"), view.newest("ratings"), faults, now - began)
            next_line = now + LINE_SECONDS
            figures = line.partition("  ")[2]
            if figures != printed or now >= next_unchanged:
                terminal.say(line)
                printed, next_unchanged = figures, now + UNCHANGED_SECONDS

    try:
        while True:
            if interruption.wait(1.0):
                return "interrupted"
            if until is not None and time.time() >= until:
                return "time limit reached"
            cluster.check()
            try:
                status = cluster.state.status()
            except redis.RedisError:
                continue  # Redis is being restarted
            if status is not None and status.status in ENDED:
                return f"the run is {status.status}: {status.reason or 'requested by ' + status.who}"
            part.run(lambda: show(status.status if status else None))  # noqa: B023 - called at once
            if time.monotonic() >= next_report:
                reporter.write()
                next_report = time.monotonic() + REPORT_SECONDS
    finally:
        terminal.hide()

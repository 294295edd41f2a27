"""`five train`: run every service on this machine, show progress and write the report."""

import logging
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import redis

from five.agent.compute import require_device
from five.cli.console import link
from five.cli.interruption import Interruption
from five.cli.live import LiveView, plain
from five.cli.origin import origin_of, store_origin
from five.cli.terminal import Terminal, TerminalHandler
from five.evaluation.saved_state import save_evidence, save_ladder, save_record
from five.local.cluster import LocalCluster
from five.local.readiness import first_version_seconds, why_not_ready
from five.local.rest_client import ApiError, ControllerClient
from five.local.run_folder import ROOT, RunFolder, RunUnavailable, find_run, free_name
from five.local.run_lock import RunLock
from five.packed_agents.fine_tuning import fine_tuning_config, write_first_checkpoint
from five.packed_agents.folder import PackedAgent, find_agent
from five.rehearsal.runner import RehearsalRunner
from five.reports import run_report
from five.reports.tensorboard import TensorBoardWriter
from five.run.config import RunConfig
from five.run.effective import differences, record_trees
from five.run.load import ConfigError, apply_overrides, load, load_stored, rename, save, validate
from five.services.controller.console.bottleneck import bottleneck
from five.services.controller.games.recordings import RecordingReader
from five.services.controller.run.setup import require_feasible
from rapid.blobs import BlobStore
from rapid.log_rotation import LOG_BYTES, OLD_LOGS
from rapid.redaction import redact_tree
from rapid.store.state import ENDED, PAUSE_HOLDS, Status
from rapid.telemetry.tracing import require_packages

log = logging.getLogger(__name__)

DEFAULT_PRESET = "laptop-1v1"
REPORT_SECONDS = 120.0
LINE_SECONDS = 15.0
UNCHANGED_SECONDS = 60.0  # between two lines with the same figures
DIAGNOSIS_SECONDS = 10.0  # from one search for the reason of a missing version to the next
NOTHING_LEARNED = 1  # exit status of a training that made no version


def prepare(preset: str | None, overrides: Sequence[str], name: str | None, resume: str | None,
            accept_changes: bool = False, root: Path = ROOT, agent: PackedAgent | None = None
            ) -> tuple[RunFolder, RunConfig, RunLock]:
    """Return the folder, configuration and lock of a new or resumed run. A new one begins with ``agent``, if given.

    Raises ConfigError, AgentUnavailable, RunUnavailable, and RunInUse while another process has the run.
    """
    if resume is None:
        config = load(preset or DEFAULT_PRESET, overrides) if agent is None else \
            fine_tuning_config(agent, preset, overrides)
        require_feasible(config)
        _require_machine(config)
        folder = _new_folder(config, root) if name is None else RunFolder(root / rename(config, name).name)
    else:
        for option, value in (("--preset", preset), ("--name", name), ("--from", agent and agent.path)):
            if value is not None:
                raise ConfigError(f"{option} {value}: not possible with --resume, because a run keeps its name and "
                                  "configuration; --set changes single keys")
        folder = find_run(resume or None, root)
    with ExitStack() as undo:
        lock = undo.enter_context(RunLock(folder.path))
        if resume is not None:
            stored = _load_corrected(folder.config, overrides if accept_changes else ())
            config = validate(apply_overrides(stored.model_dump(mode="json", by_alias=True), overrides), folder.name)
            _confirm_changes(stored, config, accept_changes)
            _require_machine(config)
        elif folder.config.exists():
            raise RunUnavailable(f"run {folder.name!r} exists in {root}/: continue it with `five train --resume "
                                 f"{folder.name}`, or choose another --name")
        else:
            config = rename(config, folder.name)
        folder.create()
        if agent is not None and resume is None:
            write_first_checkpoint(agent, folder, config)
        save(config, folder.config)
        if resume is None:
            named = preset or (DEFAULT_PRESET if agent is None else None)
            origin_of(config, named, overrides, agent).save(folder.origin)
        undo.pop_all()
    return folder, config, lock


def _new_folder(config: RunConfig, root: Path) -> RunFolder:
    """Create the folder of the first free name that begins with the configuration's."""
    while True:
        folder = RunFolder(root / free_name(config.name, root))
        rename(config, folder.name)  # with its number the name may be too long: refused before the folder exists
        try:
            folder.path.mkdir(mode=0o700, parents=True)
            return folder
        except FileExistsError:
            continue  # another process took the name


def _load_corrected(path: Path, overrides: Sequence[str]) -> RunConfig:
    """Return the stored configuration, with those ``overrides`` that replace values which are not valid."""
    try:
        return load_stored(path)
    except ConfigError as error:
        keys = [text.partition("=")[0].strip() for text in overrides]
        corrections = [text for text, key in zip(overrides, keys, strict=True)
                       if any(f"{key}.".startswith(f"{invalid}.") for invalid in error.paths)]
        if not corrections:
            raise
    return load_stored(path, corrections)


def _require_machine(config: RunConfig) -> None:
    """Raise ConfigError for traces without their packages and for missing devices, which services would refuse."""
    try:
        require_packages(config.tracing)
        for service in ("inference", "optimizer"):
            require_device(getattr(config.services, service).device, f"services.{service}.device")
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _confirm_changes(stored: RunConfig, config: RunConfig, accepted: bool) -> None:
    """Raise ConfigError for changes that are not accepted, and for keys that the run's record holds."""
    trees: list[Mapping[str, Any]] = [c.model_dump(mode="json", by_alias=True) for c in (stored, config)]
    changes = [d for section in trees[0] for d in differences(section, trees[0][section], trees[1][section])]
    lines = "".join(f"\n  {key}: {redact_tree(old)} -> {redact_tree(new)}" for key, old, new in changes)
    held = [d for old, new, section in zip(record_trees(stored), record_trees(config), ("game", "model"), strict=True)
            for d in differences(section, old, new)]
    if held or stored.name != config.name:
        raise ConfigError(f"a run keeps its name, game and model on --resume; `five surgery` and `five anneal` change "
                          f"game and model:{lines}")
    if changes and not accepted:
        raise ConfigError(f"the configuration differs from the run's; add --accept-changes to change it:{lines}")


class Reporter:
    """Writer of a run's report, its data and TensorBoard event files. A part that fails is tried again at the next
    write; it costs neither the others nor the training."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        blobs = BlobStore(cluster.config.blobs.url or str(cluster.folder.path / "blobs"))
        self._reader = run_report.RunReader(cluster.state, cluster.series)
        self._recordings = RecordingReader(lambda: blobs, cluster.config.name)
        self._events = TensorBoardWriter(cluster.folder.path / "tensorboard", cluster.series, cluster.state.lineage)
        self._parts: dict[str, OptionalTask] = {}

    def write(self) -> None:
        """Write everything. While Redis is unavailable, keep the previous files."""
        c = self._cluster
        records: list[run_report.RunRecords] = []
        self._write("report", lambda: records.append(self._reader.read()))
        self._write("TensorBoard files", self._events.update)
        self._write(c.folder.record.name, lambda: save_record(c.state, c.folder.record))
        self._write(c.folder.ladder.name, lambda: save_ladder(c.state, c.folder.ladder))
        for found in records:
            self._write(c.folder.evidence.name, partial(save_evidence, found.games.newest_first(), c.folder.evidence))
            self._write(c.folder.report.name, partial(self._write_page, found))
            self._write(c.folder.records.name, partial(run_report.save_records, found, c.folder.records))

    def _write_page(self, found: run_report.RunRecords) -> None:
        run_report.write(found, self._cluster.folder.report, run_report.newest_film(self._recordings))

    def _write(self, name: str, action: Callable[[], object]) -> None:
        self._parts.setdefault(name, OptionalTask(name)).run(action)


class OptionalTask:
    """Task of `five train` that training does not depend on. An error is logged once, until the task works again."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._failing = False

    def run(self, action: Callable[[], object]) -> None:
        """Run the action. Log its error; errors of Redis, which is being restarted, are silent."""
        try:
            action()
        except redis.RedisError:
            return
        except Exception as error:
            if not self._failing:
                log.warning("%s: not written, training goes on: %s", self._name, error,
                            exc_info=not isinstance(error, OSError))
            self._failing = True
            return
        if self._failing:
            log.warning("%s: written again", self._name)
        self._failing = False


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
        cluster.wait_running(interrupted=lambda: interruption.number is not None)
        with suppress(KeyboardInterrupt), interruption.raising():  # the controller may answer late
            _show_link(folder, terminal)
        until = time.time() + 60 * minutes if minutes else None
        failure, progress = "", Progress(cluster, before.id if before else "")
        try:
            with RehearsalRunner(folder, cluster.state, interruption.hurried):
                reason = _watch(cluster, reporter, terminal, interruption, until, progress)
        except RuntimeError as error:
            reason = failure = str(error)
        reason = reason.partition("\n")[0]
        terminal.say(f"ending: {reason}", "dim")
        cluster.stop(reason)
        if not interruption.hurried():
            reporter.write()
        unlearned = progress.why_unlearned()
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


class Progress:
    """Whether a training has made a version after the record ``before``, and if it takes too long, why."""

    def __init__(self, cluster: LocalCluster, before: str) -> None:
        self._cluster = cluster
        self._before = before
        self._began = time.monotonic()
        self._limit = first_version_seconds(cluster.config)
        self._learned = False
        self._paused = False  # at any time; a paused run may end without a version
        self._reasons: list[str] = []
        self._next = self._began + self._limit

    def update(self, status: Status | None) -> list[str]:
        """Return what is wrong when no version is made within the expected time, as lines. Raises redis.RedisError."""
        self._paused = self._paused or status in PAUSE_HOLDS
        if not self._learned:
            last = self._cluster.series.last("versions")
            self._learned = last is not None and last.id != self._before
        now = time.monotonic()
        if self._learned or self._paused:
            self._reasons = []
        elif now >= self._next:
            self._next = now + DIAGNOSIS_SECONDS
            self._reasons = [f"no version within {self._limit:.0f} s", *self._explain_delay()]
        return self._reasons

    def why_unlearned(self) -> str:
        """Return why no version was made; '' if one was, or if the run was paused meanwhile."""
        try:
            self.update(None)
        except redis.RedisError:
            pass
        if self._learned or self._paused:
            return ""
        seconds = time.monotonic() - self._began
        return self._reasons[1] if len(self._reasons) > 1 else f"training ended after {seconds:.0f} s; the first one " \
            f"may take {self._limit:.0f} s"

    def _explain_delay(self) -> list[str]:
        cluster = self._cluster
        reasons = why_not_ready(cluster.supervisor, cluster.leases)
        return reasons or [f"{bottleneck(cluster.leases.live(), {})}; see {cluster.folder.path}/logs"]


def _watch(cluster: LocalCluster, reporter: Reporter, terminal: Terminal, interruption: Interruption,
           until: float | None, progress: Progress) -> str:
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
        faults, warnings, now = cluster.faults(), progress.update(status), time.monotonic()
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

"""`five train`: run every service on this machine, show progress and write the report."""

import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import redis
from rich.console import Console
from rich.live import Live

from five.cli.console import link
from five.cli.live import LiveView, plain
from five.evaluation.saved_state import save_evidence, save_ladder, save_record
from five.local.cluster import LocalCluster
from five.local.rest_client import ApiError, Controller
from five.local.run_folder import ROOT, RunFolder, RunUnavailable, find_run, free_name
from five.rehearsal.runner import RehearsalRunner
from five.reports import run_report
from five.reports.tensorboard import TensorBoardWriter
from five.run.config import RunConfig
from five.run.load import load, load_stored, save
from five.services.controller.games.recordings import Recordings
from rapid.blobs import BlobStore
from rapid.store.state import Status

REPORT_SECONDS = 120.0
LINE_SECONDS = 15.0


def prepare(preset: str, overrides: Sequence[str], name: str | None, resume: str | None, root: Path = ROOT
            ) -> tuple[RunFolder, RunConfig]:
    """Return the folder and configuration of a new or resumed run. Raises ConfigError, RunUnavailable."""
    if resume is not None:
        folder = find_run(resume or None, root)
        config = load_stored(folder.config, overrides)
    else:
        config = load(preset, overrides)
        folder = RunFolder(root / (name or free_name(config.name, root)))
        config = config.model_copy(update={"name": folder.name})
    folder.create()
    save(config, folder.config)
    return folder, config


class Reporter:
    """Writer of a run's report and TensorBoard event files."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        blobs = BlobStore(cluster.config.blobs.url or str(cluster.folder.path / "blobs"))
        self._recordings = Recordings(lambda: blobs)
        self._events = TensorBoardWriter(cluster.folder.path / "tensorboard", cluster.series)

    def write(self) -> None:
        """Write the report and the event files. While Redis is unavailable, keep the previous files."""
        c = self._cluster
        try:
            records = run_report.collect(c.state, c.series)
            self._events.update()
            save_record(c.state, c.folder.record)
            save_ladder(c.state, c.folder.ladder)
            save_evidence(records.games, c.folder.evidence)
        except redis.RedisError:
            return
        run_report.write(records, c.folder.report, run_report.newest_film(self._recordings))
        run_report.save_records(records, c.folder.records)

    def close(self) -> None:
        """Close the event files."""
        self._events.close()


def train(preset: str, minutes: float | None, overrides: Sequence[str], name: str | None, resume: str | None) -> int:
    """Train until ``minutes`` have passed, Ctrl-C or `five stop`. Return the exit status."""
    console = Console(highlight=False)
    folder, config = prepare(preset, overrides, name, resume)
    console.print(f"run [bold]{folder.name}[/bold] in {folder.path}/", soft_wrap=True)
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    with LocalCluster.start(folder, config, lambda text: console.print(text, style="dim", soft_wrap=True)) as cluster:
        reporter = Reporter(cluster)
        cluster.wait_running()
        _show_link(folder, console)
        until = time.time() + 60 * minutes if minutes else None
        with RehearsalRunner(folder, cluster.state):
            reason = _watch(cluster, reporter, console, ending, until)
        console.print(f"ending: {reason}", style="dim", soft_wrap=True)
        cluster.stop(reason)
        reporter.write()
        reporter.close()
    console.print(f"report: [bold]{folder.report}[/bold]", soft_wrap=True)
    console.print(f"resume: five train --resume {folder.name}", soft_wrap=True)
    return 0


def _show_link(folder: RunFolder, console: Console) -> None:
    """Print the link to the run's console. Print the error if there is no link; the run goes on."""
    try:
        address = link(Controller(folder.cluster().rest, folder.operator_token()))
    except (ApiError, RunUnavailable) as error:
        console.print(f"console: {error}", style="yellow", markup=False, soft_wrap=True)
        return
    # On one line, so that the terminal recognises the link.
    console.print(f"console: {address}", markup=False, soft_wrap=True)
    console.print("         (valid once, for ten minutes; `five console` prints another)", style="dim", soft_wrap=True)


def _watch(cluster: LocalCluster, reporter: Reporter, console: Console, ending: threading.Event,
           until: float | None) -> str:
    """Show progress until the run ends. Return the reason.

    On a terminal it redraws a panel; otherwise it prints one line of at most 80 characters every `LINE_SECONDS`.
    """
    view = LiveView(cluster.state, cluster.series, cluster.leases, until)
    live = Live(console=console, refresh_per_second=2, transient=True) if console.is_terminal else None
    next_report = time.monotonic() + REPORT_SECONDS
    next_line = time.monotonic()
    if live:
        live.start()
    try:
        while True:
            if ending.wait(1.0):
                return "interrupted"
            if until is not None and time.time() >= until:
                return "time limit reached"
            cluster.check()
            try:
                view.read()
                status = cluster.state.status()
                if status is not None and status.status in (Status.STOPPING, Status.FAILED):
                    return f"the run is {status.status}: {status.reason or 'requested by ' + status.who}"
                if live:
                    live.update(view.render())
                elif time.monotonic() >= next_line:
                    line = plain(cluster.state, view.newest("versions"), view.newest("ratings"))
                    console.print(line, markup=False, soft_wrap=True)
                    next_line = time.monotonic() + LINE_SECONDS
            except redis.RedisError:
                continue  # Redis is being restarted
            if time.monotonic() >= next_report:
                reporter.write()
                next_report = time.monotonic() + REPORT_SECONDS
    finally:
        if live:
            live.stop()

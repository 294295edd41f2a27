"""`five train`: the whole system on this machine, watched while it runs, reported at the end."""

import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import redis
from rich.console import Console
from rich.live import Live

from five.cli import report
from five.cli.cluster import LocalCluster
from five.cli.console import link
from five.cli.live import View, plain
from five.cli.offline.record import keep_evidence, keep_ladder, keep_record
from five.cli.rehearser import RehearsalRunner
from five.cli.remote import Controller, Refused
from five.cli.rundir import ROOT, NoRun, RunFolder, find, free_name
from five.cli.tensorboard import Events
from five.run.config import RunConfig
from five.run.load import load, save
from five.services.controller.recordings import Recordings
from rapid.blobs import BlobStore
from rapid.store.state import Status

REPORT_SECONDS = 120.0
LINE_SECONDS = 15.0


def prepare(preset: str, overrides: Sequence[str], name: str | None, resume: str | None, root: Path = ROOT
            ) -> tuple[RunFolder, RunConfig]:
    """The folder and configuration of the run to be trained, new or resumed. Raises ConfigError, NoRun."""
    if resume is not None:
        folder = find(resume or None, root)
        config = load(folder.config, overrides)
    else:
        config = load(preset, overrides)
        folder = RunFolder(root / (name or free_name(config.name, root)))
        config = config.model_copy(update={"name": folder.name})
    folder.create()
    save(config, folder.config)
    return folder, config


class Reporter:
    """Keeps the report and the event files of a run up to date."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        blobs = BlobStore(cluster.config.blobs.url or str(cluster.folder.path / "blobs"))
        self._recordings = Recordings(lambda: blobs)
        self._events = Events(cluster.folder.path / "tensorboard", cluster.series)

    def write(self) -> None:
        """Writes both; a store that is away leaves them as they were."""
        c = self._cluster
        try:
            records = report.collect(c.state, c.series)
            self._events.update()
            keep_record(c.state, c.folder.record)
            keep_ladder(c.state, c.folder.ladder)
            keep_evidence(records.games, c.folder.evidence)
        except redis.RedisError:
            return
        report.write(records, c.folder.report, report.newest_film(self._recordings))
        report.save_records(records, c.folder.records)

    def close(self) -> None:
        """Ends the event files."""
        self._events.close()


def train(preset: str, minutes: float | None, overrides: Sequence[str], name: str | None, resume: str | None) -> int:
    """Trains until ``minutes`` have passed, Ctrl-C, or `five stop`. Returns the exit status."""
    console = Console()
    folder, config = prepare(preset, overrides, name, resume)
    console.print(f"run [bold]{folder.name}[/bold] in {folder.path}/")
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    with LocalCluster.start(folder, config, lambda text: console.print(text, style="dim")) as cluster:
        reporter = Reporter(cluster)
        cluster.wait_running()
        _show_link(folder, console)
        until = time.time() + 60 * minutes if minutes else None
        with RehearsalRunner(folder, cluster.state):
            reason = _watch(cluster, reporter, console, ending, until)
        console.print(f"ending: {reason}", style="dim")
        cluster.stop(reason)
        reporter.write()
        reporter.close()
    console.print(f"report: [bold]{folder.report}[/bold]    resume: five train --resume {folder.name}")
    return 0


def _show_link(folder: RunFolder, console: Console) -> None:
    """Says where the run can be looked at; a run that cannot be is none the worse."""
    try:
        address = link(Controller(folder.cluster().rest, folder.operator_token()))
    except (Refused, NoRun) as error:
        console.print(f"console: {error}", style="yellow", markup=False)
        return
    # Whole in one line, so that a terminal makes a link of it.
    console.print(f"console: {address}", markup=False, highlight=False, soft_wrap=True)
    console.print("         (works once, within ten minutes; `five console` prints another)", style="dim", markup=False)


def _watch(cluster: LocalCluster, reporter: Reporter, console: Console, ending: threading.Event,
           until: float | None) -> str:
    """Shows the run until it is to end; returns why."""
    view = View(cluster.state, cluster.series, cluster.leases, until)
    live = Live(console=console, refresh_per_second=2, transient=True) if sys.stdout.isatty() else None
    next_report = time.monotonic() + REPORT_SECONDS
    next_line = time.monotonic()
    if live:
        live.start()
    try:
        while True:
            if ending.wait(1.0):
                return "asked to"
            if until is not None and time.time() >= until:
                return "the time is up"
            cluster.check()
            try:
                view.read()
                status = cluster.state.status()
                if status is not None and status.status in (Status.STOPPING, Status.FAILED):
                    return f"the run is {status.status}: {status.reason or 'asked by ' + status.who}"
                if live:
                    live.update(view.render())
                elif time.monotonic() >= next_line:
                    console.print(plain(cluster.state, view.newest("versions"), view.newest("ratings")))
                    next_line = time.monotonic() + LINE_SECONDS
            except redis.RedisError:
                continue  # it is being restarted
            if time.monotonic() >= next_report:
                reporter.write()
                next_report = time.monotonic() + REPORT_SECONDS
    finally:
        if live:
            live.stop()

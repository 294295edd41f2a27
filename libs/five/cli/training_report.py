"""Files about a run that `five train` writes while it trains: report, records and TensorBoard events."""

import logging
from collections.abc import Callable
from functools import partial

import redis

from five.evaluation.saved_state import save_evidence, save_ladder, save_record
from five.local.cluster import LocalCluster
from five.reports import run_report
from five.reports.tensorboard import TensorBoardWriter
from five.services.controller.games.recordings import RecordingReader
from rapid.blobs import BlobStore

log = logging.getLogger(__name__)


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

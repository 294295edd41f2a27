"""Files that `five train` writes: a part that fails costs no other, and records are read once."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from five.cli.training_report import Reporter
from rapid.store.series import Series


def test_failing_part_of_the_report_costs_no_other(stored_run: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "five.cli.training_report")
    reporter, folder = Reporter(stored_run), stored_run.folder
    stored_run.series.append("versions", {"version": 1, "entropy": 1.0})
    for path in (folder.report, folder.path / "tensorboard" / "exported.json"):
        path.mkdir()  # neither file can be written
    reporter.write()
    reporter.write()
    assert folder.records.exists() and folder.record.exists()
    assert sorted(record.getMessage().partition(":")[0] for record in caplog.records) == [
        "TensorBoard files", "report.html"]
    for path in (folder.report, folder.path / "tensorboard" / "exported.json"):
        path.rmdir()
    reporter.write()
    assert [record.getMessage() for record in caplog.records[2:]] == [
        "TensorBoard files: written again", "report.html: written again"]
    assert folder.report.is_file()


def test_report_reads_only_new_records(stored_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    whole = Series.read

    def counted(series: Series, kind: str, after: str = "-", page: int = 2000) -> Iterator[Any]:
        for record in whole(series, kind, after, page):
            read.append(record.values)
            yield record

    monkeypatch.setattr(Series, "read", counted)
    reporter = Reporter(stored_run)
    for kind in ("versions", "games", "ratings", "schedules"):
        stored_run.series.extend(kind, [{"version": version} for version in range(10)])
    reporter.write()
    assert len(read) == 40
    stored_run.series.append("versions", {"version": 10})
    reporter.write()
    assert read[40:] == [{"version": 10}]
    rows = json.loads(stored_run.folder.records.read_text())["versions"]
    assert [row["version"] for row in rows] == list(range(11))

"""Journal of rows: what is read back after changes, crashes and a new start."""

import os
import resource
import signal
from pathlib import Path

import pytest

from five.evaluation.journal import Journal, JournalDamaged


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ladder.jsonl"


def test_changes_are_read_back_in_order(path: Path) -> None:
    journal = Journal(path)
    assert journal.rows == {} and not path.exists()
    for change in ({"a": 1, "b": {"c": [2]}}, {"a": 3}, {"b": None, "gone": None}):
        journal.write(change)
    assert journal.rows == Journal(path).rows == {"a": 3}
    assert path.read_text() == '{"a": 1, "b": {"c": [2]}}\n{"a": 3}\n{"b": null, "gone": null}\n'


@pytest.mark.parametrize("torn", ['{"a": 2', '{"a": 2}', "{"])
def test_incomplete_last_line_is_discarded_and_overwritten(path: Path, torn: str) -> None:
    Journal(path).write({"a": 1})
    with path.open("a") as file:
        file.write(torn)
    journal = Journal(path)
    assert journal.rows == {"a": 1}
    journal.write({"b": 5})
    journal.write({"c": 6})
    assert path.read_text() == '{"a": 1}\n{"b": 5}\n{"c": 6}\n' and Journal(path).rows == {"a": 1, "b": 5, "c": 6}


def test_line_cut_off_by_a_full_disk_is_overwritten(path: Path) -> None:
    """The process may write again when there is space."""
    journal = Journal(path)
    journal.write({"a": 1})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 4, before[1]))
        with pytest.raises(OSError):
            journal.write({"b": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_text() == '{"a": 1}\n{"b"' and journal.rows == {"a": 1}
    journal.write({"c": 3})
    assert path.read_text() == '{"a": 1}\n{"c": 3}\n' and Journal(path).rows == {"a": 1, "c": 3}


def test_forgotten_rows_are_kept_under_their_time(path: Path) -> None:
    journal = Journal(path)
    journal.write({"a": 1})
    os.utime(path, (1_000_000, 1_234_567.9))
    journal.forget()
    assert journal.rows == {} and path.exists(), "the file stays until the next write"
    journal.write({"b": 2})
    journal.write({"c": 3})
    assert journal.rows == Journal(path).rows == {"b": 2, "c": 3}
    old = path.with_name("ladder.jsonl.1234567")
    assert {file.name for file in path.parent.iterdir()} == {path.name, old.name} and Journal(old).rows == {"a": 1}


def test_line_broken_off_after_forgetting_is_overwritten(path: Path) -> None:
    journal = Journal(path)
    journal.write({"a": 1})
    journal.forget()
    journal.write({"b": 2})
    with path.open("a") as file:
        file.write("{")
    journal.write({"c": 3})
    assert path.read_text() == '{"b": 2}\n{"c": 3}\n'


def test_forgetting_without_a_file_renames_nothing(path: Path) -> None:
    journal = Journal(path)
    journal.forget()
    journal.write({"a": 1})
    assert [file.name for file in path.parent.iterdir()] == [path.name] and Journal(path).rows == {"a": 1}


@pytest.mark.parametrize("damaged", ["nonsense", "1", '"text"', "[1]", "[" * 100_000, "\0" * 20])
def test_damaged_line_is_not_skipped(path: Path, damaged: str) -> None:
    path.write_text(f'{{"a": 1}}\n{damaged}\n{{"b": 2}}\n')
    with pytest.raises(JournalDamaged, match=f"{path}, line 2: "):
        Journal(path)

"""Settings of the autoscaler that are reloaded when their file changes."""

import logging
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from five.run.load import load
from five.services.controller.autoscaler.live_settings import LiveSettings


def write(path: Path, **settings: Any) -> None:
    """Replace a configuration file, as an editor or a ConfigMap does."""
    text = yaml.safe_dump({"preset": "laptop-1v1", "services": {"controller": {"autoscaler": settings}}})
    replacement = path.with_suffix(".new")
    replacement.write_text(text)
    replacement.replace(path)


def live(path: Path, *overrides: str) -> LiveSettings:
    return LiveSettings(str(path), overrides, load(path, overrides).services.controller.autoscaler)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    write(path, interval_seconds=7.0)
    return path


def test_changed_file_applies(file: Path) -> None:
    found = live(file)
    assert found.read().interval_seconds == 7.0
    for seconds in (9.0, 8.0, 7.0):
        write(file, interval_seconds=seconds)
        assert found.read().interval_seconds == seconds
        assert found.read().interval_seconds == seconds


def test_overrides_of_the_command_line_stay_in_force(file: Path) -> None:
    found = live(file, "services.controller.autoscaler.window_seconds=33")
    write(file, interval_seconds=9.0, window_seconds=44.0)
    assert (found.read().interval_seconds, found.read().window_seconds) == (9.0, 33.0)


def test_settings_that_are_read_at_the_start_stay(file: Path) -> None:
    found = live(file)
    started = found.read()
    write(file, enabled=not started.enabled, timeout_seconds=started.timeout_seconds + 1, interval_seconds=9.0)
    now = found.read()
    assert (now.enabled, now.timeout_seconds, now.interval_seconds) == (
        started.enabled, started.timeout_seconds, 9.0)


def test_unchanged_file_is_not_read_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = live(file)
    started = found.read()
    reads: list[Path] = []
    monkeypatch.setattr("five.services.controller.autoscaler.live_settings.load", reads.append)
    assert [found.read() for _ in range(3)] == [started] * 3 and reads == []


def test_older_file_applies(file: Path) -> None:
    """An operator restores a copy with the time of its last change."""
    found = live(file)
    write(file, interval_seconds=9.0)
    os.utime(file, (1.0, 1.0))
    assert found.read().interval_seconds == 9.0


def test_file_that_is_being_replaced_changes_nothing(file: Path) -> None:
    found = live(file)
    started = found.read()
    file.unlink()
    assert found.read() == started
    write(file, interval_seconds=9.0)
    assert found.read().interval_seconds == 9.0


def test_settings_of_a_preset_never_change() -> None:
    found = live(Path("laptop-1v1"))
    assert [found.read() for _ in range(2)] == [load("laptop-1v1").services.controller.autoscaler] * 2


def test_file_that_appears_after_the_start_applies(file: Path) -> None:
    started = load(file).services.controller.autoscaler
    file.unlink()
    found = LiveSettings(str(file), (), started)
    assert found.read() == started
    write(file, interval_seconds=9.0)
    assert found.read().interval_seconds == 9.0


def test_invalid_file_is_logged_once_and_changes_nothing(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = live(file)

    def warnings() -> int:
        return sum(record.levelno == logging.WARNING for record in caplog.records)

    logged = []
    for settings in ({"interval_seconds": "soon"}, {"interval_seconds": "late"}, {"interval_seconds": "soon"}):
        write(file, **settings)
        for _ in range(2):
            assert found.read().interval_seconds == 7.0
            logged.append(warnings())
    assert logged == [1, 1, 2, 2, 3, 3], "each error is logged once"
    write(file, interval_seconds=9.0)
    assert found.read().interval_seconds == 9.0
    write(file, interval_seconds="soon")
    assert found.read().interval_seconds == 9.0 and warnings() == 4, "an error is new after a valid file"


@pytest.mark.parametrize("unreadable", ["/", "/proc/self/mem"], ids=["folder", "read error"])
def test_unreadable_file_changes_nothing(file: Path, caplog: pytest.LogCaptureFixture, unreadable: str) -> None:
    found = live(file)
    started = found.read()
    file.unlink()
    file.symlink_to(unreadable)
    assert found.read() == started and "keeping the previous ones" in caplog.text


def test_only_other_values_are_logged(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = live(file)
    logged = []
    with caplog.at_level(logging.INFO):
        for seconds in (7.0, 9.0, 9.0, 7.0):
            write(file, interval_seconds=seconds)
            found.read()
            logged.append(sum("reloaded" in record.message for record in caplog.records))
    assert logged == [0, 1, 1, 2]

"""Trainings that make no version in time, or none at all."""

from typing import Any

import pytest

from five.cli.first_version import FirstVersionCheck
from rapid.store.state import Status


def test_missing_version_is_explained_in_time(stored_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("five.cli.first_version.first_version_seconds", lambda config: 0.0)
    monkeypatch.setattr("five.cli.first_version.DIAGNOSIS_SECONDS", 0.0)
    check = FirstVersionCheck(stored_run, "")
    assert check.update(Status.RUNNING) == [
        "no version within 0 s", f"no optimizer is up; see {stored_run.folder.path}/logs"]
    assert check.why_unlearned().startswith("no optimizer is up")
    stored_run.series.append("versions", {"version": 1})
    assert check.update(Status.RUNNING) == [] and check.why_unlearned() == ""


def test_versions_of_an_earlier_start_do_not_count(stored_run: Any) -> None:
    stored_run.series.append("versions", {"version": 1})
    check = FirstVersionCheck(stored_run, stored_run.series.last("versions").id)
    assert check.update(Status.RUNNING) == []
    assert "training ended after 0 s" in check.why_unlearned()
    stored_run.series.append("versions", {"version": 2})
    assert check.why_unlearned() == ""


def test_paused_run_need_not_learn(stored_run: Any) -> None:
    check = FirstVersionCheck(stored_run, "")
    check.update(Status.PAUSED)
    check.update(Status.RUNNING)
    assert check.why_unlearned() == ""

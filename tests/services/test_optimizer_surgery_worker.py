"""Parts of the surgery worker that need no run: approved bounds, values for JSON, and the loop that survives errors."""

import logging
import time
from types import SimpleNamespace
from typing import Any

import pytest

from five.services.optimizer import surgery_worker
from five.services.optimizer.surgery_worker import JobRefused, SurgeryWorker, bounded, finite
from tests.services.test_optimizer_surgery_jobs import PLAN

LIMITS = {"mean_kl": 0.25, "mean_value_change": 3.0}


def test_approved_bounds_replace_those_of_the_plan() -> None:
    found = bounded(PLAN, {"bounds": LIMITS})
    assert (found.bounds.mean_kl, found.bounds.mean_value_change) == (0.25, 3.0)
    assert found.model_copy(update={"bounds": PLAN.bounds}) == PLAN
    for none in ({}, {"bounds": None}, {"bounds": {}}):
        assert bounded(PLAN, none) is PLAN


@pytest.mark.parametrize("bounds", [{"mean_kl": "much"}, {"invented": 1.0}])
def test_unreadable_bounds_are_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(JobRefused, match="approved bounds are not readable"):
        bounded(PLAN, {"bounds": bounds})


def test_numbers_without_a_value_in_json_become_text() -> None:
    value = {"a": [1.5, float("inf"), {"b": float("-inf")}], "c": float("nan"), "d": 3, "e": None, "f": "x"}
    assert finite(value) == {"a": [1.5, "inf", {"b": "-inf"}], "c": "nan", "d": 3, "e": None, "f": "x"}


def test_loop_survives_errors_and_rests_without_a_job(monkeypatch: pytest.MonkeyPatch,
                                                      caplog: pytest.LogCaptureFixture) -> None:
    """It asks again at once after a job, and after half a second otherwise."""
    slept: list[float] = []
    monkeypatch.setattr(surgery_worker, "time", SimpleNamespace(sleep=slept.append, time=time.time))
    results: list[bool | Exception] = [True, False, ConnectionError("no server"), True, True]

    class Worker(SurgeryWorker):
        def __init__(self) -> None:
            """Nothing is read of a run."""

        def run_once(self) -> bool:
            result = results.pop(0)
            if isinstance(result, Exception):
                raise result
            return result

    with caplog.at_level(logging.WARNING):
        Worker().run(lambda: not results)
    assert slept == [0.5, 0.5] and not results
    assert [record.getMessage() for record in caplog.records] == ["cannot read jobs: no server"]

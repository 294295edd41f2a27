"""Metrics that are fetched once, and the reason of a skipped step."""

import logging
import time

import pytest
import torch

from five.agent.learning.step_metrics import DeviceEvent, StepMetrics, explain_skip

CPU = torch.device("cpu")


class CountingTensor:
    """Values that count how often they are fetched."""

    def __init__(self, *values: float) -> None:
        self.values = values
        self.fetched = 0

    def tolist(self) -> list[float]:
        self.fetched += 1
        return list(self.values)


def metrics(*values: float, start: DeviceEvent | None = None, end: DeviceEvent | None = None) -> StepMetrics:
    """Return metrics named loss and skipped, then flags; the host knows the learning rate."""
    event = DeviceEvent(CPU)
    return StepMetrics(["loss", "skipped"], CountingTensor(*values), {"rate": 0.5},  # type: ignore[arg-type]
                       start or event, end or event, 7, lambda flags: f"flags {flags}")


def test_values_are_fetched_at_the_first_access_only() -> None:
    found = metrics(1.5, 0.0, 1.0)
    assert list(found) == ["loss", "skipped", "rate"] and len(found) == 3
    assert found._values.fetched == 0, "names need no fetch"
    assert dict(found) == {"loss": 1.5, "skipped": 0.0, "rate": 0.5}
    assert found["loss"] == 1.5 and found._values.fetched == 1


def test_skipped_step_is_logged_once_with_its_flags(caplog: pytest.LogCaptureFixture) -> None:
    found = metrics(1.5, 1.0, 1.0, 0.0, -1.0, 0.5)
    with caplog.at_level(logging.WARNING):
        assert found["skipped"] == 1.0 and found["loss"] == 1.5
    assert [record.getMessage() for record in caplog.records] == [
        "gradient step 7 skipped: flags [True, False, False, True]"]


def test_applied_step_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert metrics(1.5, 0.0, 0.0)["loss"] == 1.5
    assert not caplog.records


def test_seconds_are_those_between_the_events() -> None:
    start = DeviceEvent(CPU)
    time.sleep(0.03)
    end = DeviceEvent(CPU)
    end.wait()
    assert start.is_done and end.is_done
    assert 0.03 <= end.seconds_since(start) < 5
    assert start.seconds_since(end) == -end.seconds_since(start)
    assert metrics(0.0, 0.0, start=start, end=end).seconds == end.seconds_since(start)


@pytest.mark.parametrize(("bad", "reason"), [
    (["policy"], "the loss is not finite: policy"),
    (["policy", "value", "all"], "the loss is not finite: policy, value"),
    (["all"], "the loss of another optimizer is not finite"),
    (["all", "moments", "lstm"], "the loss of another optimizer is not finite"),
    (["lstm", "head"], "the gradient is not finite: lstm, head"),
    (["moments", "head"], "the gradient is not finite: head"),
    (["moments"], "the observations are not finite"),
    ([], "the gradient's norm is not finite: it overflows")])
def test_reason_of_a_skipped_step(bad: list[str], reason: str) -> None:
    order = ["policy", "value", "all", "moments", "lstm", "head"]
    assert explain_skip(["policy", "value"], ["lstm", "head"], [name not in bad for name in order]) == reason


def test_reason_names_at_most_five_parameters() -> None:
    names = [f"p{i}" for i in range(7)]
    assert explain_skip([], names, [True, True] + [False] * 7) == "the gradient is not finite: p0, p1, p2, p3, p4"

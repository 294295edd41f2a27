"""Records of versions: means over their gradient steps, staleness of their samples, and shares of time."""

import json
import math
from typing import Any

import numpy as np
import pytest

from five.services.optimizer import version_records
from five.services.optimizer.version_records import STALENESS_BINS, SubmittedStep, VersionWindow, quantile
from tests.services.optimizer_cases import HYPER


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(version_records.time, "monotonic", clock.monotonic)
    return clock


def add(window: VersionWindow, staleness: list[list[int]], uses: list[int], seconds: float = 1.0,
        hero_steps: int = 10, **metrics: float) -> None:
    window.add(metrics, np.array(staleness, np.int32), np.array(uses, np.int32), seconds, hero_steps)


def test_record_has_means_over_the_steps(clock: Clock) -> None:
    window = VersionWindow()
    add(window, [[0, 1]], [1, 2], seconds=2.0, loss=1.0, kl=0.25)
    add(window, [[3, -1]], [4], seconds=1.0, hero_steps=7, loss=2.0)
    clock.now += 6.0
    record = window.close(9, HYPER, 0.5)
    assert (window.steps, window.hero_steps) == (2, 17)
    assert record == {
        "version": 9, "seconds": 6.0, "stall_seconds": 0.5, "busy_share": 0.5, "wait_share": 0.0, "samples": 3,
        "mean_uses": 7 / 3, "staleness_histogram": [1, 1, 0, 1], "staleness_mean": 4 / 3, "staleness_median": 1.0,
        "staleness_p95": 3.0, "loss": 1.5, "kl": 0.25, **HYPER.as_dict()}


def test_record_without_steps_has_no_staleness(clock: Clock) -> None:
    record = VersionWindow().close(0, HYPER, 0.0)
    assert record["samples"] == 0 and record["mean_uses"] == 0.0 and record["staleness_histogram"] == []
    assert "staleness_mean" not in record and record["seconds"] == 1e-9


def test_padding_has_no_staleness(clock: Clock) -> None:
    window = VersionWindow()
    add(window, [[-1, 0], [-1, -1]], [1, 1])
    record = window.close(1, HYPER, 0.0)
    assert record["staleness_histogram"] == [1] and record["samples"] == 2 and record["staleness_mean"] == 0.0


def test_last_bin_holds_everything_older(clock: Clock) -> None:
    window = VersionWindow()
    add(window, [[STALENESS_BINS - 2, STALENESS_BINS - 1, STALENESS_BINS, 10_000]], [1])
    record = window.close(1, HYPER, 0.0)
    assert record["staleness_histogram"] == [0] * (STALENESS_BINS - 2) + [1, 3]
    assert record["staleness_p95"] == STALENESS_BINS - 1


def test_submitted_steps_count_the_devices_waits(clock: Clock) -> None:
    class Event:
        def __init__(self, at: float) -> None:
            self.at = at

        def seconds_since(self, other: "Event") -> float:
            return self.at - other.at

    class Metrics(dict[str, float]):
        start = Event(5.0)
        seconds = 2.0

    window = VersionWindow()
    metrics, previous = Metrics(loss=3.0), Event(4.0)
    given: Any = (metrics, previous)
    for _ in range(2):
        window.add_submitted(SubmittedStep(*given, np.zeros((1, 1), np.int32), np.ones(1, np.int32), 4))
    clock.now += 8.0
    record = window.close(1, HYPER, 0.0)
    assert window.waited == 2.0 and window.hero_steps == 8
    assert (record["wait_share"], record["busy_share"], record["loss"]) == (0.25, 0.5, 3.0)


@pytest.mark.parametrize(("counts", "share", "expected"), [
    ([1, 1], 0.5, 0), ([1, 1, 1], 0.5, 1), ([9, 1], 0.95, 1), ([19, 1], 0.95, 0), ([0, 0, 5], 0.5, 2)])
def test_quantile_is_the_smallest_that_covers_the_share(counts: list[int], share: float, expected: int) -> None:
    assert quantile(np.cumsum(counts) / sum(counts), share) == expected


def test_record_has_entropies_and_losses_relative_to_their_limits(clock: Clock) -> None:
    """Outcome samples are an eighth of the batch in one of two steps."""
    window = VersionWindow()
    for outcomes, loss in ((0.125, 0.125 * 0.5 * math.log(2)), (0.0, 0.0)):
        add(window, [[0]], [1], entropy_delay=1.0, max_entropy_delay=2.0, outcome_fraction=outcomes,
            known_win_probability=loss)
    record = window.close(1, HYPER, 0.0)
    assert record["of_max_entropy_delay"] == 0.5
    assert record["of_chance_win_probability"] == pytest.approx(0.5)


def test_skipped_step_has_no_loss(clock: Clock) -> None:
    window = VersionWindow()
    add(window, [[1]], [2], loss=math.nan, gradient_norm=math.inf, value_mean=5.0, skipped=1.0, held=1.0)
    add(window, [[0]], [1], loss=2.0, gradient_norm=3.0, value_mean=1.0, skipped=0.0, held=0.0)
    record = window.close(1, HYPER, 0.0)
    assert (record["loss"], record["gradient_norm"], record["value_mean"]) == (2.0, 3.0, 1.0)
    assert (record["skipped"], record["held"]) == (0.5, 0.5)
    assert (record["mean_uses"], record["staleness_mean"], window.hero_steps) == (1.5, 0.5, 20)
    json.dumps(record, allow_nan=False)


@pytest.mark.parametrize(("held", "share"), [([1.0, 1.0], 0.0), ([1.0, 0.0], 0.5), ([0.0, 0.0], 1.0)])
def test_held_steps_have_a_learning_rate_of_0(held: list[float], share: float, clock: Clock) -> None:
    window = VersionWindow()
    for is_held in held:
        add(window, [[0]], [1], held=is_held, learning_rate=HYPER.learning_rate * (1.0 - is_held))
    record = window.close(1, HYPER, 0.0)
    assert record["learning_rate"] == share * HYPER.learning_rate
    assert record["entropy_coefficient"] == HYPER.entropy_coefficient


def test_metric_without_a_finite_step_is_missing(clock: Clock) -> None:
    window = VersionWindow()
    add(window, [[0]], [1], loss=math.nan, entropy_delay=math.nan, max_entropy_delay=2.0, skipped=1.0)
    add(window, [[0]], [1], loss=1.0, ratio_max=math.inf, entropy_delay=math.nan, max_entropy_delay=2.0, skipped=0.0)
    record = window.close(1, HYPER, 0.0)
    assert not {"ratio_max", "entropy_delay", "of_max_entropy_delay"} & set(record)
    assert (record["loss"], record["skipped"], record["max_entropy_delay"]) == (1.0, 0.5, 2.0)
    json.dumps(record, allow_nan=False)

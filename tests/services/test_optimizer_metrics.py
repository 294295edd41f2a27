"""Metrics of an optimizer: each version's record, limits, checkpoints, and dropped samples counted once."""

import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from five.agent.config import BufferConfig
from five.agent.learning.buffer import BufferStatistics, DropReason
from five.services.optimizer import metrics
from five.services.optimizer.metrics import BufferMeter
from rapid.telemetry.metrics import REGISTRY
from tests.services.fresh_metrics import initial_samples

RECORD = {"version": 7, "loss": 1.5, "loss_policy": 0.25, "loss_value": 0.75, "entropy": 2.0, "approx_kl": 0.01,
          "clip_fraction": 0.125, "explained_variance": 0.5, "gradient_norm": 3.0, "gradient_clipped_fraction": 0.0625,
          "reward_std": 4.0, "learning_rate": 5e-5, "entropy_coefficient": 0.02, "team_spirit": 0.3,
          "gae_horizon_seconds": 180.0, "reuse_recent": 0.9, "flop": 1e12}


def value(name: str, **labels: str) -> float:
    found = REGISTRY.get_sample_value(f"five_optimizer_{name}", labels)
    assert found is not None, f"five_optimizer_{name} {labels} has no value"
    return found


def test_record_of_a_version_is_shown() -> None:
    metrics.show_version(RECORD)
    shown = {
        "version_versions": 7, "entropy_nats": 2.0, "approximate_kl_nats": 0.01, "clipped_ratio": 0.125,
        "explained_variance_ratio": 0.5, "gradient_norm": 3.0, "gradient_clipped_ratio": 0.0625,
        "deviation_reward": 4.0, "learning_rate": 5e-5, "entropy_coefficient_ratio": 0.02, "team_spirit_ratio": 0.3,
        "gae_horizon_seconds": 180.0, "sample_reuse_ratio": 0.9, "run_flop": 1e12}
    assert {name: value(name) for name in shown} == shown
    assert [value("term_loss", term=term) for term in ("total", "policy", "value")] == [1.5, 0.25, 0.75]
    assert abs(value("version_timestamp_seconds") - time.time()) < 60


@pytest.mark.parametrize("absent", ["reuse_recent", "flop", "explained_variance"])
def test_value_that_a_version_lacks_stays(absent: str) -> None:
    names = {"reuse_recent": "sample_reuse_ratio", "flop": "run_flop", "explained_variance": "explained_variance_ratio"}
    metrics.show_version(RECORD)
    before = value(names[absent])
    metrics.show_version({**RECORD, absent: None})
    metrics.show_version({name: v for name, v in RECORD.items() if name != absent})
    assert value(names[absent]) == before


def test_head_without_an_entropy_keeps_the_last_one() -> None:
    metrics.show_version({**RECORD, "max_entropy_delay": 2.0, "entropy_delay": 0.5})
    metrics.show_version({**RECORD, "max_entropy_delay": 1.0})
    assert (value("head_max_entropy_nats", head="delay"), value("head_entropy_nats", head="delay")) == (1.0, 0.5)


def test_configured_limits_are_shown() -> None:
    config = BufferConfig(capacity_samples=100, minimum_samples=10, sample_reuse=1.5)
    metrics.show_limits(config, 4, 3)
    assert [value(name) for name in ("sample_reuse_target_ratio", "buffer_capacity_samples", "buffer_needed_samples",
                                     "group_instances")] == [1.5, 100, 10, 3]
    metrics.show_limits(config, 40, 1)
    assert value("buffer_needed_samples") == 40


def test_checkpoints_are_counted_and_dated(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [5000.0]
    monkeypatch.setattr(metrics.time, "time", lambda: now[0])
    metrics.show_start(11)
    assert (value("version_versions"), value("version_timestamp_seconds"), value("checkpoint_timestamp_seconds")) == (
        11, 5000, 5000)
    now[0] = 6000.0
    metrics.show_version(RECORD)
    assert (value("version_timestamp_seconds"), value("checkpoint_timestamp_seconds")) == (6000, 5000)
    count, seconds = value("written_checkpoints_total"), value("checkpoint_seconds_sum")
    metrics.show_checkpoint(2.5)
    assert (value("written_checkpoints_total"), value("checkpoint_seconds_sum")) == (count + 1, seconds + 2.5)
    assert value("checkpoint_timestamp_seconds") == 6000


def test_dropped_samples_are_counted_once_by_reason() -> None:
    reasons = [str(reason) for reason in DropReason]
    before = [value("dropped_samples_total", reason=reason) for reason in reasons]
    meter = BufferMeter()
    none: Any = dict.fromkeys(DropReason, 0)
    statistics = replace(BufferStatistics(), samples=4, nbytes=1000, dropped={**none, DropReason.EPOCH: 3})
    meter.show(statistics, np.array([], np.int32))
    meter.show(replace(statistics, dropped={**none, DropReason.EPOCH: 5}), np.array([], np.int32))
    after = [value("dropped_samples_total", reason=reason) for reason in reasons]
    dropped = {reason: a - b for reason, a, b in zip(reasons, after, before, strict=True)}
    assert {reason: count for reason, count in dropped.items() if count} == {str(DropReason.EPOCH): 5}
    assert (value("buffer_samples"), value("buffer_bytes")) == (4, 1000)


def test_ages_of_buffered_samples_are_shown() -> None:
    meter = BufferMeter()
    meter.show(BufferStatistics(), np.array([0, 1, 2, 3, 14], np.int32))
    ages = {name: value("buffer_age_versions", statistic=name) for name in ("mean", "median", "p95", "oldest")}
    assert ages == {"mean": 4.0, "median": 2.0, "p95": pytest.approx(11.8), "oldest": 14.0}
    meter.show(BufferStatistics(), np.array([], np.int32))
    assert value("buffer_age_versions", statistic="oldest") == 14.0


def test_labelled_counters_exist_before_the_first_event(monkeypatch: pytest.MonkeyPatch) -> None:
    found = initial_samples("five.services.optimizer.metrics", monkeypatch)
    assert found["five_optimizer_received_segments_total"] == dict.fromkeys(
        ("accepted", "duplicate", "too_old", "stale_epoch"), 0.0)
    assert found["five_optimizer_dropped_samples_total"] == {str(reason): 0.0 for reason in DropReason}


def test_durations_have_buckets_at_round_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds from 10 ms to 2 minutes, round, each at most 2.5 times the one before it."""
    found = initial_samples("five.services.optimizer.metrics", monkeypatch)
    for name in ("publish", "stall", "checkpoint"):
        bounds = [float(bound) for bound in found[f"five_optimizer_{name}_seconds_bucket"]][:-1]
        assert (bounds[0], bounds[-1], len(bounds)) == (0.01, 120, 13)
        assert all(1 < after / before <= 2.5 for before, after in pairwise(bounds))
        assert all(bound % 5 == 0 for bound in bounds if bound >= 5)


def test_staleness_of_each_recent_version_has_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    found = initial_samples("five.services.optimizer.metrics", monkeypatch)
    bounds = [float(bound) for bound in found["five_optimizer_staleness_versions_bucket"]][:-1]
    assert bounds[:5] == [0, 1, 2, 3, 4] and bounds[-1] == 64
    assert [after - before for before, after in pairwise(bounds[4:])] == [2, 2, 4, 4, 8, 8, 32]


def test_heads_are_shown_beside_their_limits() -> None:
    metrics.show_version({**RECORD, "entropy_delay": 1.25, "max_entropy_delay": 1.375, "of_max_entropy_delay": 0.9,
                          "of_chance_win_probability": 0.75})
    assert value("head_entropy_nats", head="delay") == 1.25
    assert value("head_max_entropy_nats", head="delay") == 1.375
    assert value("auxiliary_loss_ratio", head="win_probability") == 0.75

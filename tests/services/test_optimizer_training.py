"""Training loop: versions, idle periods and measured staleness."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from five.agent.config import RampConfig, ScheduleConfig, SchedulesConfig
from five.agent.learning.buffer import DropReason
from five.services.optimizer import metrics as page
from five.services.optimizer.stored_arrays import StoredArrays
from five.services.optimizer.version_records import VersionWindow, quantile
from rapid.store.series import Series
from rapid.telemetry.metrics import definitions
from tests.services.optimizer_cases import (
    HYPER,
    LAYOUT,
    UNROLL,
    StateInMemory,
    Versions,
    feed,
    segment,
    stored_segment,
    training,
    until,
)


def test_versions_follow_a_fixed_number_of_steps(tmp_path: Path) -> None:
    versions, client = Versions(), StateInMemory()
    run = training(tmp_path, versions, client)
    run.start()
    assert list(versions.published) == [0] and versions.meta[0]["layout"] == LAYOUT.hash
    feed(run, 4)
    until(run, 1)
    assert list(versions.published) == [0, 1]
    assert run.learner.gradient_steps == 2
    assert any((versions.published[0][n] != t).any() for n, t in versions.published[1].items())
    (record,) = client.records
    assert record["version"] == 1 and record["staleness_median"] == 0.0
    assert record["reuse"] == pytest.approx(1.0, abs=0.51)
    assert versions.meta[1]["hyperparameters"]["learning_rate"] == 1e-3


def test_schedule_counts_received_hero_steps_across_a_resume(tmp_path: Path) -> None:
    versions, client = Versions(), StateInMemory()
    run = training(tmp_path, versions, client)
    run.start()
    feed(run, 4)
    until(run, 1)
    steps = client.records[0]["hero_steps"]
    client.plan = SchedulesConfig(learning_rate=ScheduleConfig(
        initial=1e-3, ramps=(RampConfig(start=steps, length=steps, from_=1e-3, to=2e-3),), unit="hero_steps"))
    resumed = training(tmp_path, versions, client)
    resumed.start()
    feed(resumed, 4, first=4)
    until(resumed, 2)
    rates = [versions.meta[v]["hyperparameters"]["learning_rate"] for v in (1, 2)]
    assert rates == [1e-3, 2e-3] and client.records[1]["hero_steps"] == 2 * steps


def staleness_buckets() -> dict[str, float]:
    """Return the staleness histogram of the metrics page by upper bound."""
    (family,) = page.STALENESS.collect()
    return {s.labels["le"]: s.value for s in family.samples if s.name.endswith("_bucket")}


def test_staleness_is_measured_at_consumption(tmp_path: Path) -> None:
    client = StateInMemory()
    run = training(tmp_path, Versions(), client)
    run.start()
    run.version = run.intake.version = 7
    for i, version in enumerate((7, 7, 5, 5)):  # 2 segments of 2 samples of 4 steps each: two steps of 4 samples
        run.intake.admit(stored_segment(str(i), version=version, seed=i))
    before = staleness_buckets()
    until(run, 8)
    (record,) = client.records
    consumed = {le: value - before[le] for le, value in staleness_buckets().items()}
    assert consumed["+Inf"] == 2 * 4 * UNROLL
    young, old = consumed["0.0"], consumed["+Inf"] - consumed["1.0"]
    assert young + old == consumed["+Inf"] and 0 < young < consumed["+Inf"]  # ages 0 and 2, none of 1
    assert consumed["2.0"] == consumed["+Inf"]
    assert record["staleness_histogram"] == [young, 0, old]
    assert record["staleness_mean"] == pytest.approx(2 * old / consumed["+Inf"])
    assert {d.name for d in definitions() if "staleness" in d.name} == {"five_optimizer_staleness_versions"}
    # The first step's samples are all new; of the second step's, only first uses count.
    new = 4 + 12 - 8 * record["mean_uses"]
    assert 4 <= new <= 8 and run.meter.learned_hero_steps == new / 8 * run.intake.hero_steps


def test_padding_has_no_staleness_on_the_metrics_page(tmp_path: Path) -> None:
    run = training(tmp_path, Versions(), StateInMemory())
    run.start()
    for i in range(4):
        arrays = segment(2, 0, i)
        arrays["mask"][UNROLL - 1::UNROLL] = 0  # the last step of each sample
        run.intake.admit(replace(stored_segment(str(i), seed=i), arrays=StoredArrays.from_arrays(arrays, 2)))
    before = staleness_buckets()
    until(run, 1)
    consumed = {le: value - before[le] for le, value in staleness_buckets().items()}
    assert consumed["+Inf"] == 2 * 4 * (UNROLL - 1), "only played steps are counted"


def test_training_continues_after_a_skipped_step(tmp_path: Path) -> None:
    class Client(StateInMemory):
        def record(self, record: dict[str, Any]) -> None:
            Series(redis.Redis(), "trial").command("versions", record)
            super().record(record)

    client = Client()
    run = training(tmp_path, Versions(), client)
    run.start()
    for i in range(4):
        arrays = segment(2, 0, i)
        arrays["returns"][0] = np.nan if i == 0 else arrays["returns"][0]
        run.intake.admit(replace(stored_segment(str(i), seed=i), arrays=StoredArrays.from_arrays(arrays, 2)))
    until(run, 1)
    feed(run, 8, first=10)
    until(run, 2)
    first, second = client.records
    assert (first["version"], second["version"]) == (1, 2)
    assert first["skipped"] + second["skipped"] > 0


def test_training_is_idle_while_the_run_is_paused(tmp_path: Path) -> None:
    client = StateInMemory()
    run = training(tmp_path, Versions(), client)
    run.start()
    feed(run, 4)
    client.playing = False
    until(run, 1, patience=20)
    assert run.version == 0 and run.learner.gradient_steps == 0


def test_idle_report_holds_until_the_run_resumes(tmp_path: Path) -> None:
    """The run resumes and pauses again just after the loop has read that it is active."""
    told: list[bool] = []

    class PausedAgain(StateInMemory):
        def active(self) -> bool:
            answer = self.playing
            if answer:
                self.playing = False
                told.append(run.is_idle)  # as the heartbeat of the new pause reports it
            return answer

    client = PausedAgain()
    client.playing = False
    run = training(tmp_path, Versions(), client)
    run.start()
    feed(run, 4)
    until(run, 1, patience=5)
    client.playing = True
    until(run, 1, patience=20)
    assert told == [True] and run.is_idle
    assert run.learner.gradient_steps == 0


def test_staleness_histogram_excludes_padding() -> None:
    window = VersionWindow()
    window.add({"loss": 2.0}, np.array([[0, 0], [1, -1], [3, -1]], np.int32), np.array([1, 2], np.int32), 0.5, 4)
    record = window.close(7, HYPER, 0.0)
    assert record["staleness_histogram"] == [2, 1, 0, 1]
    assert record["staleness_mean"] == 1.0 and record["staleness_median"] == 0.0 and record["staleness_p95"] == 3.0
    assert record["mean_uses"] == 1.5 and record["loss"] == 2.0


def test_staleness_quantiles_are_whole_versions() -> None:
    shares = np.array([0.5, 0.5, 0.9, 1.0])
    assert [quantile(shares, s) for s in (0.1, 0.5, 0.51, 0.95)] == [0.0, 0.0, 2.0, 3.0]


def test_end_epoch_reports_dropped_samples(tmp_path: Path) -> None:
    client = StateInMemory()
    run = training(tmp_path, Versions(), client)
    run.start()
    feed(run, 3)
    run.end_epoch()
    assert client.events == ["optimizer.renewed"] and len(run.intake.buffer) == 0
    assert run.intake.buffer.statistics().dropped[DropReason.EPOCH] == 6


def test_record_of_a_version_sums_up_the_run(tmp_path: Path) -> None:
    """Two steps of four samples of four hero-steps make a version."""
    client = StateInMemory()
    run = training(tmp_path, Versions(), client)
    run.start()
    counters = (page.STEPS, page.CONSUMED, page.RECEIVED, page.FLOP)
    before = [counter._value.get() for counter in counters]
    for version in (1, 2):
        feed(run, 4, first=10 * version)
        until(run, version)
    first, second = client.records
    assert run.meter.flop == second["flop"] == 2 * first["flop"] > 0
    shown = [counter._value.get() - b for counter, b in zip(counters, before, strict=True)]
    assert shown == [4, 16, 16, run.meter.flop]
    for number, record in enumerate((first, second), 1):
        assert (record["version"], record["hero_steps"]) == (number, number * 8 * UNROLL)
        assert record["reuse"] in (1.0, 1.0 + 4 / (8 * number))  # with the batch that was sampled ahead
        assert record["hero_steps_per_second"] * record["seconds"] == pytest.approx(8 * UNROLL)
        assert record["consumed_per_second"] * record["seconds"] == pytest.approx(8 * UNROLL)
        assert set(record["dropped"]) == {str(reason) for reason in DropReason}
    statistics = run.intake.buffer.statistics()
    assert (second["buffer_samples"], second["buffer_bytes"]) == (statistics.samples, statistics.nbytes) != (0, 0)
    assert run.starved.is_waiting is False and run.fingerprint is None


def test_resume_continues_the_counts_of_the_run(tmp_path: Path) -> None:
    run = training(tmp_path, Versions())
    run.start()
    for number in (1, 2):
        feed(run, 4, first=10 * number)
        until(run, number)
    versions, client = Versions(), StateInMemory()
    versions.publish(5, {}, {})
    again = training(tmp_path, versions, client)
    again.start()
    assert (again.version, again.intake.version) == (5, 5)
    assert (again.meter.flop, again.intake.hero_steps) == (run.meter.flop, 2 * 8 * UNROLL)
    assert again.learner.gradient_steps == 4 and again.intake.pacer.received == run.intake.pacer.received
    feed(again, 4, first=100)
    until(again, 6)
    (record,) = client.records
    assert (record["version"], record["hero_steps"]) == (6, 3 * 8 * UNROLL)
    assert record["hero_steps_per_second"] * record["seconds"] == pytest.approx(8 * UNROLL)


def test_new_run_begins_at_zero(tmp_path: Path) -> None:
    run = training(tmp_path, Versions())
    assert run.is_idle and not run.is_fenced_out and run.blocked_reason == ""
    run.start()
    assert (run.version, run.intake.version, run.warm_up_until) == (0, 0, 0)
    assert (run.meter.flop, run.meter.learned_hero_steps) == (0.0, 0)
    assert run.checkpoints.versions() == [0]


def test_every_checkpoint_interval_is_kept(tmp_path: Path) -> None:
    run = training(tmp_path, Versions())
    run.checkpoint_every = 2
    run.start()
    written: list[list[int]] = []
    for version in (1, 2, 3):
        feed(run, 4, first=10 * version)
        left = [400]

        def stop(version: int = version, left: list[int] = left) -> bool:
            left[0] -= 1
            if run.version >= version and run._writer.is_idle:
                written.append(run.checkpoints.versions())
                return True
            return left[0] < 0

        run.run(stop)
    assert [versions[-1] for versions in written] == [0, 2, 2]


def test_wait_for_samples_is_measured_while_the_run_is_active(tmp_path: Path) -> None:
    run = training(tmp_path, Versions())
    run.start()
    states: list[bool] = []

    def stop() -> bool:
        states.append(run.starved.is_waiting)
        if len(states) == 10:
            feed(run, 4)
        return run.version == 1 or len(states) > 400

    run.run(stop)
    assert not states[0] and states[5] and not run.starved.is_waiting


def test_single_optimizer_decides_just_before_each_step(tmp_path: Path) -> None:
    """Only a group begins its decision a step ahead, which ends it a step later."""
    run = training(tmp_path, Versions())
    run.config = run.config.model_copy(update={"gradient_steps_per_iteration": 8})
    run.start()
    feed(run, 8)
    turns: list[int] = []

    def stop() -> bool:
        turns.append(run.learner.gradient_steps)
        return turns[-1] >= 3 or len(turns) > 400

    run.run(stop)
    assert run.learner.gradient_steps == 3 and run.version == 0

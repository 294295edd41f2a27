import math
from collections import Counter, deque
from typing import Any

import numpy as np
import pytest

from five.ablation.training_records import measure_training

SAMPLES, STEPS = 100, 16  # of a version, of a sample


def run(versions: int, queue: int = 0, uses: int = 1, unused: int = 0, until: int = 999) -> list[dict[str, Any]]:
    """The records of a run whose samples wait in a queue ``queue`` versions long; each is used ``uses`` times, one
    after the other, and ``unused`` more than are used come in with each up to version ``until``; 2 s each."""
    waiting = deque([0] * (queue * SAMPLES))  # the version that played each
    received, consumed, dropped = len(waiting), 0, Counter({"used": 0, "unused": 0, "too_old": 0})
    records = []
    for version in range(1, versions + 1):
        taken_in = SAMPLES // uses
        waiting.extend([version - 1] * taken_in)
        wasted = unused if version <= until else 0
        received += taken_in + wasted
        ages = Counter(version - 1 - waiting.popleft() for _ in range(SAMPLES // uses))
        consumed += SAMPLES
        dropped.update(used=SAMPLES // uses, unused=wasted)
        histogram = [0] * (max(ages) + 1)
        for age, count in ages.items():
            histogram[age] = count * uses * STEPS
        records.append({"version": version, "seconds": 2.0, "samples": SAMPLES, "reuse": consumed / received,
                        "consumed_per_second": SAMPLES * STEPS / 2.0, "staleness_histogram": histogram,
                        "staleness_mean": float(np.average(list(ages), weights=list(ages.values()))),
                        "dropped": dict(dropped)})
    return records


@pytest.mark.parametrize("queue", [1, 4, 16])
def test_staleness_and_reuse_start_at_a_full_buffer(queue: int) -> None:
    """While it fills, samples are younger, and more of them come in than go out: for most of a run as short as this
    with the longest queue, for whose ages over all of it the median would be below."""
    records = run(queue + 8, queue, unused=25, until=queue + 1)
    found = measure_training(records)
    assert found.full_from == queue + 2  # after the queue's own samples and those that came in for version 1
    assert (found.staleness_median, found.staleness_p95) == (queue, queue)
    assert found.reuse == pytest.approx(1.0) and found.uses == pytest.approx(1.0) and found.unused == 0.0
    assert records[-1]["reuse"] < 1 and np.mean([r["staleness_mean"] for r in records]) < queue


def test_reused_sample_counts_once() -> None:
    once, twice = measure_training(run(20)), measure_training(run(20, uses=2))
    assert once.uses == pytest.approx(1.0) and twice.uses == pytest.approx(2.0) and twice.reuse == pytest.approx(2.0)
    assert once.learned_at(20) == pytest.approx(20 * SAMPLES * STEPS)
    assert twice.learned_at(20) == pytest.approx(once.learned_at(20) / 2)
    assert once.learned_per_second == pytest.approx(SAMPLES * STEPS / 2.0)


def test_unused_samples_are_received_but_not_learned() -> None:
    found = measure_training(run(20, unused=25))
    assert found.reuse == pytest.approx(0.8) and found.uses == pytest.approx(1.0)
    assert found.unused == pytest.approx(0.2) and found.learned_at(20) == pytest.approx(20 * SAMPLES * STEPS)


def test_expired_samples_are_assumed_used_like_others() -> None:
    records = run(20, uses=2)
    for version, record in enumerate(records, 1):
        record["dropped"] = {"used": 40 * version, "unused": 0, "too_old": 10 * version}
    assert measure_training(records).uses == pytest.approx(2.0)


def test_staleness_quantiles_cover_all_versions() -> None:
    """19 versions of one age and two of another, which are more than 5 %."""
    records = run(22, queue=0)
    for record in records[2:]:
        record["staleness_histogram"] = [STEPS * SAMPLES] if record["version"] <= 20 else [0, 0, 0, STEPS * SAMPLES]
    found = measure_training(records)
    assert (found.staleness_median, found.staleness_p95) == (0.0, 3.0)


def test_unfilled_buffer_gives_nan() -> None:
    found = measure_training(run(5, queue=16))
    assert found.full_from is None and math.isnan(found.staleness_median) and math.isnan(found.learned_at(5))
    assert measure_training([]).full_from is None and math.isnan(measure_training([]).learned_at(1))


def test_last_histogram_bin_counts_as_old() -> None:
    """Its last bin holds everything older: a queue longer than that is never seen to be full."""
    records = run(80)
    for record in records:
        record["staleness_histogram"] = [0] * 63 + [STEPS * SAMPLES]
    records[0]["staleness_histogram"] = [STEPS * SAMPLES]
    for record in records[1:63]:
        record["staleness_histogram"] = [0] * (record["version"] - 1) + [STEPS * SAMPLES]
    assert measure_training(records).full_from is None


def test_version_without_a_record_is_nan() -> None:
    found = measure_training(run(5))
    assert math.isnan(found.learned_at(77)) and found.staleness.shape == found.version.shape == (5,)

import math

import numpy as np
import pytest

from five.ablation.comparison import (
    AXES,
    common_range,
    curve,
    format_number,
    mean,
    mean_between,
    metric_at,
    t95,
    version_curve,
)
from five.ablation.results import EvaluatedVersion, TrialRun
from five.ablation.training_records import TrainingStatistics

VERSIONS, SAMPLES, MINUTES = AXES.values()


def run(mu: list[float], numbers: list[int] | None = None, seed: int = 1, samples: float = 1000.0) -> TrialRun:
    """Return a run evaluated at versions 10, 20, ... by default; two minutes and ``samples`` a version."""
    numbers = numbers or [10 * (i + 1) for i in range(len(mu))]
    versions = [EvaluatedVersion(n, samples * n, 2.0 * n, m, 1.0) for n, m in zip(numbers, mu, strict=True)]
    return TrialRun("x", seed, versions, TrainingStatistics())


def test_intervals_are_students() -> None:
    m = mean([1.0, 2.0, 3.0, math.nan])
    assert m.value == 2.0 and m.half == pytest.approx(4.303 / math.sqrt(3), rel=1e-3) and m.seeds == 3
    assert str(m) == "2 ± 2.5" and str(mean([4.0])) == "4" and str(mean([])) == str(mean([math.nan])) == "-"
    assert str(mean([0.99] * 3)) == "0.99 ± 0"
    assert str(mean([1.0, 1.00001, 0.99999])) == "1 ± <0.001"
    assert str(mean([5000.0, 5001.0, 4999.0])) == "5,000 ± <5"


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.706), (10, 2.228), (11, 2.201), (15, 2.131), (30, 2.042),
                                                   (10_000, 1.960)])
def test_quantiles_are_students(freedom: int, quantile: float) -> None:
    assert t95(freedom) == pytest.approx(quantile, abs=6e-4)


@pytest.mark.parametrize(("value", "text"), [(0.01234, "0.0123"), (12.34, "12.3"), (1234.5, "1,234"), (0.0, "0"),
                                             (84.0, "84"), (100.0, "100"), (0.9996, "1"), (-3.14159, "-3.14")])
def test_numbers_have_significant_digits(value: float, text: str) -> None:
    assert format_number(value) == text


def test_curve_covers_the_common_range() -> None:
    c = curve([([10, 20], [0, 10]), ([10, 20, 40], [0, 20, 20])], points=3)
    np.testing.assert_allclose(c.x, [10, 15, 20])
    np.testing.assert_allclose(c.y, [0, 7.5, 15])
    assert (c.high - c.low)[2] > (c.high - c.low)[0] == 0 and c.seeds == 2


def test_curve_skips_nan() -> None:
    c = curve([([10, 20, 30], [0, math.nan, 20]), ([math.nan, math.nan], [1, 2])], points=3)
    np.testing.assert_allclose(c.y, [0, 10, 20])
    assert c.seeds == 1 and not len(curve([]).x) and not len(curve([([1, 2], [0, 0]), ([3, 4], [0, 0])]).x)


def test_comparison_uses_the_common_range() -> None:
    long, short = run([0, 10, 20, 30]), run([0, 4], [12, 28])
    assert common_range([long, short], VERSIONS) == (12, 28)
    assert metric_at(long, VERSIONS, 28, lambda v: v.mu) == pytest.approx(18)
    assert common_range([long, short], SAMPLES) == (12_000, 28_000) and common_range([long, short], MINUTES) == (24, 56)
    for outside in (29, 11):
        assert math.isnan(metric_at(short, VERSIONS, outside, lambda v: v.mu))
    unknown = run([0, 4], samples=math.nan)
    assert all(map(math.isnan, common_range([long, unknown], SAMPLES) + common_range([], VERSIONS)))
    np.testing.assert_allclose(version_curve([long], MINUTES, lambda v: v.mu).x[[0, -1]], [20, 80])


def test_mean_between_two_points() -> None:
    """An outlying version counts by the range that it covers."""
    bent = run([0, 20, 0, 20])
    assert mean_between(bent, VERSIONS, (10, 40), lambda v: v.mu) == pytest.approx(10, abs=0.05)
    assert mean_between(bent, VERSIONS, (15, 20), lambda v: v.mu) == pytest.approx(15, abs=0.05)
    assert math.isnan(mean_between(bent, VERSIONS, (10, 41), lambda v: v.mu))

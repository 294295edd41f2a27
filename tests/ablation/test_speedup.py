import math

import pytest

from five.ablation.speedup import first_reached, levels, speedup
from tests.ablation.test_comparison import SAMPLES, VERSIONS, run


def test_levels_are_between_first_and_last_version() -> None:
    assert levels([run([10, 40, 20]), run([20, 0, 30])]) == pytest.approx([20, 24])
    assert levels([run([10, 5])]) == [] == levels([])


def test_level_below_the_first_version_is_nan() -> None:
    assert first_reached([10, 20, 30], [0, 10, 10], 5) == 15
    assert first_reached([10, 20], [5, 10], 5) == 10
    assert math.isinf(first_reached([10, 20], [0, 4], 5))
    assert math.isnan(first_reached([10, 20], [6, 10], 5)) and math.isnan(first_reached([], [], 5))


def test_speedup_follows_the_papers_equation() -> None:
    base, fast, never = ([run(mu, seed=s) for s in (1, 2)] for mu in ([0, 10, 20], [0, 20, 40], [0, 0, 0]))
    found = speedup(base, fast, 10, VERSIONS)
    assert found.value == pytest.approx(20 / 15)
    assert speedup(base, never, 10, VERSIONS).value == 0.0 and str(speedup(base, never, 10, VERSIONS)) == "never"
    assert math.isinf(speedup(never, fast, 10, VERSIONS).value)
    neither = speedup(never, never, 10, VERSIONS)
    assert str(neither) == "-" and "neither" in neither.reason


def test_speedup_by_samples_counts_each_sample_once() -> None:
    once, twice = run([0, 10]), run([0, 10], samples=500.0)
    assert speedup([once], [twice], 5, VERSIONS).value == pytest.approx(1.0)
    assert speedup([once], [twice], 5, SAMPLES).value == pytest.approx(2.0)


@pytest.mark.parametrize("side", [0, 1])
def test_speedup_is_undetermined_above_the_level(side: int) -> None:
    known, above = [run([0, 10, 20])], [run([0, 10, 20]), run([12, 15, 20], seed=2)]
    found = speedup(above, known, 10, VERSIONS) if side == 0 else speedup(known, above, 10, VERSIONS)
    assert str(found) == "-" and math.isnan(found.value) and found.reason.endswith("x-seed2")
    assert "above" in found.reason
    unknown = [run([0, 20], samples=math.nan)]
    assert str(speedup(known, unknown, 10, SAMPLES)) == "-"


def test_speedup_uncertainty_is_in_quadrature() -> None:
    """Two points are two versions for the baseline, which needs 20, and one for the variant, which needs 15."""
    found = speedup([run([0, 10, 20])], [run([0, 20, 40])], 10, VERSIONS)
    assert found.around is not None
    low, high = found.around
    value = 20 / 15
    assert low == pytest.approx(value - math.hypot(2 / 15, value - 20 / 16))
    assert high == pytest.approx(value + math.hypot(2 / 15, 20 / 14 - value))
    assert found.seeds is None and str(found) == f"1.33 (±2 points: {low:.2f} to {high:.2f})"


def test_speedup_uncertainty_is_open_at_unreached_levels() -> None:
    base = [run([0, 10, 20])]
    near = speedup(base, [run([0, 5, 11])], 10, VERSIONS).around  # 12 is never reached
    early = speedup(base, [run([9, 15, 20])], 10, VERSIONS).around  # 8 was reached before version 10
    assert near is not None and near[0] == pytest.approx(0.0, abs=0.05) and math.isfinite(near[1])
    assert early is not None and math.isinf(early[1])
    assert "open" in str(speedup(base, [run([9, 15, 20])], 10, VERSIONS))


def test_speedup_interval_over_seeds_is_welchs() -> None:
    """Needs of 20 and 40 against 10 and 20: a factor of two, each side's logarithm of variance ln(2)²/2."""
    base = [run([0, 10], [0, 20]), run([0, 10], [0, 40], seed=2)]
    variant = [run([0, 10], [0, 10]), run([0, 10], [0, 20], seed=2)]
    found = speedup(base, variant, 10, VERSIONS)
    assert found.value == pytest.approx(2.0) and found.seeds is not None
    half = 4.303 * math.sqrt(2 * (math.log(2) ** 2 / 2) / 2)  # as many degrees of freedom as there are runs less two
    assert found.seeds == (pytest.approx(2 * math.exp(-half)), pytest.approx(2 * math.exp(half)))
    same = speedup([run([0, 10]), run([0, 10], seed=2)], [run([0, 10]), run([0, 10], seed=2)], 5, VERSIONS)
    assert same.seeds == (1.0, 1.0)

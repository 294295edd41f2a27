import math

import numpy as np
import pytest

from five.cli.ablation.compare import AXES, at, common, curve, figure, first_reached, levels, mean, of_versions, speedup
from five.cli.ablation.outcome import Run, Version
from five.cli.ablation.training import Training

VERSIONS, SAMPLES, MINUTES = AXES.values()


def run(mu: list[float], numbers: list[int] | None = None, seed: int = 1, samples: float = 1000.0) -> Run:
    """Judged at versions 10, 20, ... unless told otherwise; two minutes and ``samples`` a version."""
    numbers = numbers or [10 * (i + 1) for i in range(len(mu))]
    versions = [Version(n, samples * n, 2.0 * n, m, 1.0) for n, m in zip(numbers, mu, strict=True)]
    return Run("x", seed, versions, Training())


def test_intervals_are_students() -> None:
    m = mean([1.0, 2.0, 3.0, math.nan])
    assert m.value == 2.0 and m.half == pytest.approx(4.303 / math.sqrt(3), rel=1e-3) and m.seeds == 3
    assert str(m) == "2 ± 2.5" and str(mean([4.0])) == "4" and str(mean([])) == str(mean([math.nan])) == "-"


@pytest.mark.parametrize(("value", "text"), [(0.01234, "0.0123"), (12.34, "12.3"), (1234.5, "1,234"), (0.0, "0"),
                                             (84.0, "84"), (100.0, "100"), (0.9996, "1"), (-3.14159, "-3.14")])
def test_figures_have_the_digits_that_count(value: float, text: str) -> None:
    assert figure(value) == text


def test_a_curve_goes_as_far_as_every_seed_does() -> None:
    c = curve([([10, 20], [0, 10]), ([10, 20, 40], [0, 20, 20])], points=3)
    np.testing.assert_allclose(c.x, [10, 15, 20])
    np.testing.assert_allclose(c.y, [0, 7.5, 15])
    assert (c.high - c.low)[2] > (c.high - c.low)[0] == 0 and c.seeds == 2


def test_a_curve_leaves_out_what_is_not_known() -> None:
    c = curve([([10, 20, 30], [0, math.nan, 20]), ([math.nan, math.nan], [1, 2])], points=3)
    np.testing.assert_allclose(c.y, [0, 10, 20])
    assert c.seeds == 1 and not len(curve([]).x) and not len(curve([([1, 2], [0, 0]), ([3, 4], [0, 0])]).x)


def test_arms_are_compared_where_all_runs_have_been() -> None:
    long, short = run([0, 10, 20, 30]), run([0, 4], [12, 28])
    assert common([long, short], VERSIONS) == 28 and at(long, VERSIONS, 28, lambda v: v.mu) == pytest.approx(18)
    assert common([long, short], SAMPLES) == 28_000 and common([long, short], MINUTES) == 56
    assert math.isnan(at(short, VERSIONS, 29, lambda v: v.mu)) and math.isnan(at(short, VERSIONS, 11, lambda v: v.mu))
    assert math.isnan(common([long, run([0, 4], samples=math.nan)], SAMPLES)) and math.isnan(common([], VERSIONS))
    np.testing.assert_allclose(of_versions([long], MINUTES, lambda v: v.mu).x[[0, -1]], [20, 80])


def test_levels_lie_between_the_baselines_first_judged_version_and_its_last() -> None:
    assert levels([run([10, 40, 20]), run([20, 0, 30])]) == pytest.approx([20, 24])
    assert levels([run([10, 5])]) == [] == levels([])


def test_a_rating_that_was_there_before_anybody_looked_was_reached_nobody_knows_where() -> None:
    assert first_reached([10, 20, 30], [0, 10, 10], 5) == 15
    assert first_reached([10, 20], [5, 10], 5) == 10
    assert math.isinf(first_reached([10, 20], [0, 4], 5))
    assert math.isnan(first_reached([10, 20], [6, 10], 5)) and math.isnan(first_reached([], [], 5))


def test_the_speedup_is_the_papers() -> None:
    base, fast, never = ([run(mu, seed=s) for s in (1, 2)] for mu in ([0, 10, 20], [0, 20, 40], [0, 0, 0]))
    found = speedup(base, fast, 10, VERSIONS)
    assert found.value == pytest.approx(20 / 15)
    assert speedup(base, never, 10, VERSIONS).value == 0.0 and str(speedup(base, never, 10, VERSIONS)) == "never"
    assert math.isinf(speedup(never, fast, 10, VERSIONS).value)
    neither = speedup(never, never, 10, VERSIONS)
    assert str(neither) == "-" and "neither" in neither.reason


def test_by_samples_an_arm_that_uses_each_twice_needs_half_of_them() -> None:
    once, twice = run([0, 10]), run([0, 10], samples=500.0)
    assert speedup([once], [twice], 5, VERSIONS).value == pytest.approx(1.0)
    assert speedup([once], [twice], 5, SAMPLES).value == pytest.approx(2.0)


@pytest.mark.parametrize("side", [0, 1])
def test_no_speedup_where_the_first_judged_version_is_above_the_level_on_either_side(side: int) -> None:
    known, above = [run([0, 10, 20])], [run([0, 10, 20]), run([12, 15, 20], seed=2)]
    found = speedup(above, known, 10, VERSIONS) if side == 0 else speedup(known, above, 10, VERSIONS)
    assert str(found) == "-" and math.isnan(found.value) and found.reason.endswith("x-seed2")
    assert "above" in found.reason
    unknown = [run([0, 20], samples=math.nan)]
    assert str(speedup(known, unknown, 10, SAMPLES)) == "-"


def test_its_uncertainty_is_of_both_sides_in_quadrature() -> None:
    """Two points are two versions for the baseline, which needs 20, and one for the arm, which needs 15."""
    found = speedup([run([0, 10, 20])], [run([0, 20, 40])], 10, VERSIONS)
    assert found.around is not None
    low, high = found.around
    value = 20 / 15
    assert low == pytest.approx(value - math.hypot(2 / 15, value - 20 / 16))
    assert high == pytest.approx(value + math.hypot(2 / 15, 20 / 14 - value))
    assert found.seeds is None and str(found) == f"1.33 (±2 points: {low:.2f} to {high:.2f})"


def test_its_uncertainty_is_open_where_two_points_more_are_never_reached_or_two_less_were_there_before() -> None:
    base = [run([0, 10, 20])]
    near = speedup(base, [run([0, 5, 11])], 10, VERSIONS).around  # 12 is never reached
    early = speedup(base, [run([9, 15, 20])], 10, VERSIONS).around  # 8 was reached before version 10
    assert near is not None and near[0] == pytest.approx(0.0, abs=0.05) and math.isfinite(near[1])
    assert early is not None and math.isinf(early[1])
    assert "open" in str(speedup(base, [run([9, 15, 20])], 10, VERSIONS))


def test_over_seeds_its_interval_is_welchs_of_logarithms() -> None:
    """Needs of 20 and 40 against 10 and 20: a factor of two, each side's logarithm of variance ln(2)²/2."""
    base = [run([0, 10], [0, 20]), run([0, 10], [0, 40], seed=2)]
    arm = [run([0, 10], [0, 10]), run([0, 10], [0, 20], seed=2)]
    found = speedup(base, arm, 10, VERSIONS)
    assert found.value == pytest.approx(2.0) and found.seeds is not None
    half = 4.303 * math.sqrt(2 * (math.log(2) ** 2 / 2) / 2)  # as many degrees of freedom as there are runs less two
    assert found.seeds == (pytest.approx(2 * math.exp(-half)), pytest.approx(2 * math.exp(half)))
    same = speedup([run([0, 10]), run([0, 10], seed=2)], [run([0, 10]), run([0, 10], seed=2)], 5, VERSIONS)
    assert same.seeds == (1.0, 1.0)

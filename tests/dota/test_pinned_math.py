"""The game's own sine, cosine, angle and logarithm are correct to the last bit of a float and the only ones used."""

import math
import random
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from dota import _core

CORE = Path(__file__).resolve().parents[2] / "libs" / "dota" / "core"
# Functions that C libraries round differently. sqrt, floor, ceil, fabs, fmod and lround have one right answer.
INEXACT = ("sin", "cos", "tan", "sincos", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "exp2",
           "exp10", "expm1", "log", "log2", "log10", "log1p", "pow", "hypot", "cbrt", "erf", "erfc", "tgamma", "lgamma")


def single(x: float) -> float:
    """Return the float nearest to x, the core's input."""
    return float(np.float32(x))


def test_sine_and_cosine() -> None:
    dice = random.Random(1)
    angles = [single(dice.uniform(-bound, bound)) for bound in (1, 7, 100, 1e5) for _ in range(20_000)]
    angles += [single(k * math.pi / 8) for k in range(-64, 65)]
    for angle, (sine, cosine) in zip(angles, _core.pinned_sin_cos(angles), strict=True):
        assert abs(sine - math.sin(angle)) < 6e-8, angle
        assert abs(cosine - math.cos(angle)) < 6e-8, angle


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 40_003])
def test_many_angles_at_a_time_are_the_same_to_the_bit(n: int) -> None:
    dice = random.Random(n)
    angles = [single(dice.choice((dice.uniform(-4, 4), dice.uniform(-1e5, 1e5), dice.uniform(-2e9, 2e9),
                                  dice.randrange(-64, 65) * math.pi / 8, -0.0, math.inf, math.nan))) for _ in range(n)]
    one_by_one, together = (np.array(f(angles), np.float32).view(np.uint32)
                            for f in (_core.pinned_sin_cos, _core.pinned_sin_cos_of))
    np.testing.assert_array_equal(together, one_by_one)


def test_an_invalid_angle_counts_as_none() -> None:
    assert _core.pinned_sin_cos([math.inf, -math.inf, math.nan, 1e30]) == [(0.0, 1.0)] * 4


def test_the_angle_of_a_direction() -> None:
    dice = random.Random(2)
    for _ in range(50_000):
        y, x = (single(dice.gauss(0, 10 ** dice.uniform(-6, 6))) for _ in range(2))
        assert abs(_core.pinned_angle(y, x) - math.atan2(y, x)) < 3e-7, (y, x)
    for y, x in ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1), (-2, 2)):
        assert _core.pinned_angle(y, x) == single(math.atan2(y, x))
    assert _core.pinned_angle(0, 0) == _core.pinned_angle(math.nan, 1) == 0


def test_the_logarithm() -> None:
    dice = random.Random(3)
    for _ in range(50_000):
        x = single(10 ** dice.uniform(-37, 37))
        right = math.log(x)
        assert abs(_core.pinned_ln(x) - right) <= 1.2e-7 * max(1, abs(right)), x
    assert _core.pinned_ln(1) == 0
    assert _core.pinned_ln(0) == _core.pinned_ln(-1) == _core.pinned_ln(math.nan) == single(-3.4028234663852886e38)


def test_whole_powers() -> None:
    for base in (0.0, 0.5, 0.9, 1.0, 2.0):
        for exponent in range(12):
            assert _core.pinned_power(base, exponent) == pytest.approx(base ** exponent, rel=1e-6)
    with pytest.raises(ValueError, match="at least 0"):
        _core.pinned_power(2, -1)


def test_no_source_of_the_core_asks_the_library() -> None:
    called = re.compile(rf"\b(?:std::)?({'|'.join(INEXACT)})[fl]?\s*\(")
    found = []
    for path in sorted(CORE.rglob("*.[ch]pp")):
        for number, row in enumerate(path.read_text().splitlines(), 1):
            code = row.split("//")[0]
            if match := called.search(re.sub(r'"[^"]*"', "", code)):
                found.append(f"{path.relative_to(CORE)}:{number}: {match.group(1)}()")
    assert not found, "\n".join(["use world/math.hpp, so that games are the same on every machine:", *found])


def test_nor_does_the_compiled_core() -> None:
    """A compiler may replace an expression by a library call, so the linked symbols are checked."""
    listed = subprocess.run(["nm", "-D", "--undefined-only", str(_core.__file__)], capture_output=True, text=True,
                            check=True).stdout
    wanted = {line.split()[-1].split("@")[0] for line in listed.splitlines()}
    assert "memcpy" in wanted, "nm lists nothing: this test would pass on anything"
    assert not wanted & {name + suffix for name in INEXACT for suffix in ("", "f", "l")}

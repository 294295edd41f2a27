import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from five.agent.weighted_draw import SoftmaxDraw

QUALITIES = st.floats(-3000, 10)


def softmax(qualities):
    q = np.array(list(qualities.values()))
    p = np.exp(q - q.max())
    return dict(zip(qualities, p / p.sum(), strict=True))


def the_chances_are(draw, expected):
    for key, p in expected.items():
        assert draw.chance(key) == pytest.approx(p, rel=1e-9, abs=1e-250)


def test_of_nothing_nothing_is_drawn():
    with pytest.raises(LookupError, match="nothing"):
        SoftmaxDraw().draw(0.5)
    with pytest.raises(KeyError):
        SoftmaxDraw().chance(1)


def test_a_number_falls_upon_the_keys_in_order_of_addition():
    draw = SoftmaxDraw([(7, 0.0), (3, math.log(2)), (5, 0.0)])
    assert [draw.draw(u) for u in (0.0, 0.24, 0.26, 0.74, 0.76, math.nextafter(1, 0))] == [7, 7, 3, 3, 5, 5]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.one_of(QUALITIES, st.none())), min_size=1, max_size=80))
def test_whatever_was_changed_the_chances_are_the_softmax(changes):
    draw, qualities = SoftmaxDraw(), {}
    for key, quality in changes:
        if quality is None:
            draw.remove(key)
            qualities.pop(key, None)
        else:
            draw.put(key, quality)
            qualities[key] = quality
        assert len(draw) == len(qualities)
        if qualities:
            expected = softmax(qualities)
            the_chances_are(draw, expected)
            for uniform in (0.0, 0.3, 0.7, math.nextafter(1, 0)):
                assert expected[draw.draw(uniform)] > 0


def test_many_small_falls_leave_no_error():
    """As qualities fall for weeks all weights would underflow, and rounding would add up."""
    rng = np.random.default_rng(0)
    qualities = dict.fromkeys(range(50), 0.0)
    draw = SoftmaxDraw(qualities.items())
    for _ in range(20_000):
        key = draw.draw(rng.random())
        qualities[key] -= rng.random() * 10
        draw.put(key, qualities[key])
    assert max(qualities.values()) < -1000
    the_chances_are(draw, softmax(qualities))

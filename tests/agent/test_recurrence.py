import numpy as np
import pytest

from five.agent.learning.recurrence import linear_recurrence


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 16, 255, 256])
@pytest.mark.parametrize("backward", [False, True])
def test_scan_equals_the_sequential_recurrence(steps, backward):
    rng = np.random.default_rng(steps)
    decay, add, initial = rng.random((steps, 1)), rng.normal(size=(steps, 3)).astype(np.float32), rng.normal(size=3)
    got = linear_recurrence(decay, add, initial, backward=backward)
    x, expected = initial, np.empty((steps, 3))
    for t in reversed(range(steps)) if backward else range(steps):
        x = expected[t] = decay[t] * x + add[t]
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_zero_decay_resets():
    assert linear_recurrence(np.array([1.0, 0.0, 1.0]), np.ones(3), 5.0).tolist() == [6.0, 1.0, 2.0]


def test_decay_may_be_a_number():
    assert linear_recurrence(0.5, np.array([8.0, 0.0, 0.0])).tolist() == [8.0, 4.0, 2.0]


def test_arguments_are_not_modified():
    add, decay = np.ones(4), np.full(4, 0.5)
    linear_recurrence(decay, add, 1.0)
    assert add.tolist() == [1.0] * 4 and decay.tolist() == [0.5] * 4

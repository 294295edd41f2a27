"""Two layers over packed rows and their gradients, against numpy in float64, for each set of instructions."""

import numpy as np
import pytest

from five.native.set_layers import Floats, Weights, backward, forward

EACH = pytest.mark.parametrize("instructions", ["", "avx2", "portable"])


def case(rows: int, widths: list[int], hidden: int, out: int) -> tuple[list[Floats], Weights, Floats]:
    rng = np.random.default_rng(rows)

    def normal(*shape: int) -> Floats:
        return rng.normal(size=shape).astype(np.float32)

    weights = Weights(normal(hidden, sum(widths)), normal(hidden), normal(out, hidden), normal(out))
    return [normal(rows, width) for width in widths], weights, normal(rows, out)


@EACH
@pytest.mark.parametrize(("rows", "widths", "hidden", "out"), [
    (200, [37, 8, 6, 8], 48, 48), (64, [5, 2], 24, 24), (65, [16], 16, 8), (3, [1, 1], 1, 1), (130, [50, 21], 50, 17),
    (0, [4], 8, 8)])
def test_as_in_float64(rows: int, widths: list[int], hidden: int, out: int, instructions: str) -> None:
    pieces, weights, gradient = case(rows, widths, hidden, out)
    learned = [i % 2 == 1 for i in range(len(widths))]
    x = np.concatenate(pieces, 1).astype(float)
    w1, b1, w2, b2 = (w.astype(float) for w in weights)
    was = np.maximum(x @ w1.T + b1, 0.0)
    seen, got = forward(pieces, weights, instructions)
    np.testing.assert_allclose(seen, was, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got, was @ w2.T + b2, rtol=1e-4, atol=1e-3)

    of_weights, of_pieces = backward(pieces, learned, weights, seen, gradient, instructions)
    d = gradient.astype(float)
    of_hidden = (d @ w2) * (seen > 0)
    of_x = np.split(of_hidden @ w1, np.cumsum(widths)[:-1], 1)
    for mine, expected in zip(of_weights, (of_hidden.T @ x, of_hidden.sum(0), d.T @ was, d.sum(0)), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=2e-3)
    for wanted, mine, expected in zip(learned, of_pieces, of_x, strict=True):
        assert (mine is not None) == wanted
        if mine is not None:
            np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-3)


@EACH
def test_what_is_no_number_shows(instructions: str) -> None:
    pieces, weights, gradient = case(70, [9, 4], 20, 12)
    pieces[1][66, 2] = np.nan
    seen, got = forward(pieces, weights, instructions)
    assert np.isnan(seen[66]).all() and np.isnan(got[66]).all() and np.isfinite(np.delete(got, 66, 0)).all()
    of_weights, of_pieces = backward(pieces, [True, True], weights, seen, gradient, instructions)
    assert np.isnan(of_weights.second).all() and np.isnan(of_weights.first[:, 11]).all()
    assert of_pieces[0] is not None and np.isfinite(np.delete(of_pieces[0], 66, 0)).all()


def test_sums_are_the_same_each_time() -> None:
    pieces, weights, gradient = case(1000, [30], 48, 48)
    seen, _ = forward(pieces, weights)
    first, again = (backward(pieces, [False], weights, seen, gradient)[0] for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_what_does_not_fit_together_is_refused() -> None:
    pieces, weights, gradient = case(10, [3, 2], 4, 5)
    hidden, _ = forward(pieces, weights)
    with pytest.raises(ValueError, match="the width of the pieces"):
        forward(pieces[:1], weights)
    with pytest.raises(ValueError, match="the width of the pieces"):
        forward([], weights)
    with pytest.raises(ValueError, match="a piece"):
        forward([pieces[0], pieces[1][:9]], weights)
    with pytest.raises(ValueError, match="a bias"):
        forward(pieces, weights._replace(first_bias=weights.second_bias))
    with pytest.raises(ValueError, match="a weight"):
        forward(pieces, weights._replace(second=weights.first))
    with pytest.raises(ValueError, match="the gradient"):
        backward(pieces, [False, False], weights, hidden, gradient[:9])
    with pytest.raises(ValueError, match="the hidden layer"):
        backward(pieces, [False, False], weights, hidden[:9], gradient)

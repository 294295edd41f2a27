import torch

from five.agent.learning.flat_gradient import FlatGradient


def test_gradients_are_aligned_views_of_one_vector() -> None:
    parameters = {"a": torch.nn.Parameter(torch.ones(3, 2)), "b": torch.nn.Parameter(torch.ones(17))}
    flat = FlatGradient(parameters, torch.device("cpu"))
    (2 * parameters["a"].sum() + 3 * parameters["b"].sum()).backward()
    assert [(start, end) for _, start, end in flat.spans()] == [(0, 6), (16, 33)] and flat.vector.numel() == 48
    assert flat.view(flat.vector, "a").tolist() == [[2.0, 2.0]] * 3 and flat.vector[16:33].eq(3.0).all()
    assert flat.vector.sum() == 2 * 6 + 3 * 17

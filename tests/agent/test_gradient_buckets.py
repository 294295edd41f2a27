"""Gradients averaged in buckets equal gradients averaged as a whole."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from five.agent.config import LearnerConfig
from five.agent.learning.gradient_buckets import GradientBuckets
from five.agent.learning.learner import Learner
from five.services.optimizer.process_group import average, start_average
from tests.agent.standins import HYPER, TinyPolicy
from tests.agent.test_learner import CONFIG, batch_of, parameters

NO_CLIP = CONFIG.model_copy(update={"gradient_clip": 0.0})


class Layers(nn.Module):
    """Five layers, one of them unused."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(5))

    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = x if i == 2 else torch.tanh(layer(x))
        return x.sum()


def flat_gradient(model: nn.Module) -> tuple[Tensor, list[tuple[nn.Parameter, int, int]]]:
    flat = torch.zeros(sum(p.numel() for p in model.parameters()))
    places, at = [], 0
    for p in model.parameters():
        p.grad = flat[at:at + p.numel()].view(p.shape)
        places.append((p, at, at + p.numel()))
        at += p.numel()
    return flat, places


def test_buckets_start_in_order_and_cover_everything() -> None:
    model = Layers()
    flat, places = flat_gradient(model)
    begun: list[tuple[int, int]] = []
    ended: list[int] = []
    in_backward: list[int] = []

    def begin(part: Tensor) -> Callable[[], None]:
        begun.append((part.storage_offset(), part.numel()))
        return lambda: ended.append(len(ended))

    buckets = GradientBuckets(flat, places, begin, 72 * 4)  # a layer's bytes
    assert len(buckets) == 5
    model(torch.ones(8)).backward()
    assert not begun  # not prepared, so this backward pass is not averaged
    flat.zero_()
    buckets.prepare_for_backward()
    model(torch.ones(8)).backward()
    in_backward.append(len(begun))
    assert begun == [(288, 72), (216, 72)]  # the third has no gradient, and later buckets wait for it
    assert not ended
    buckets.finish_all_reduce()
    assert begun == [(start, 72) for start in (288, 216, 144, 72, 0)] and len(ended) == 5
    buckets.prepare_for_backward()
    model(torch.ones(8)).backward()
    buckets.finish_all_reduce()
    assert len(begun) == 10


def test_bucket_size_bounds_the_number_of_buckets() -> None:
    flat, places = flat_gradient(Layers())
    assert len(GradientBuckets(flat, places, lambda part: lambda: None, 1)) == 10
    assert len(GradientBuckets(flat, places, lambda part: lambda: None, 1 << 30)) == 1


def test_bucket_ends_at_its_minimum_of_bytes() -> None:
    """Weights of 64 and biases of 8 elements; the last parameters come first."""
    flat, places = flat_gradient(Layers())

    def bounds(nbytes: int) -> list[tuple[int, int]]:
        return GradientBuckets(flat, places, lambda part: lambda: None, nbytes)._bounds

    layers = [(72 * i, 72 * (i + 1)) for i in reversed(range(5))]
    assert bounds(72 * 4) == bounds(8 * 4 + 1) == layers
    assert bounds(8 * 4)[:2] == [(352, 360), (288, 352)] and len(bounds(8 * 4)) == 10
    # One byte more than a layer: a bias of the layer before is added, and the last bucket takes what is left.
    assert bounds(72 * 4 + 1) == [(280, 360), (144, 280), (64, 144), (0, 64)]


def test_pass_without_preparation_is_averaged_as_a_whole() -> None:
    """A replayed backward pass calls no hooks, so its gradients are averaged as a whole."""
    model = Layers()
    flat, places = flat_gradient(model)
    begun: list[int] = []

    def begin(part: Tensor) -> Callable[[], None]:
        begun.append(part.numel())
        return lambda: None

    buckets = GradientBuckets(flat, places, begin, 72 * 4)
    buckets.finish_all_reduce()
    assert begun == [72] * 5
    buckets.prepare_for_backward()
    model(torch.ones(8)).backward()
    buckets.finish_all_reduce()
    buckets.finish_all_reduce()
    assert begun == [72] * 15


def _stepped(rank: int, bucketed: bool) -> Learner:
    learner = Learner(TinyPolicy(), NO_CLIP, all_reduce=average, start_all_reduce=start_average if bucketed else None,
                      bucket_bytes=256)
    for seed in range(2):
        learner.train_step(batch_of(TinyPolicy(), seed=10 * seed + rank), HYPER)
    return learner


def _rank(rank: int, store: str, pipe: Connection | None = None) -> tuple[list[Tensor], list[Tensor]]:
    """Return the gradient of the last step and the parameters, with and without buckets."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    try:
        learners = [_stepped(rank, bucketed) for bucketed in (False, True)]
        if pipe is not None:
            pipe.send([parameters(learner).tolist() for learner in learners])
        return [x._gradient.clone() for x in learners], [parameters(x) for x in learners]
    finally:
        dist.destroy_process_group()


def test_bucketed_gradient_is_bit_identical(tmp_path) -> None:  # type: ignore[no-untyped-def]
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    other = context.Process(target=_rank, args=(1, str(tmp_path / "store"), theirs), daemon=True)
    other.start()
    (whole, bucketed), (after_whole, after_bucketed) = _rank(0, str(tmp_path / "store"))
    assert ours.poll(60)
    found = ours.recv()
    other.join(20)
    assert whole.abs().max() > 0 and torch.equal(whole, bucketed)
    assert torch.equal(after_whole, after_bucketed)
    assert all(torch.equal(torch.tensor(values), after_whole) for values in found)
    alone = Learner(TinyPolicy(), NO_CLIP)
    alone.train_step(batch_of(TinyPolicy(), seed=0), HYPER)
    assert not torch.equal(parameters(alone), after_whole)


def test_bucketed_learner_reduces_only_small_tensors() -> None:
    sizes: list[int] = []
    begun: list[int] = []

    def begin(part: Tensor) -> Callable[[], None]:
        begun.append(part.numel())
        return lambda: None

    config = LearnerConfig(**{**CONFIG.model_dump(), "normalise_advantages": False})
    learner = Learner(TinyPolicy(), config, all_reduce=lambda tensors: sizes.extend(t.numel() for t in tensors),
                      start_all_reduce=begin, bucket_bytes=512)
    batch = batch_of(learner.policy)
    learner.count_step_flops(batch)
    assert not begun
    learner.train_step(batch, HYPER)
    assert sum(begun) == learner._gradient.numel() and len(begun) > 2
    assert sizes == [3 * 3 + 4]
    with pytest.raises(ValueError, match="mask"):
        learner.train_step({}, HYPER)

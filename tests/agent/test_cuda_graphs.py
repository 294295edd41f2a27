"""Captured and replayed steps equal eager steps.

On a CPU the same code runs without a graph, which tests everything but the capture itself.
"""

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from five.agent.config import LearnerConfig
from five.agent.learning.cuda_graphs import MAX_SHAPES, WARM_UP_RUNS, CaptureError, GraphedStep
from five.agent.learning.learner import Learner
from five.agent.model.policy import Policy
from five.agent.schedules import Hyperparameters
from tests.agent.model_cases import SMALL, layout
from tests.agent.test_learning_no_host_reads import RefusedFunctions, RefusedOperators, batch_of
from tests.agent.test_model_dense import Operators

pytestmark = pytest.mark.usefixtures("as_on_a_device")
# A large ε, so that gradients of rounding size do not count.
CONFIG = LearnerConfig(lstm_unroll_length=4, initial_hold_steps=2, gradient_clip_warmup_steps=3, adam_epsilon=1e-3)
RATES = (1e-3, 1e-3, 1e-3, 1e-3, 5e-4, 5e-4, 2e-3)
NOT_FINITE = 4  # step whose batch has a NaN


def hyper(step: int) -> Hyperparameters:
    return Hyperparameters(RATES[step], 0.01 if step < 5 else 0.05, 0.0, 180.0)


def learner_of(graphs: bool, *, precision: str = "float32", device: str = "cpu", dense: bool = True,
               config: LearnerConfig = CONFIG, **others: Any) -> Learner:
    torch.manual_seed(1)
    policy = Policy(layout(2), SMALL.model_copy(update={"precision": precision}))
    policy.dense = dense
    return Learner(policy, config, device, graphs=graphs, **others)


def batches() -> list[dict[str, Any]]:
    made = [batch_of(2, seed=seed) for seed in range(len(RATES))]
    made[NOT_FINITE]["returns"][0, 0] = np.nan
    return made


def learn(learner: Learner, steps: range = range(len(RATES)), made: list[dict[str, Any]] | None = None
          ) -> list[dict[str, float]]:
    metrics = []
    made = made or batches()
    for step in steps:
        learner.add_rewards(4, 1.0 + step, 2.0 + step)
        metrics.append(learner.train_step(made[step], hyper(step)))
    return [dict(one) for one in metrics]


def same(one: Learner, other: Learner, metrics: list[dict[str, float]], others: list[dict[str, float]],
         rtol: float = 0.0, atol: float = 1e-6) -> None:
    assert [m["skipped"] for m in metrics] == [m["skipped"] for m in others]
    assert [m["held"] for m in metrics] == [m["held"] for m in others]
    for mine, theirs in zip(metrics, others, strict=True):
        assert mine.keys() == theirs.keys()
        for name, value in mine.items():
            # Rounding decides whether an element at its bound is clipped.
            near = 1e-3 if rtol and name == "gradient_clipped_fraction" else max(atol, 1e-5)
            assert value == pytest.approx(theirs[name], rel=max(rtol, 1e-5), abs=near, nan_ok=True), name
    mine, theirs = one.state_dict(), other.state_dict()
    assert mine.keys() == theirs.keys()
    for name, tensor in mine.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=rtol, atol=atol, msg=lambda m, name=name: f"{name}: {m}")
    mine_too, theirs_too = one.extra(), other.extra()
    assert mine_too["pending_rewards"] == pytest.approx(theirs_too["pending_rewards"])
    for name in ("gradient_steps", "skipped_steps", "hold_steps", "clip_steps"):
        assert mine_too[name] == theirs_too[name]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_captured_step_equals_the_eager_step(precision: str) -> None:
    one, other = learner_of(True, precision=precision), learner_of(False, precision=precision)
    metrics, others = learn(one), learn(other)
    same(one, other, metrics, others)
    assert [m["skipped"] for m in metrics] == [float(i == NOT_FINITE) for i in range(len(RATES))]
    assert [m["held"] for m in metrics] == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert max(m["gradient_clipped_fraction"] for m in metrics) > 0
    assert one.skip_reason == "the loss is not finite: value"


def test_captured_step_equals_the_sparse_path() -> None:
    one, other = learner_of(True), learner_of(False, dense=False)
    metrics, others = learn(one), learn(other)
    same(one, other, metrics, others, rtol=1e-3, atol=1e-5)


def test_resumed_learner_captures_again() -> None:
    whole, first, second = (learner_of(True) for _ in range(3))
    metrics = learn(whole)
    before = learn(first, range(5))
    second.load_state_dict(first.state_dict(), first.extra())
    same(whole, second, metrics, before + learn(second, range(5, len(RATES))), atol=0.0)
    # Also a learner with other steps since, from a foreign state.
    first.load_state_dict(second.state_dict(), second.extra())
    same(first, second, [], [], atol=0.0)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_operations_do_not_depend_on_data(precision: str) -> None:
    """Held, warm-up, clipped and skipped steps run the same operations after the first, and read nothing back."""
    learner = learner_of(True, precision=precision)
    sequences = []
    for step, batch in enumerate(batches()):
        there = learner.transfer(batch)
        assert there.index is None
        learner.train_step(there, hyper(step)) if step == 0 else None
        with Operators() as operators, RefusedFunctions(), RefusedOperators():
            learner.train_step(there, hyper(step))
        sequences.append(operators.seen)
    assert len(sequences[0]) > 1000
    assert all(sequence == sequences[1] for sequence in sequences)


def test_inputs_keep_their_addresses() -> None:
    seen = []

    def work(tensors: dict[str, Tensor]) -> Tensor:
        seen.append({name: tensor.data_ptr() for name, tensor in tensors.items()})
        return tensors["x"].sum()

    graphs = GraphedStep(work, torch.device("cpu"))
    for size in (3, 4, 3):
        given = torch.arange(2 * size).view(size, 2).t()  # not contiguous
        assert int(graphs({"x": given})) == int(given.sum())
    assert seen[0] == seen[2] != seen[1]
    for size in range(5, 5 + MAX_SHAPES):
        graphs({"x": torch.zeros(size, 2)})
    assert len(graphs._shapes) == MAX_SHAPES


def half_of(gradients: list[Tensor] | None) -> dict[str, Any]:
    """Average in place with an identical optimizer, x -> (x + x) / 2, and record what is averaged."""
    def average(tensors: list[Tensor]) -> None:
        for tensor in tensors:
            tensor.copy_((tensor + tensor) / 2)

    def begin(tensor: Tensor) -> Callable[[], None]:
        assert gradients is not None
        gradients.append(tensor.detach().clone())
        average([tensor])
        return lambda: None

    return {"all_reduce": average} | (
        {} if gradients is None else {"start_all_reduce": begin, "bucket_bytes": 2000})


@pytest.mark.parametrize("bucketed", [False, True])
def test_gradient_is_averaged_after_the_graph(bucketed: bool) -> None:
    gone: list[Tensor] = []
    gone_eagerly: list[Tensor] = []
    one = learner_of(True, **half_of(gone if bucketed else None))
    other = learner_of(False, **half_of(gone_eagerly if bucketed else None))
    alone = learner_of(False)
    metrics, others, expected = learn(one), learn(other), learn(alone)
    same(one, other, metrics, others)
    same(one, alone, metrics, expected)
    if bucketed:
        assert len(gone) > 2 * len(RATES)
        torch.testing.assert_close(gone, gone_eagerly, equal_nan=True)


def test_out_of_memory_falls_back_to_the_sparse_path(
        monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    one, other = learner_of(True), learner_of(False, dense=False)
    policy: Any = one.policy
    unroll = policy.unroll

    def no_room(*args: Any) -> Any:
        if policy.dense:
            raise torch.OutOfMemoryError("tried to allocate 80 GiB")
        return unroll(*args)

    monkeypatch.setattr(policy, "unroll", no_room)
    with caplog.at_level(logging.WARNING):
        metrics = learn(one)
    same(one, other, metrics, learn(other))
    warnings = [r.getMessage() for r in caplog.records if "CUDA graph" in r.getMessage()]
    assert len(warnings) == 1 and "80 GiB" in warnings[0] and "services.optimizer.cuda_graphs" in warnings[0]
    assert not policy.dense and one.transfer(batch_of(2)).index is not None


def test_failed_warm_up_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernels still run when the step is repeated in the current stream."""
    events: list[str] = []

    class Stream:
        def __init__(self, name: str) -> None:
            self.name = name

        def wait_stream(self, other: "Stream") -> None:
            events.append(f"{self.name} waits for {other.name}")

    def work(tensors: dict[str, Tensor]) -> None:
        events.append("work")
        raise CaptureError("it does not fit into memory")

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream("current"))
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    step = GraphedStep(work, torch.device("cpu"))
    step._stream = Stream("capture")  # type: ignore[assignment]
    with pytest.raises(CaptureError):
        step({"x": torch.ones(1)})
    assert events == ["capture waits for current", "work", "current waits for capture"]


def test_unfused_adam_disables_graphs() -> None:
    assert not learner_of(True, dense=False, config=CONFIG.model_copy(update={"fused_adam": False})).policy.dense
    everywhere = CONFIG.model_copy(update={"advantage_scope": "all"})
    assert not learner_of(True, dense=False, config=everywhere, **half_of(None)).policy.dense
    assert learner_of(True, dense=False, config=everywhere).policy.dense


def test_flops_count_present_rows_only() -> None:
    graphed, packed = learner_of(True), learner_of(False, dense=False)
    assert graphed.count_step_flops(batch_of(2)) == packed.count_step_flops(batch_of(2)) > 0
    assert graphed.policy.dense


# ------------------------------------------------------------------------------------------------ with a GPU

PRECISIONS = pytest.mark.parametrize("precision", ["float32", "bfloat16"])
NEAR = {"rtol": 2e-3, "atol": 2e-5}  # the order of atomic additions is undefined


def graph_of(learner: Learner) -> torch.cuda.CUDAGraph | None:
    graphs: Any = learner._step_graph or learner._gradient_graph
    return next(iter(graphs._shapes.values())).graph if graphs is not None and graphs._shapes else None


@pytest.mark.gpu
@PRECISIONS
def test_gpu_replay_equals_the_eager_step(precision: str) -> None:
    one = learner_of(True, precision=precision, device="cuda")
    other = learner_of(False, precision=precision, device="cuda")
    # This backward pass is in another stream, as at the start of a run.
    assert one.count_step_flops(batch_of(2)) == other.count_step_flops(batch_of(2))
    metrics, others = learn(one), learn(other)
    assert graph_of(one) is not None and len(RATES) > WARM_UP_RUNS + 2
    same(one, other, metrics, others, **(NEAR if precision == "float32" else {"rtol": 0.02, "atol": 2e-3}))
    assert one.skip_reason == "the loss is not finite: value"


@pytest.mark.gpu
def test_gpu_resume_captures_again() -> None:
    whole, first = learner_of(True, device="cuda"), learner_of(True, device="cuda")
    metrics = learn(whole)
    before = learn(first, range(5))
    # Its own state, as in a revert; Adam's moments get new addresses.
    first.load_state_dict(first.state_dict(), first.extra())
    assert graph_of(first) is None
    made = [*batches(), batch_of(2, seed=7), batch_of(2, seed=8)]
    same(whole, first, metrics, before + learn(first, range(5, len(RATES))), **NEAR)
    for seed in range(WARM_UP_RUNS + 2):
        one, two = (learner.train_step(made[5 + seed % 2], hyper(5)) for learner in (whole, first))
    assert graph_of(first) is not None and one["loss"] == pytest.approx(two["loss"], rel=1e-3)


@pytest.mark.gpu
@PRECISIONS
def test_replay_reads_the_last_batch_without_waiting(precision: str) -> None:
    """Batches go through the copy stream into reused slots, while the device is steps behind."""
    one = learner_of(True, precision=precision, device="cuda")
    other = learner_of(False, precision=precision, device="cuda")
    made = [batch_of(2, seed=seed) for seed in range(12)]
    pinned = []
    for batch in made:
        pinned.append({name: one.allocate(array.shape, array.dtype) for name, array in batch.items()})
        for name, array in batch.items():
            pinned[-1][name][...] = array
    steps = [one.train_step(arrays, hyper(3)) for arrays in pinned[:WARM_UP_RUNS + 1]]
    assert graph_of(one) is not None
    try:
        for arrays in pinned[WARM_UP_RUNS + 1:]:
            one.wait_for_transfers()
            there = one.transfer(arrays)
            torch.cuda.set_sync_debug_mode("error")
            steps.append(one.train_step(there, hyper(3)))
            torch.cuda.set_sync_debug_mode("default")
    finally:
        torch.cuda.set_sync_debug_mode("default")
    tolerance = 1e-3 if precision == "float32" else 0.05
    for metrics, arrays in zip(steps, made, strict=True):
        expected = other.train_step(arrays, hyper(3))["loss"]
        assert metrics["loss"] == pytest.approx(expected, rel=tolerance, abs=tolerance)
        assert metrics.seconds > 0


@pytest.mark.gpu
def test_each_batch_shape_has_its_own_graph() -> None:
    one, other = learner_of(True, device="cuda"), learner_of(False, device="cuda")
    for seed in range(2 * (WARM_UP_RUNS + 2)):
        batch = batch_of(2, teams=3 + seed % 2, seed=seed)
        expected = other.train_step(batch, hyper(3))["loss"]
        assert one.train_step(batch, hyper(3))["loss"] == pytest.approx(expected, rel=1e-3)
    graphs: Any = one._step_graph
    assert [shape.graph is not None for shape in graphs._shapes.values()] == [True, True]


@pytest.mark.gpu
@pytest.mark.parametrize("bucketed", [False, True])
def test_gpu_gradient_graph_with_other_optimizers(bucketed: bool) -> None:
    one = learner_of(True, device="cuda", **half_of([] if bucketed else None))
    other = learner_of(False, device="cuda")
    metrics, others = learn(one), learn(other)
    assert graph_of(one) is not None
    same(one, other, metrics, others, **NEAR)


@pytest.mark.gpu
def test_capture_failure_falls_back_and_logs_once(
        monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A policy that reads from the device works in eager steps and cannot be captured."""
    one, other = learner_of(True, device="cuda"), learner_of(False, dense=False, device="cuda")
    policy: Any = one.policy
    unroll = policy.unroll

    def looks(*args: Any) -> Any:
        out = unroll(*args)
        out.logp.sum().item()
        return out

    monkeypatch.setattr(policy, "unroll", looks)
    present = torch.cuda.current_stream()
    with caplog.at_level(logging.WARNING):
        metrics = learn(one)
    assert torch.cuda.current_stream() == present
    same(one, other, metrics, learn(other), **NEAR)
    assert [r.getMessage() for r in caplog.records].count(
        next(r.getMessage() for r in caplog.records if "CUDA graph" in r.getMessage())) == 1
    assert not policy.dense

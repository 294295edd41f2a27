"""A gradient step launches device work and reads nothing back."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from five.agent.config import LearnerConfig
from five.agent.learning.learner import Learner
from five.agent.learning.samples import learning_specs
from five.agent.model.policy import Policy
from five.agent.model.recurrent_state import state_specs
from five.agent.schedules import Hyperparameters
from tests.agent.model_cases import SMALL, layout, random_obs

pytestmark = pytest.mark.usefixtures("as_on_a_device")
HYPER = Hyperparameters(1e-3, 0.01, 0.0, 180.0)
CONFIG = LearnerConfig(lstm_unroll_length=4, initial_hold_steps=0, gradient_clip_warmup_steps=2)
READS = {"item", "tolist", "cpu", "numpy", "nonzero", "__bool__", "__float__", "__int__", "__index__", "is_nonzero",
         "masked_select", "unique", "argwhere"}
SIZES_FROM_DATA = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "equal", "is_nonzero"}


class HostReads(RuntimeError):
    pass


class RefusedFunctions(TorchFunctionMode):
    """Raise on Tensor methods that wait for a GPU (``tolist`` calls no operator)."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in READS:
            raise HostReads(f"{func.__name__} within a step")
        return func(*args, **(kwargs or {}))


class RefusedOperators(TorchDispatchMode):
    """Raise on operators that wait for a GPU, in backward and optimizer as well."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        masks = name.startswith("index") and any(
            isinstance(i, torch.Tensor) and i.dtype == torch.bool
            for given in args[1:2] if isinstance(given, (list, tuple)) for i in given)
        if name in SIZES_FROM_DATA or masks:
            raise HostReads(f"{name} within a step")
        return func(*args, **(kwargs or {}))


def batch_of(heroes: int, steps: int = 4, teams: int = 3, seed: int = 0) -> dict[str, Any]:
    """Return a batch [T, B, ...] with resets in mid-sample and available actions."""
    rng = np.random.default_rng(seed)
    lay = layout(heroes)
    obs = {name: array.numpy() for name, array in random_obs(lay, steps, teams, seed=seed).items()}
    batch: dict[str, Any] = dict(obs)
    for name, (shape, dtype) in learning_specs(heroes, lay.groups["enemy_buildings"].count).items():
        batch[name] = rng.random((steps, teams, *shape)).astype(dtype)
    batch["mask"][:] = 1.0
    batch["versions"][:] = 0
    batch["resets"] = np.zeros((steps, teams), np.bool_)
    batch["resets"][2, 1] = True
    some = (obs["available"] != 0).sum(-1)
    batch["actions"] = rng.integers(0, 4, batch["actions"].shape).astype(np.int16)
    batch["actions"][..., 0] = rng.integers(0, 1 << 15, some.shape) % np.maximum(some, 1)
    for name, (shape, dtype) in state_specs(lay, SMALL).items():
        batch[f"state/{name}"] = rng.normal(size=(teams, *shape)).astype(dtype)
    return batch


def learner_of(precision: str = "float32", heroes: int = 2, device: str = "cpu") -> Learner:
    torch.manual_seed(1)
    return Learner(Policy(layout(heroes), SMALL.model_copy(update={"precision": precision})), CONFIG, device)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_step_reads_nothing_from_the_device(precision: str) -> None:
    learner = learner_of(precision)
    steps = []
    for seed in range(4):  # past the clip's warm-up
        learner.add_rewards(4, 1.0, 2.0)
        batch = learner.transfer(batch_of(2, seed=seed))
        with RefusedFunctions(), RefusedOperators():
            steps.append(learner.train_step(batch, HYPER))
    assert all(np.isfinite(list(metrics.values())).all() and not metrics["skipped"] for metrics in steps)
    with RefusedFunctions(), RefusedOperators(), pytest.raises(HostReads, match="tolist"):
        _ = learner.train_step(batch, HYPER)["loss"]  # the access waits


def test_skipped_step_reads_nothing_from_the_device() -> None:
    learner, bad = learner_of(), batch_of(2)
    bad["returns"][0, 0] = np.nan
    learner.train_step(batch_of(2), HYPER)
    before = learner.state_dict()
    batch = learner.transfer(bad)
    with RefusedFunctions(), RefusedOperators():
        metrics = learner.train_step(batch, HYPER)
    assert metrics["skipped"] == 1 and learner.skip_reason == "the loss is not finite: value"
    assert all(torch.equal(before[name], tensor) for name, tensor in learner.state_dict().items())


def test_host_reads_are_detected() -> None:
    """Without the host's indices the step searches on its device, which is a host read."""
    learner = learner_of()
    batch = learner.transfer(batch_of(2))
    policy = learner.policy
    with pytest.raises(HostReads), RefusedOperators():
        policy.unroll({n: t for n, t in batch.tensors.items() if n in layout(2).array_specs()},
                      batch.tensors["actions"],
                      {n[6:]: t for n, t in batch.tensors.items() if n.startswith("state/")}, batch.tensors["resets"])


@pytest.mark.parametrize("heroes", [1, 2])
def test_host_indices_equal_the_networks(heroes: int) -> None:
    torch.manual_seed(2)
    policy = Policy(layout(heroes), SMALL)
    batch = {n: torch.from_numpy(a) for n, a in batch_of(heroes).items()}
    obs = {n: batch[n] for n in layout(heroes).array_specs()}
    state = {n[6:]: t for n, t in batch.items() if n.startswith("state/")}
    found = policy.index_batch(obs, batch["actions"], batch["resets"])
    assert len(found.targets.step) and found.starts == [0, 2]
    one = policy.unroll(obs, batch["actions"], state, batch["resets"])
    other = policy.unroll(obs, batch["actions"], state, batch["resets"], found)
    for a, b in ((one.logp, other.logp), (one.values, other.values), (one.entropy, other.entropy),
                 (one.observation_moments, other.observation_moments)):
        assert torch.equal(a, b)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_gpu_step_passes_cuda_sync_debug_mode(precision: str) -> None:
    """The host runs ahead, and batches go through the copy stream into reused slots."""
    learner, cpu = learner_of(precision, device="cuda"), learner_of(precision)
    pinned = []
    for seed in range(6):
        batch = batch_of(2, seed=seed)
        pinned.append({name: learner.allocate(array.shape, array.dtype) for name, array in batch.items()})
        for name, array in batch.items():
            pinned[-1][name][...] = array
    learner.train_step(pinned[0], HYPER)["loss"]  # allocates one-time state
    cpu.train_step(pinned[0], HYPER)
    steps = []
    try:
        for arrays in pinned[1:]:
            learner.wait_for_transfers()
            batch_there = learner.transfer(arrays)
            torch.cuda.set_sync_debug_mode("error")
            steps.append(learner.train_step(batch_there, HYPER))
            torch.cuda.set_sync_debug_mode("default")
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for arrays, metrics in zip(pinned[1:], steps, strict=True):
        assert cpu.train_step(arrays, HYPER)["loss"] == pytest.approx(metrics["loss"], rel=0.05, abs=0.01)
        assert metrics.seconds > 0

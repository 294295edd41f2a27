"""Padded batches and static memory: results equal those of the policy for the batch alone."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from five.agent.compute import apply_compute_config
from five.agent.config import ComputeConfig, ModelConfig
from five.agent.model.policy import Policy
from five.agent.model.recurrent_state import state_specs
from five.services.inference.forward import flatten_outputs
from five.services.inference.graphs import MAX_ROWS, Graphs, bucket_of, buckets_of
from five.services.inference.loading import PolicyLoader
from five.services.inference.models import ResidentVersion
from five.services.inference.staging import Stager
from tests.agent.model_cases import SMALL, layout, random_arrays

LAYOUT = layout(5)
CUDA = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
DEVICES = [torch.device("cpu"), pytest.param(torch.device("cuda"), marks=CUDA)]
PRECISIONS = ["float32", "bfloat16"]

apply_compute_config(ComputeConfig())


class GraphBench:
    """Graphs of batches up to ``most``, and versions to load into them."""

    def __init__(self, device: torch.device, most: int, precision: str = "float32") -> None:
        self.device = device
        self.config: ModelConfig = SMALL.model_copy(update={"precision": precision})
        self.loader = PolicyLoader(LAYOUT, self.config, device)
        specs = state_specs(LAYOUT, self.config)
        self.graphs = Graphs(self.loader.create_dense(), LAYOUT.array_specs(), specs, most, device, seed=3)
        self.stager = Stager(device)
        self.rng = np.random.default_rng(0)
        if device.type == "cuda":
            torch.cuda.set_stream(torch.cuda.Stream(device))

    def version(self, number: int, past: bool = False) -> ResidentVersion:
        """Return a version with distinct parameters."""
        torch.manual_seed(number)
        tensors = {name: tensor.numpy() for name, tensor in Policy(LAYOUT, self.config).state_dict().items()}
        policy = self.loader.create(past)
        self.loader.load(policy, tensors, {})
        return ResidentVersion(number, "", policy, 1.0)

    def batch(self, rows: int, seed: int = 0) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """Return (team-steps, states)."""
        batch = self.stager.join([self.stager.stage(random_arrays(LAYOUT, rows, seed=seed))])
        states = {name: torch.from_numpy(self.rng.normal(size=(rows, *shape)).astype(np.float32)).to(self.device)
                  for name, (shape, _) in state_specs(LAYOUT, self.config).items()}
        return batch, states

    def run(self, batch: dict[str, torch.Tensor], states: dict[str, torch.Tensor], rows: torch.Tensor | None = None
            ) -> dict[str, torch.Tensor]:
        count = len(states["h"])
        for name, state in self.graphs.fill(batch, rows, count).items():
            state.copy_(states[name])
        return {name: out.clone() for name, out in self.graphs.run(count).items()}

    def eager(self, served: ResidentVersion, batch: dict[str, torch.Tensor], states: dict[str, torch.Tensor],
              padded: int,
              seed: int, **more: Any) -> dict[str, torch.Tensor]:
        """Return the policy's results for the batch padded with zeros to ``padded`` rows, without graphs; only the
        batch's rows."""
        policy: Any = served.policy
        policy.dense = True
        count = len(states["h"])
        seen = {name: pad(array, padded).view(torch.from_numpy(np.empty(0, LAYOUT.array_specs()[name][1])).dtype)
                for name, array in batch.items()}
        acted = policy.act(seen, {name: pad(state, padded) for name, state in states.items()},
                           generator=torch.Generator(self.device).manual_seed(seed), **more)
        return {name: out[:count] for name, out in flatten_outputs(acted).items()}


def pad(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    return torch.cat((tensor, tensor.new_zeros((rows - len(tensor), *tensor.shape[1:]))))


def require_close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], precision: str) -> None:
    tolerance = 1e-4 if precision == "float32" else 0.05
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        if name == "actions":
            assert torch.equal(tensor, other[name])
        else:
            torch.testing.assert_close(tensor.float(), other[name].float(), atol=tolerance, rtol=tolerance, msg=name)


def test_batch_sizes_with_a_graph() -> None:
    assert buckets_of(512) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert buckets_of(60) == [1, 2, 4, 8, 16, 32, 60]
    assert buckets_of(1) == [1]
    assert buckets_of(65536)[-1] == MAX_ROWS
    assert [bucket_of(rows, buckets_of(60)) for rows in (1, 3, 33, 60, 61)] == [1, 4, 60, 60, None]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_padded_batch_equals_the_policy(device: torch.device, precision: str) -> None:
    """With the same noise, for full and partial batches in sequence."""
    world = GraphBench(device, 60, precision)
    world.graphs.capture()
    served = world.version(1)
    world.graphs.load(served)
    for step, rows in enumerate((60, 1, 3, 8, 60)):
        batch, states = world.batch(rows, seed=step)
        world.graphs.generator.manual_seed(step)
        padded = bucket_of(rows, world.graphs.buckets)
        assert padded is not None
        require_close(world.run(batch, states), world.eager(served, batch, states, padded, step), precision)


def test_largest_batch_is_captured_first_after_two_passes() -> None:
    """The smaller graphs fit into the memory of the largest. The watchdog hears of each."""
    world = GraphBench(torch.device("cpu"), 4)
    passes: list[int] = []
    act = world.graphs._policy.act

    def recorded(obs: dict[str, torch.Tensor], state: dict[str, torch.Tensor], **options: Any) -> Any:
        passes.append(len(state["h"]))
        return act(obs, state, **options)

    world.graphs._policy.act = recorded
    beats: list[int] = []
    world.graphs.capture(lambda: beats.append(len(passes)))
    assert passes == [4, 4, 2, 2, 1, 1] and beats == [2, 4, 6]
    assert {len(out) for out in world.graphs.outputs.values()} == {4}


def test_passes_record_no_gradients() -> None:
    world = GraphBench(torch.device("cpu"), 2)
    world.graphs._policy.requires_grad_(True)
    world.graphs.capture()
    out = world.run(*world.batch(2))
    assert not any(tensor.requires_grad for tensor in out.values())


@pytest.mark.parametrize("device", DEVICES)
def test_padding_does_not_change_results(device: torch.device) -> None:
    """Only sampling depends on other rows: states, values and predictions equal those without padding and with other
    rows."""
    world = GraphBench(device, 8)
    world.graphs.capture()
    served = world.version(1)
    world.graphs.load(served)
    batch, states = world.batch(5)
    alone = world.eager(served, batch, states, 5, 0)
    kept = [name for name in alone if name in ("values", "state/h", "state/c", "choice") or name.startswith("aux/")]
    full, full_states = world.batch(8, seed=9)
    world.run(full, full_states)  # leaves its rows behind where the padding is
    got = world.run(batch, states)
    require_close({name: got[name] for name in kept}, {name: alone[name] for name in kept}, "float32")
    for name in batch:
        full[name][:5] = batch[name]
    for name in states:
        full_states[name][:5] = states[name]
    beside = world.run(full, full_states)
    require_close({name: got[name] for name in kept}, {name: beside[name][:5] for name in kept}, "float32")


@pytest.mark.parametrize("device", DEVICES)
def test_some_rows_of_a_batch(device: torch.device) -> None:
    world = GraphBench(device, 8)
    world.graphs.capture()
    served = world.version(1)
    world.graphs.load(served)
    batch, states = world.batch(7)
    rows = torch.tensor([5, 0, 3], device=device)
    taken = {name: array[rows] for name, array in batch.items()}
    of_states = {name: state[rows] for name, state in states.items()}
    world.graphs.generator.manual_seed(5)
    require_close(world.run(batch, of_states, rows), world.eager(served, taken, of_states, 4, 5), "float32")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_each_version_uses_its_own_parameters(device: torch.device, precision: str) -> None:
    """In turn, including past versions, and after other parameters were loaded into a used policy."""
    world = GraphBench(device, 4, precision)
    world.graphs.capture()
    first, past = world.version(1), world.version(2, past=True)
    batch, states = world.batch(3)
    for served in (first, past, first):
        world.graphs.load(served)
        world.graphs.generator.manual_seed(1)
        require_close(world.run(batch, states), world.eager(served, batch, states, 4, 1), precision)
    before = world.run(batch, states)["values"]
    world.loader.load(first.policy, {name: tensor.cpu().float().numpy() * (0.5 if tensor.is_floating_point() else 1)
                                     if tensor.dtype != torch.float64 else tensor.cpu().numpy()
                                     for name, tensor in first.policy.state_dict().items()}, {})  # type: ignore[attr-defined]
    again = ResidentVersion(3, "", first.policy, 1.0)
    world.graphs.load(again)
    world.graphs.generator.manual_seed(1)
    after = world.run(batch, states)
    require_close(after, world.eager(again, batch, states, 4, 1), precision)
    assert not torch.allclose(after["values"], before)


@pytest.mark.parametrize("device", DEVICES)
def test_samples_follow_probabilities_and_differ_between_steps(device: torch.device) -> None:
    world = GraphBench(device, 64)
    world.graphs.capture()
    world.graphs.load(world.version(1))
    one, state = world.batch(1)
    rows = torch.zeros(64, dtype=torch.int64, device=device)
    states = {name: tensor[rows] for name, tensor in state.items()}
    counts = np.zeros((LAYOUT.heroes, 30))
    seen = set()
    for _ in range(32):  # two thousand and forty-eight draws
        out = world.run(one, states, rows)
        drawn = out["actions"][..., 0].cpu().numpy()
        seen.add(drawn.tobytes())
        for hero in range(LAYOUT.heroes):
            counts[hero] += np.bincount(drawn[:, hero], minlength=30)
    assert len(seen) == 32
    probabilities = out["choice"][0].exp().cpu().numpy()
    draws = counts.sum(-1, keepdims=True)
    error = np.sqrt(probabilities * (1 - probabilities) / draws) + 1e-9
    assert draws[0, 0] == 2048
    assert (np.abs(counts / draws - probabilities) < 5 * error).all()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_capture_does_not_disturb_other_threads() -> None:
    """Versions are loaded and policies created while graphs are captured."""
    world = GraphBench(torch.device("cuda"), 64)
    stop = threading.Event()
    errors: list[BaseException] = []

    def meanwhile(work: Callable[[], object]) -> None:
        try:
            while not stop.is_set():
                work()
        except BaseException as error:
            errors.append(error)

    stager, arrays = Stager(torch.device("cuda")), random_arrays(LAYOUT, 3)
    tensors = {name: tensor.numpy() for name, tensor in Policy(LAYOUT, world.config).state_dict().items()}
    threads = [threading.Thread(target=meanwhile, args=(work,)) for work in (
        lambda: world.loader.load(world.loader.create(), tensors, {}), lambda: stager.stage(arrays))]
    for thread in threads:
        thread.start()
    try:
        world.graphs.capture()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
    served = world.version(1)
    world.graphs.load(served)
    batch, states = world.batch(3)
    world.graphs.generator.manual_seed(1)
    require_close(world.run(batch, states), world.eager(served, batch, states, 4, 1), "float32")

"""Transfer of observations to the device is lossless for every encoding."""

import numpy as np
import pytest
import torch

from five.clients import wire
from five.services.inference.staging import SparseArray, Stager, unpack_parts
from rapid.packed_array import PackedArray
from tests.agent.model_cases import layout, random_arrays

DEVICES = [torch.device("cpu"), pytest.param(torch.device("cuda"), marks=[
    pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")])]


def request(rows: int, seed: int, *packed: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray | PackedArray]]:
    """Return (team-steps, the same with the named arrays sparsely encoded), read-only like a message's arrays."""
    arrays = random_arrays(layout(5), rows, seed=seed)
    for name in ("shared", "private"):
        arrays[name][np.random.default_rng(seed).random(arrays[name].shape) < 0.7] = 0
    for array in arrays.values():
        array.flags.writeable = False
    return arrays, {name: wire.pack(array) if name in packed else array for name, array in arrays.items()}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shapes", [[(1, 7)], [(3, 2, 5), (1, 2, 5), (8, 2, 5)], [(2, 16), (5, 16)]])
def test_packed_arrays_are_unpacked_on_the_device(shapes: list[tuple[int, ...]], device: torch.device) -> None:
    """Also where rows begin in the middle of a byte, and where all or nothing is there."""
    rng = np.random.default_rng(0)
    for present in (0.0, 0.3, 1.0):
        arrays = [(rng.normal(size=shape) * (rng.random(shape) < present)).astype(np.float16) for shape in shapes]
        parts = []
        for array in arrays:
            data = np.frombuffer(wire.pack(array).data, np.uint8).copy()
            border = -(-array.size // 8)
            parts.append(SparseArray(torch.from_numpy(data[:border]).to(device),
                                     torch.from_numpy(data[border:]).to(device).view(torch.float16), array.shape))
        assert np.array_equal(unpack_parts(parts, device).cpu().numpy(), np.concatenate(arrays))


@pytest.mark.parametrize("device", DEVICES)
def test_requests_are_joined_bit_for_bit(device: torch.device) -> None:
    sent = [request(3, 1, "shared", "private"), request(1, 2, "shared"), request(4, 3)]
    stager = Stager(device)
    joined = stager.join([stager.stage(observations) for _, observations in sent])
    for name, first in sent[0][0].items():
        whole = np.concatenate([arrays[name] for arrays, _ in sent])
        got = joined[name].cpu().numpy()
        assert got.shape == whole.shape and np.array_equal(got.view(first.dtype), whole), name


@pytest.mark.parametrize("device", DEVICES)
def test_a_request_by_itself(device: torch.device) -> None:
    arrays, observations = request(2, 4, "shared", "private")
    stager = Stager(device)
    joined = stager.join([stager.stage(observations)])
    assert all(np.array_equal(joined[name].cpu().numpy().view(array.dtype), array) for name, array in arrays.items())

"""Weights: rounded to bfloat16 but for the statistics, and refused unless they are the agent's."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from five.agent.surgery import AgentSpec
from five.packed_agents.errors import AgentUnavailable
from five.packed_agents.folder import PackedAgent
from five.packed_agents.weights import read_weights, write_weights
from rapid import tensorfile
from rapid.bfloat16 import from_bfloat16, to_bfloat16
from tests.packed_agents.tiny_agent import random_tensors

Tensors = dict[str, np.ndarray]
PARAMETER, STATISTIC = "value.weight", "normaliser.mean"


@pytest.fixture
def spec(shared_agent: PackedAgent) -> AgentSpec:
    return shared_agent.spec


def test_parameters_are_rounded_and_statistics_are_not(spec: AgentSpec, tmp_path: Path) -> None:
    tensors = random_tensors(spec)
    found = read_weights(tmp_path / "w", spec, write_weights(tmp_path / "w", tensors))
    assert found.keys() == tensors.keys()
    assert found[STATISTIC].dtype == np.float64 and found[PARAMETER].dtype == np.float32
    for name, array in tensors.items():
        rounded = from_bfloat16(to_bfloat16(array)) if array.dtype == np.float32 else array
        np.testing.assert_array_equal(found[name], rounded, err_msg=name)
    np.testing.assert_array_equal(found[STATISTIC], tensors[STATISTIC])
    assert 0 < np.abs(found[PARAMETER] - tensors[PARAMETER]).max() <= 0.3 / 256
    parameters = sum(array.size for array in tensors.values() if array.dtype == np.float32)
    statistics = sum(array.nbytes for array in tensors.values() if array.dtype == np.float64)
    assert (tmp_path / "w").stat().st_size < 2 * parameters + statistics + 100 * len(tensors)


def without(tensors: Tensors) -> Tensors:
    return {name: array for name, array in tensors.items() if name != PARAMETER}


def another(tensors: Tensors) -> Tensors:
    return tensors | {"extra": np.zeros(3, np.float32)}


def reshaped(tensors: Tensors) -> Tensors:
    return tensors | {PARAMETER: tensors[PARAMETER][:, :-1]}


def retyped(tensors: Tensors) -> Tensors:
    return tensors | {STATISTIC: tensors[STATISTIC].astype(np.float32)}


def infinite(tensors: Tensors) -> Tensors:
    return tensors | {PARAMETER: np.full_like(tensors[PARAMETER], np.inf)}


@pytest.mark.parametrize(("change", "problem"), [
    (without, f"tensor '{PARAMETER}' is missing"), (another, "tensor 'extra' is unknown"),
    (reshaped, rf"tensor '{PARAMETER}' is BF16 \[1, 15\], the agent's configuration needs BF16 \[1, 16\]"),
    (retyped, rf"tensor '{STATISTIC}' is BF16 .* needs F64"), (infinite, f"tensor '{PARAMETER}' has values")])
def test_other_tensors_are_refused_by_name(spec: AgentSpec, tmp_path: Path, change: Callable[[Tensors], Tensors],
                                           problem: str) -> None:
    path = tmp_path / "weights.safetensors"
    sha256 = write_weights(path, change(random_tensors(spec)))
    with pytest.raises(AgentUnavailable, match=f"^{path}: .*{problem}"):
        read_weights(path, spec, sha256)


def test_parameters_must_be_bfloat16(spec: AgentSpec, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(b"".join(tensorfile.file_pieces(random_tensors(spec), {})))
    with pytest.raises(AgentUnavailable, match=r"is F32 .* needs BF16 .*; and \d+ more"):
        read_weights(path, spec, "0" * 64)


def test_a_changed_byte_is_noticed(agent: PackedAgent) -> None:
    path = agent.path / "weights.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(AgentUnavailable, match=rf"{path}: its SHA-256 is .* the card has {agent.card.weights_sha256}"):
        agent.tensors()


@pytest.mark.parametrize("damage", [lambda data: data[:-2], lambda data: data + b"x", lambda data: data[:4],
                                    lambda data: b"\xff" * 8 + data[8:], lambda data: b""])
def test_a_file_of_another_size_is_refused(agent: PackedAgent, damage: Callable[[bytes], bytes]) -> None:
    path = agent.path / "weights.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(AgentUnavailable, match=f"^{path}: "):
        agent.tensors()
    path.unlink()
    with pytest.raises(AgentUnavailable, match=f"^{path}: No such file"):
        agent.tensors()

import pytest
import torch

from five.agent.learning.checkpoint import checkpoint_bytes, checksum, require_checkpoint, require_shapes
from five.agent.learning.learner import Learner
from tests.agent.standins import HYPER, TinyPolicy
from tests.agent.test_learner import CONFIG, batch_of

SHAPES = {"a": torch.Size([2, 3]), "b": torch.Size([])}


def test_mismatched_tensors_are_named() -> None:
    fits = {"a": torch.zeros(2, 3), "b": torch.zeros(())}
    require_shapes(fits, SHAPES)
    with pytest.raises(ValueError, match=r"missing \['a'\], unknown \['c'\]"):
        require_shapes({"b": fits["b"], "c": fits["a"]}, SHAPES)
    with pytest.raises(ValueError, match=r"a has shape \(3, 2\), expected \(2, 3\)"):
        require_shapes(fits | {"a": torch.zeros(3, 2)}, SHAPES)


POLICY = {"w": torch.zeros(2, 3), "count": torch.zeros((), dtype=torch.float64)}
PARAMETERS = {"w": POLICY["w"]}


def checkpoint(adam: bool = True) -> dict[str, torch.Tensor]:
    """Return tensors of the names that `Learner.state_dict` writes."""
    moments = {f"adam/{kind}/w": torch.zeros(2, 3) for kind in ("m", "v")} | {"adam/step/w": torch.zeros(())}
    return {"policy/w": torch.zeros(2, 3), "policy/count": torch.zeros(()), "clip/v/w": torch.zeros(2, 3),
            **(moments if adam else {})}


@pytest.mark.parametrize("adam", [True, False])
def test_checkpoint_of_the_same_policy_is_accepted(adam: bool) -> None:
    require_checkpoint(checkpoint(adam), POLICY, PARAMETERS)


@pytest.mark.parametrize("name", checkpoint())
def test_checkpoint_without_a_tensor_is_rejected(name: str) -> None:
    state = checkpoint()
    state["other"] = state.pop(name)
    with pytest.raises(ValueError, match=f"missing \\['{name}'\\], unknown \\['other'\\]"):
        require_checkpoint(state, POLICY, PARAMETERS)


@pytest.mark.parametrize("name", checkpoint())
def test_checkpoint_of_other_shapes_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} has shape \\(4,\\)"):
        require_checkpoint(checkpoint() | {name: torch.zeros(4)}, POLICY, PARAMETERS)


def test_size_is_that_of_a_checkpoint_with_moments() -> None:
    learner = Learner(TinyPolicy(), CONFIG)
    size = checkpoint_bytes(learner.policy.state_dict(), dict(learner.policy.named_parameters()))
    learner.train_step(batch_of(learner.policy), HYPER)
    assert size == sum(tensor.nbytes for tensor in learner.state_dict().values())


def test_at_most_five_tensors_are_named() -> None:
    expected = {f"t{i}": torch.Size() for i in range(7)}
    state = {f"u{i}": torch.zeros(()) for i in range(7)}
    with pytest.raises(ValueError, match=r"missing \['t0', .*, 't4'\], unknown \['u0', .*, 'u4'\]$"):
        require_shapes(state, expected)


def test_checksum_by_hand() -> None:
    """The checksum adds 32-bit words, or bytes where the size is not a multiple of four, modulo 2 to the 48."""
    assert checksum([torch.tensor([1, 2], dtype=torch.int32), torch.tensor([[3]], dtype=torch.int32)]) == 6
    assert checksum([torch.tensor([True, False, True])]) == 2
    assert checksum([torch.tensor([1 << 32 | 5], dtype=torch.int64)]) == 6
    assert checksum([torch.tensor([-1], dtype=torch.int32)]) == (1 << 48) - 1
    assert checksum([torch.ones(3, 2, dtype=torch.int32).t()]) == 6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool])
def test_fingerprint_detects_one_bit(dtype: torch.dtype) -> None:
    one, other = torch.ones(5, 4).to(dtype), torch.ones(5, 4).to(dtype)
    assert checksum([one, one[:2]]) == checksum([other, other[:2].clone()])
    other[3, 1] = 0
    assert checksum([one]) != checksum([other])
    assert 0 <= checksum([one]) < 1 << 48

"""Masked categorical distributions and the action table."""

from typing import Any

import pytest
import torch

from dota.spaces import ActionPart, MaskClass, TargetType, action_parts_used
from five.agent.model.distribution import ActionTable, entropy, masked_log_softmax, sample
from five.agent.model.head_names import OFFSET_PAIRS
from tests.agent.model_cases import SMALL, layout


def test_masked_entries_are_never_sampled() -> None:
    torch.manual_seed(0)
    logits, mask = torch.randn(500, 30) * 10, torch.rand(500, 30) < 0.3
    mask[:, 7] |= ~mask.any(-1)
    logits[~mask] += 1000.0  # masked entries have the best scores
    logp = masked_log_softmax(logits, mask)
    for seed in range(20):
        drawn = sample(logp, torch.Generator().manual_seed(seed))
        assert mask.gather(1, drawn[:, None]).all()
    assert mask.gather(1, logp.argmax(-1)[:, None]).all()
    torch.testing.assert_close(logp.exp().sum(-1), torch.ones(500))


def test_only_valid_entry_is_sampled_with_a_random_number_of_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = torch.eye(6, dtype=torch.bool)
    logp = masked_log_softmax(torch.randn(6, 6), mask)
    uniform = torch.rand

    def rand(shape: torch.Size, **options: Any) -> torch.Tensor:
        return uniform(shape, **options).masked_fill_(mask, 0.0)

    monkeypatch.setattr(torch, "rand", rand)
    assert sample(logp).tolist() == list(range(6))


def test_sample_frequencies_match_probabilities() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0, 5.0])
    mask = torch.tensor([True, True, True, True, False])
    logp = masked_log_softmax(logits, mask)
    drawn = sample(logp.expand(40000, 5), torch.Generator().manual_seed(0))
    frequency = torch.bincount(drawn, minlength=5) / 40000
    torch.testing.assert_close(frequency, logp.exp(), atol=0.01, rtol=0)


def test_entropy_and_gradient_ignore_masked_entries() -> None:
    logits = torch.tensor([[0.3, -1.0, 2.0, 9.0]], requires_grad=True)
    mask = torch.tensor([[True, True, True, False]])
    logp = masked_log_softmax(logits, mask)
    torch.testing.assert_close(entropy(logp), torch.distributions.Categorical(logits=logits[:, :3]).entropy())
    entropy(logp).sum().backward()
    assert logits.grad is not None and torch.isfinite(logits.grad).all() and logits.grad[0, 3] == 0


def test_a_single_choice_has_zero_entropy() -> None:
    logp = masked_log_softmax(torch.randn(1, 6), torch.arange(6)[None] == 2)
    assert entropy(logp).item() == 0.0 and logp[0, 2].item() == 0.0


@pytest.mark.parametrize("heroes", [1, 5])
def test_action_table_matches_the_layout(heroes: int) -> None:
    lay = layout(heroes)
    table = ActionTable(lay, SMALL)
    pairs = {TargetType.POINT: "caster", TargetType.WARD: "ward"}
    for action in lay.actions:
        used = action_parts_used(action.target)
        assert bool(table.reads_unit[action.id]) == (ActionPart.UNIT in used)
        assert bool(table.reads_teleport[action.id]) == (ActionPart.TELEPORT in used)
        assert bool(table.reads_offset[action.id]) == (ActionPart.OFFSET_X in used)
        assert MaskClass(int(table.mask_class[action.id])) is action.mask
        if ActionPart.OFFSET_X in used:
            assert OFFSET_PAIRS[int(table.offset_pair[action.id])] == pairs.get(action.target, "regular")
    assert len(table.state_dict()) == 0

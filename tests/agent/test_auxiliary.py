import torch

from five.agent.config import LearnerConfig
from five.agent.learning.auxiliary import auxiliary_losses, auxiliary_weights

H, N = 2, 3


def tensors(seed=0):
    torch.manual_seed(seed)
    logits = {"win_probability": torch.randn(4, 3, H), "net_worth_rank": torch.randn(4, 3, H, 5),
              "building_events": torch.randn(4, 3, H, N)}
    return logits, torch.rand(4, 3), torch.randn(4, 3, H, 5).softmax(-1), torch.rand(4, 3, N), torch.ones(4, 3, H)


def test_losses_are_cross_entropies():
    logits, win, rank, building, mask = tensors()
    losses = auxiliary_losses(logits, win, rank, building, mask)
    p = logits["win_probability"].sigmoid()
    expected = -(win[..., None] * p.log() + (1 - win[..., None]) * (1 - p).log()).mean()
    torch.testing.assert_close(losses["win_probability"], expected)
    expected = -(rank * logits["net_worth_rank"].softmax(-1).log()).sum(-1).mean()
    torch.testing.assert_close(losses["net_worth_rank"], expected)
    p, y = logits["building_events"].sigmoid(), building[:, :, None]
    torch.testing.assert_close(losses["building_events"], -(y * p.log() + (1 - y) * (1 - p).log()).mean())


def test_losses_are_minimal_at_the_label():
    logits, win, rank, building, mask = tensors()
    exact = {"win_probability": win.logit()[..., None].expand(4, 3, H), "net_worth_rank": rank.log(),
             "building_events": building.logit()[:, :, None].expand(4, 3, H, N)}
    at, off = (auxiliary_losses(x, win, rank, building, mask) for x in (exact, logits))
    assert all(at[name] < off[name] for name in at)


def test_masked_steps_do_not_count():
    logits, win, rank, building, mask = tensors()
    mask[2:] = 0
    before = auxiliary_losses(logits, win, rank, building, mask)
    for x in logits.values():
        x[2:] = 50.0
    after = auxiliary_losses(logits, win, rank, building, mask)
    for name in before:
        torch.testing.assert_close(before[name], after[name])


def test_fully_masked_losses_are_zero():
    logits, win, rank, building, mask = tensors()
    losses = auxiliary_losses(logits, win, rank, building, torch.zeros_like(mask))
    assert [losses[name].item() for name in logits] == [0.0, 0.0, 0.0]


def test_losses_average_over_the_mask():
    """The loss is the mean over unmasked steps, also when one of three is unmasked."""
    logits, win, rank, building, mask = tensors()
    mask[:] = 0
    mask[1, 2, 0] = 1
    one = auxiliary_losses(logits, win, rank, building, mask)
    alone = auxiliary_losses({name: x[1:2, 2:3, :1] for name, x in logits.items()}, win[1:2, 2:3],
                             rank[1:2, 2:3, :1], building[1:2, 2:3], torch.ones(1, 1, 1))
    for name in logits:
        torch.testing.assert_close(one[name], alone[name])


def test_missing_heads_have_no_loss():
    _, win, rank, building, mask = tensors()
    assert auxiliary_losses({}, win, rank, building, mask) == {}


def test_no_building_loss_without_buildings():
    logits, win, rank, _, mask = tensors()
    logits["building_events"] = torch.zeros(4, 3, H, 0)
    assert "building_events" not in auxiliary_losses(logits, win, rank, torch.zeros(4, 3, 0), mask)


def test_each_head_has_its_own_weight():
    config = LearnerConfig(win_loss_weight=0.1, net_worth_rank_loss_weight=0.2, building_loss_weight=0.3)
    assert auxiliary_weights(config) == {"win_probability": 0.1, "net_worth_rank": 0.2, "building_events": 0.3}


def test_win_loss_weight_is_small():
    assert auxiliary_weights(LearnerConfig())["win_probability"] <= 1e-3

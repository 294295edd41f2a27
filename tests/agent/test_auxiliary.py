import math

import pytest
import torch

from five.agent.config import LearnerConfig
from five.agent.learning.auxiliary import (
    auxiliary_diagnostics,
    auxiliary_losses,
    auxiliary_weights,
    cross_entropies,
    relative_losses,
)

T, B, H, N = 4, 3, 2, 3
HEADS = ["win_probability", "net_worth_rank", "building_events"]


def case(seed=0):
    """Return logits and a batch of labels without an outcome sample."""
    torch.manual_seed(seed)
    logits = {"win_probability": torch.randn(T, B, H), "net_worth_rank": torch.randn(T, B, H, 5),
              "building_events": torch.randn(T, B, H, N)}
    batch = {"win_label": torch.rand(T, B), "rank_label": torch.randn(T, B, H, 5).softmax(-1),
             "building_label": torch.rand(T, B, N), "mask": torch.ones(T, B, H), "outcome_mask": torch.zeros(T, B)}
    return logits, batch


def losses_of(logits, batch):
    return auxiliary_losses(cross_entropies(logits, batch), batch["mask"], batch["outcome_mask"])


def test_losses_are_cross_entropies():
    logits, batch = case()
    losses, win = losses_of(logits, batch), batch["win_label"]
    p = logits["win_probability"].sigmoid()
    expected = -(win[..., None] * p.log() + (1 - win[..., None]) * (1 - p).log()).mean()
    torch.testing.assert_close(losses["win_probability"], expected)
    expected = -(batch["rank_label"] * logits["net_worth_rank"].softmax(-1).log()).sum(-1).mean()
    torch.testing.assert_close(losses["net_worth_rank"], expected)
    p, y = logits["building_events"].sigmoid(), batch["building_label"][:, :, None]
    torch.testing.assert_close(losses["building_events"], -(y * p.log() + (1 - y) * (1 - p).log()).mean())


def test_losses_are_minimal_at_the_label():
    logits, batch = case()
    exact = {"win_probability": batch["win_label"].logit()[..., None].expand(T, B, H),
             "net_worth_rank": batch["rank_label"].log(),
             "building_events": batch["building_label"].logit()[:, :, None].expand(T, B, H, N)}
    at, off = losses_of(exact, batch), losses_of(logits, batch)
    assert all(at[name] < off[name] for name in at)


def test_masked_steps_do_not_count():
    logits, batch = case()
    batch["mask"][2:] = 0
    before = losses_of(logits, batch)
    for x in logits.values():
        x[2:] = 50.0
    after = losses_of(logits, batch)
    for name in before:
        torch.testing.assert_close(before[name], after[name])


def test_fully_masked_losses_are_zero():
    logits, batch = case()
    losses = losses_of(logits, batch | {"mask": torch.zeros(T, B, H)})
    assert [losses[name].item() for name in HEADS] == [0.0, 0.0, 0.0]


def test_losses_average_over_the_mask():
    """The loss is the mean over unmasked steps, also when one of three is unmasked."""
    logits, batch = case()
    batch["mask"][:] = 0
    batch["mask"][1, 2, 0] = 1
    one = losses_of(logits, batch)
    each = cross_entropies(logits, batch)
    for name in HEADS:
        torch.testing.assert_close(one[name], each[name][1, 2, 0])


def test_outcome_samples_count_as_much_as_all_others():
    """Win and rank add the mean over the outcome sample; it has no known building events."""
    logits, batch = case()
    batch["mask"][:, 1] = 0
    without, each = losses_of(logits, batch), cross_entropies(logits, batch)
    batch["outcome_mask"][:3, 1] = 1
    losses = losses_of(logits, batch)
    for name in HEADS[:2]:
        torch.testing.assert_close(losses[name], without[name] + each[name][:3, 1].mean())
    torch.testing.assert_close(losses["building_events"], without["building_events"])


def test_missing_heads_have_no_loss():
    assert losses_of({}, case()[1]) == {}


def test_no_building_loss_without_buildings():
    logits, batch = case()
    logits["building_events"] = torch.zeros(T, B, H, 0)
    assert "building_events" not in losses_of(logits, batch | {"building_label": torch.zeros(T, B, 0)})


def test_each_head_has_its_own_weight():
    config = LearnerConfig(win_loss_weight=0.1, net_worth_rank_loss_weight=0.2, building_loss_weight=0.3)
    assert auxiliary_weights(config) == {"win_probability": 0.1, "net_worth_rank": 0.2, "building_events": 0.3}


def test_win_loss_weight_is_small():
    assert auxiliary_weights(LearnerConfig())["win_probability"] <= 1e-3


def relative(batches):
    """Return the relative losses of several batches, as a version's record has them."""
    found = [auxiliary_diagnostics(cross_entropies(*case), case[1]) for case in batches]
    return relative_losses({name: sum(f[name].item() for f in found) / len(found) for name in found[0]})


def test_heads_that_know_nothing_are_at_chance():
    logits, batch = case()
    batch["outcome_mask"][:, 1] = 1
    batch["mask"][:, 1] = 0
    batch["win_label"] = batch["win_label"].round()
    batch["rank_label"] = torch.eye(5)[torch.tensor([1, 0])].expand(T, B, H, 5)
    batch["building_label"][:] = 0.125
    two_ranks = torch.tensor([0.0, 0.0, -50.0, -50.0, -50.0])
    logits = {"win_probability": torch.zeros(T, B, H), "net_worth_rank": two_ranks.expand(T, B, H, 5),
              "building_events": torch.full((T, B, H, N), 0.125).logit()}
    assert relative([(logits, batch)]) == pytest.approx({f"of_chance_{name}": 1.0 for name in HEADS}, rel=1e-5)


def test_known_losses_weigh_outcome_samples_equally():
    """Three batches have one outcome step, twelve and none."""
    one, many, none = case(1), case(2), case(3)
    one[1]["outcome_mask"][0, 0] = 1
    many[1]["outcome_mask"][:] = 1
    each = [cross_entropies(*case)["win_probability"] for case in (one, many)]
    expected = (each[0][0, 0].sum() + each[1].sum()) / (H * (1 + T * B)) / math.log(2)
    assert relative([one, many, none])["of_chance_win_probability"] == pytest.approx(expected.item(), rel=1e-5)


def test_loss_without_a_known_label_is_left_out():
    """Neither a game's outcome nor the rank of a single hero, which has no other."""
    logits, batch = case()
    assert relative([(logits, batch)]).keys() == {"of_chance_building_events"}
    logits = {name: x[:, :, :1] for name, x in logits.items()}
    batch |= {"mask": batch["mask"][..., :1], "rank_label": batch["rank_label"][:, :, :1],
              "outcome_mask": torch.ones(T, B)}
    assert "of_chance_net_worth_rank" not in relative([(logits, batch)])
    assert relative_losses({}) == {}

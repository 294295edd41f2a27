import numpy as np
import pytest
import torch

from five.config import LearnerConfig
from five.learning.auxiliary import Outcome, auxiliary_losses, auxiliary_weights, net_worth_ranks, segment_labels

H, N = 2, 3
PREDICTED = {"win_probability": np.array([0.6, 0.8]),
             "net_worth_rank": np.array([[0.5, 0.5, 0, 0, 0], [0, 1, 0, 0, 0]]),
             "building_events": np.array([[0.2, 0.4, 0.0], [0.4, 0.4, 0.0]])}


@pytest.mark.parametrize("won", [0.0, 0.5, 1.0])
def test_the_outcome_is_the_label_of_every_step(won):
    labels = segment_labels(np.zeros((6, N)), Outcome(won, np.array([3, 0])), PREDICTED, H, 0.9)
    assert labels.win.tolist() == [won] * 6
    assert (labels.rank.argmax(-1) == [3, 0]).all()
    assert labels.rank.sum(-1).min() == 1
    assert not labels.building.any()  # the game is over: nothing falls any more


def test_without_an_outcome_the_prediction_at_the_end_is():
    labels = segment_labels(np.zeros((6, N)), None, PREDICTED, H, 0.9)
    np.testing.assert_allclose(labels.win, [0.7] * 6, rtol=1e-6)
    np.testing.assert_allclose(labels.rank, np.broadcast_to(PREDICTED["net_worth_rank"], (6, H, 5)))


def test_buildings_are_discounted_to_the_next_event_or_to_the_prediction():
    events = np.zeros((4, N))
    events[1, 1] = 1
    labels = segment_labels(events, None, PREDICTED, H, 0.5)
    np.testing.assert_allclose(labels.building[:, 0], [0.3 * 0.5**4, 0.3 * 0.5**3, 0.3 * 0.5**2, 0.3 * 0.5], rtol=1e-6)
    # The truth wins over the prediction before the event; after it, the prediction holds.
    np.testing.assert_allclose(labels.building[:, 1], [0.5, 1.0, 0.4 * 0.25, 0.4 * 0.5], rtol=1e-6)
    assert not labels.building[:, 2].any()


def test_neither_outcome_nor_prediction_is_an_error():
    with pytest.raises(ValueError, match="predictions"):
        segment_labels(np.zeros((4, N)), None, None, H, 0.9)
    with pytest.raises(ValueError, match="ranks"):
        segment_labels(np.zeros((4, N)), Outcome(1.0, np.array([0, 1, 2])), None, H, 0.9)


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


def test_losses_are_least_at_the_label():
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


def test_a_team_without_buildings_has_no_such_loss():
    logits, win, rank, _, mask = tensors()
    logits["building_events"] = torch.zeros(4, 3, H, 0)
    assert "building_events" not in auxiliary_losses(logits, win, rank, torch.zeros(4, 3, 0), mask)


def test_the_win_heads_weight_is_tiny():
    assert auxiliary_weights(LearnerConfig())["win_probability"] <= 1e-3


def test_ranks_by_net_worth():
    assert net_worth_ranks(np.array([600.0, 900.0, 100.0, 900.0])).tolist() == [2, 0, 3, 1]

import numpy as np
import pytest

from five.agent.learning.labels import GameOutcome, label_segment, net_worth_ranks

H, N = 2, 3
PREDICTED = {"win_probability": np.array([0.6, 0.8]),
             "net_worth_rank": np.array([[0.5, 0.5, 0, 0, 0], [0, 1, 0, 0, 0]]),
             "building_events": np.array([[0.2, 0.4, 0.0], [0.4, 0.4, 0.0]])}


@pytest.mark.parametrize("won", [0.0, 0.5, 1.0])
def test_outcome_labels_every_step(won):
    labels = label_segment(np.zeros((6, N)), GameOutcome(won, np.array([3, 0])), PREDICTED, H, 0.9)
    assert labels.win.tolist() == [won] * 6
    assert (labels.rank.argmax(-1) == [3, 0]).all()
    assert labels.rank.sum(-1).min() == 1
    assert not labels.building.any()  # the game is over, so no building falls


def test_prediction_labels_an_unfinished_game():
    labels = label_segment(np.zeros((6, N)), None, PREDICTED, H, 0.9)
    np.testing.assert_allclose(labels.win, [0.7] * 6, rtol=1e-6)
    np.testing.assert_allclose(labels.rank, np.broadcast_to(PREDICTED["net_worth_rank"], (6, H, 5)))


def test_building_labels_are_discounted():
    events = np.zeros((4, N))
    events[1, 1] = 1
    labels = label_segment(events, None, PREDICTED, H, 0.5)
    np.testing.assert_allclose(labels.building[:, 0], [0.3 * 0.5**4, 0.3 * 0.5**3, 0.3 * 0.5**2, 0.3 * 0.5], rtol=1e-6)
    # Before the event the label is the event, after it the prediction.
    np.testing.assert_allclose(labels.building[:, 1], [0.5, 1.0, 0.4 * 0.25, 0.4 * 0.5], rtol=1e-6)
    assert not labels.building[:, 2].any()


def test_missing_outcome_and_prediction_is_an_error():
    with pytest.raises(ValueError, match="predictions"):
        label_segment(np.zeros((4, N)), None, None, H, 0.9)
    with pytest.raises(ValueError, match="ranks"):
        label_segment(np.zeros((4, N)), GameOutcome(1.0, np.array([0, 1, 2])), None, H, 0.9)


def test_net_worth_ranks():
    assert net_worth_ranks(np.array([600.0, 900.0, 100.0, 900.0])).tolist() == [2, 0, 3, 1]

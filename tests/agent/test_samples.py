import numpy as np
import pytest

from five.agent.learning.samples import split_batch, split_segment


def test_a_segment_splits_into_its_samples():
    arrays = {"x": np.arange(12).reshape(6, 2), "state/h": np.arange(3)}
    samples = split_segment(arrays, 3)
    assert [s["x"].tolist() for s in samples] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]
    assert [int(s["state/h"]) for s in samples] == [0, 1, 2]
    assert np.shares_memory(samples[1]["x"], arrays["x"])


def test_a_segment_that_does_not_divide_is_refused_by_name():
    with pytest.raises(ValueError, match="'x'"):
        split_segment({"x": np.zeros((10, 2))}, 4)
    with pytest.raises(ValueError, match="'state/h'"):
        split_segment({"state/h": np.zeros((8, 2))}, 4)


def test_a_batch_splits_by_name():
    observation, state, learning = split_batch({"x": 1, "state/h": 2, "actions": 3, "mask": 4, "shared_ids": 5})
    assert (observation, state, learning) == ({"x": 1, "shared_ids": 5}, {"h": 2}, {"actions": 3, "mask": 4})

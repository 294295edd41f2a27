from five.agent.learning.samples import split_batch


def test_batch_splits_by_name():
    observation, state, learning = split_batch({"x": 1, "state/h": 2, "actions": 3, "mask": 4, "shared_ids": 5})
    assert (observation, state, learning) == ({"x": 1, "shared_ids": 5}, {"h": 2}, {"actions": 3, "mask": 4})

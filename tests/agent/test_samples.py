import numpy as np
import pytest

from five.agent.learning.samples import LEARNING_ARRAYS, check_batch, learning_specs, split_batch

T, B, H, N = 4, 3, 2, 7


def batch(**changes):
    """Return arrays [T, B, ...] of a batch as `learning_specs` describes them, an observation and a state."""
    arrays = {name: np.zeros((T, B, *shape), dtype) for name, (shape, dtype) in learning_specs(H, N).items()}
    return {**arrays, "x": np.zeros((T, B, 9)), "state/h": np.zeros((B, H, 8)), **changes}


def test_batch_splits_by_name():
    observation, state, learning = split_batch({"x": 1, "state/h": 2, "actions": 3, "mask": 4, "shared_ids": 5})
    assert (observation, state, learning) == ({"x": 1, "shared_ids": 5}, {"h": 2}, {"actions": 3, "mask": 4})


def test_shapes_per_timestep_of_a_team_of_five():
    """Six parts of an action; five ranks a hero; one flag and one label for all heroes."""
    specs = learning_specs(5, 18)
    assert specs.keys() == set(LEARNING_ARRAYS)
    assert {name: shape for name, (shape, _) in specs.items()} == {
        "actions": (5, 6), "behaviour_logp": (5,), "behaviour_values": (5,), "advantages": (5,), "returns": (5,),
        "mask": (5,), "resets": (), "versions": (), "win_label": (), "rank_label": (5, 5), "building_label": (18,),
        "outcome_mask": ()}
    assert {name: np.dtype(dtype).name for name, (_, dtype) in specs.items() if np.dtype(dtype) != np.float32} == {
        "actions": "int16", "resets": "bool", "versions": "int32"}


def test_complete_batch_is_accepted():
    check_batch(batch())
    check_batch({name: array for name, array in batch().items() if name not in ("versions", "behaviour_values")})


@pytest.mark.parametrize("name", ["actions", "behaviour_logp", "advantages", "returns", "mask", "resets", "win_label",
                                  "rank_label", "building_label", "outcome_mask"])
def test_missing_array_is_named(name):
    with pytest.raises(ValueError, match=f"the batch lacks {name}$"):
        check_batch({other: array for other, array in batch().items() if other != name})


@pytest.mark.parametrize("name", ["behaviour_logp", "advantages", "returns", "mask"])
@pytest.mark.parametrize("shape", [(T, B, H + 1), (T, B), (T, B, H, 1), (T + 1, B, H), (T, B + 1, H)])
def test_array_per_hero_has_the_shape_of_the_actions(name, shape):
    with pytest.raises(ValueError, match=f"{name} has shape .* expected"):
        check_batch(batch(**{name: np.zeros(shape)}))


@pytest.mark.parametrize("name", ["x", "resets", "rank_label", "versions"])
def test_every_array_begins_with_time_and_batch(name):
    for lead in ((T + 1, B), (T, B - 1), (B, T)):
        with pytest.raises(ValueError, match=f"{name} has shape .* must begin with"):
            check_batch(batch(**{name: np.zeros((*lead, 5))}))


def test_states_have_no_time_dimension():
    check_batch(batch(**{"state/h": np.zeros((B, 1))}))

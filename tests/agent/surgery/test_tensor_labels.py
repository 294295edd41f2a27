import numpy as np
import pytest
import torch

from dota.config import GameConfig, ObservationConfig
from dota.spaces import Layout
from five.agent.config import ModelConfig
from five.agent.model.policy import Policy
from five.agent.surgery.tensor_labels import policy_labels
from tests.agent.model_cases import SMALL, layout

SPLIT = SMALL.model_copy(update={"split_heads": ("unit.ally", "offset.move", "unit.enemy", "offset.follow"),
                                 "id_rows": {"item": 300, "action": 600}})


def omitting(*omit: str, heroes: int = 5) -> Layout:
    slots = ObservationConfig(allied_creeps=6, neutral_creeps=0, buildings=4, wards=2, hero_modifiers=3, pickups=0,
                              minimap=6, nearby_map=4, passability=3, omit=omit)
    return Layout(GameConfig(heroes_per_team=heroes, observation=slots))


CASES = {
    "one hero": (layout(1), SMALL), "five heroes": (layout(5), SMALL), "split": (layout(5), SPLIT),
    "no blocks": (omitting("minimap", "nearby_map", "abilities", "items", "previous_action.offsets",
                           "previous_action.action"), SMALL),
    "fields": (omitting("units.animation", "allied_heroes.build", "allied_heroes.next_item", "units.position",
                        "nearby_map.area_effect", "heroes.in_line", "global.stock"), SPLIT),
}


@pytest.mark.parametrize("name", CASES)
def test_every_tensor_has_labels(name: str) -> None:
    of, config = CASES[name]
    labels = policy_labels(of, config)
    state = Policy(of, config).state_dict()
    missing, unknown = [n for n in state if n not in labels], [n for n in labels if n not in state]
    assert not missing and not unknown, f"without labels: {missing}; labels of no tensor: {unknown}"
    assert list(labels) == list(state)
    parameters = dict(Policy(of, config).named_parameters())
    for tensor, labelled in labels.items():
        assert labelled.shape == tuple(state[tensor].shape), tensor
        assert labelled.dtype == str(state[tensor].dtype).removeprefix("torch."), tensor
        assert labelled.trained == (tensor in parameters), tensor
        for axis in labelled.axes:
            assert len(set(axis.labels)) == len(axis.labels), f"{tensor}: a label twice"
            assert len(axis.reads) in (0, len(axis.labels)), tensor
        for other in filter(None, (labelled.bias, labelled.clone_of)):
            assert other in labels, tensor


def test_inputs_read_labels_of_the_normaliser() -> None:
    labels = policy_labels(*CASES["five heroes"])
    kept = set(labels["normaliser.mean"].axes[0].labels)
    read = {label for labelled in labels.values() for axis in labelled.axes for label in axis.reads
            if label and not label.startswith("embedding:")}
    assert read == kept


def test_row_of_no_id_is_known_where_the_model_pads() -> None:
    """The model never trains such a row, so surgeries and fixtures leave it zero."""
    labels = policy_labels(*CASES["five heroes"])
    padded = [name for name, module in Policy(*CASES["five heroes"]).named_modules()
              if isinstance(module, torch.nn.Embedding) and module.padding_idx == 0]
    assert padded and not [name for name in padded if not labels[f"{name}.weight"].none]


@pytest.mark.parametrize("name", ["five heroes", "split"])
def test_initializer_matches_the_layer(name: str) -> None:
    of, config = CASES[name]
    torch.manual_seed(0)
    state = Policy(of, config).state_dict()
    for tensor, labelled in policy_labels(of, config).items():
        values = state[tensor].numpy()
        if labelled.initial.kind == "zero":
            assert not values.any(), tensor
            continue
        units = config.lstm
        if tensor == "core.lstm.bias_ih_l0":
            assert (values[units:2 * units] == 1).all()
            values = np.delete(values, np.s_[units:2 * units])
        if labelled.none:
            assert not values[0].any(), tensor
            values = values[1:]
        if labelled.initial.kind == "uniform":
            assert np.abs(values).max() <= labelled.initial.scale, tensor
            assert values.size < 60 or np.abs(values).max() > 0.9 * labelled.initial.scale, tensor
        elif values.size > 100:
            assert values.std() == pytest.approx(labelled.initial.scale, rel=0.3), tensor


def test_labels_at_the_papers_size_are_fast() -> None:
    labels = policy_labels(Layout(GameConfig()), ModelConfig())
    assert sum(x.size for x in labels.values() if x.trained) == pytest.approx(158_502_815, rel=0.05)

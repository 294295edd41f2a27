"""The chart's facts of the presets are those of the presets."""

from pathlib import Path

import pytest
import torch
import yaml

from cli.chartfacts import FILE, facts, main
from dota.spaces import Layout
from five.learning.learner import Learner
from five.model.policy import Policy
from run.load import load, presets


def test_the_charts_file_is_current() -> None:
    assert main(["--check"]) == 0
    assert yaml.safe_load(FILE.read_text()).keys() == presets().keys()


def test_a_file_that_is_not_current_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "presets.yaml"
    assert main(["--check", "--out", str(path)]) == 1 and "run python -m cli.chartfacts" in capsys.readouterr().err
    assert main(["--out", str(path)]) == 0 and main(["--check", "--out", str(path)]) == 0


def test_sizes_are_those_of_real_tensors() -> None:
    config = load("laptop-1v1")
    found = facts(config)
    learner = Learner(Policy(Layout(config.game), config.model), config.learning)
    arrays = {name: tensor.numpy() for name, tensor in learner.policy.state_dict().items()}
    assert found["parameter_bytes"] == sum(array.nbytes for array in arrays.values())
    # One step makes Adam's state.
    for parameter in learner.policy.parameters():
        parameter.grad = torch.zeros_like(parameter)
    learner._adam.step()
    assert found["checkpoint_bytes"] == sum(tensor.nbytes for tensor in learner.state_dict().values())


def test_memory_does_for_every_type_that_versions_may_travel_in() -> None:
    config = load("rerun")
    assert config.store.publish_dtype == "bfloat16"
    whole = config.model_copy(update={"store": config.store.model_copy(update={"publish_dtype": "float32"})})
    assert facts(config) == facts(whole)

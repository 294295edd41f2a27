"""The chart's facts match the presets, and its files are current."""

from pathlib import Path

import pytest
import torch
import yaml

from dota.spaces import Layout
from five.agent.learning.learner import Learner
from five.agent.model.policy import Policy
from five.run.load import load, presets
from tools.chart_facts import CHART, FACTS, REPLACED, SCHEMA, facts, main


def test_chart_files_are_current() -> None:
    assert main(["--check"]) == 0
    assert yaml.safe_load((CHART / FACTS).read_text()).keys() == presets().keys()


def test_outdated_files_are_reported_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = (CHART / SCHEMA).read_text()
    (tmp_path / SCHEMA).write_text(schema.replace('"batch_samples"', '"batch"'))
    assert main(["--check", "--chart", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    for name in (FACTS, REPLACED, SCHEMA):
        assert f"{tmp_path / name} is outdated: run python -m tools.chart_facts" in told
    assert main(["--chart", str(tmp_path)]) == 0 and main(["--check", "--chart", str(tmp_path)]) == 0
    assert (tmp_path / SCHEMA).read_text() == schema


def test_folder_without_a_chart_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--chart", str(tmp_path)])
    assert f"there is no {tmp_path / SCHEMA}" in capsys.readouterr().err


def test_sizes_match_real_tensors() -> None:
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


@pytest.mark.parametrize(("preset", "versions"), [("laptop-1v1", 26), ("laptop-5v5", 16), ("gpu-node", 12),
                                                  ("rerun", 1)])
def test_versions_of_the_grace_time_are_counted(preset: str, versions: int) -> None:
    assert facts(load(preset))["versions_in_grace"] == versions


def test_memory_suffices_for_every_publish_dtype() -> None:
    config = load("rerun")
    assert config.store.publish_dtype == "bfloat16"
    whole = config.model_copy(update={"store": config.store.model_copy(update={"publish_dtype": "float32"})})
    assert facts(config) | {"publish_dtype": "float32"} == facts(whole)

"""Training that begins with a packed agent: configuration and first checkpoint."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from five.agent.learning.learner import Learner
from five.agent.model.policy import Policy
from five.agent.model.temperature import at_temperature
from five.agent.surgery import AgentSpec
from five.cli.run_preparation import prepare
from five.cli.train import train
from five.local.run_folder import RunUnavailable
from five.local.run_origin import RunOrigin
from five.packed_agents.card import card_text
from five.packed_agents.errors import AgentUnavailable
from five.packed_agents.fine_tuning import fine_tuning_config, write_first_checkpoint
from five.packed_agents.folder import CARD, CONFIG, PackedAgent
from five.run.load import ConfigError, load, save
from five.services.optimizer.checkpoints import Checkpoints
from rapid.blobs import BlobStore


def test_the_configuration_is_that_of_the_agents_run(shared_agent: PackedAgent) -> None:
    assert fine_tuning_config(shared_agent, None, ()) == shared_agent.config


def test_addresses_of_an_agent_have_no_effect(agent: PackedAgent) -> None:
    """Its folder may come from a stranger, who would receive the run's versions and passwords."""
    config = load(str(agent.path / CONFIG), [
        "blobs.url=s3://stranger/pail", "store.state_url=redis://stranger:1", "tracing.endpoint=http://stranger",
        "services.inference.addresses=[stranger:1]", "services.controller.tokens_file=/stranger"])
    save(config, agent.path / CONFIG)
    assert "stranger" not in PackedAgent(agent.path).config.model_dump_json()
    found = fine_tuning_config(PackedAgent(agent.path), None, ["blobs.url=s3://own/pail"])
    assert "stranger" not in found.model_dump_json() and found.blobs.url == "s3://own/pail"
    assert (found.game, found.model, found.learning) == (config.game, config.model, config.learning)


def test_a_preset_gives_everything_but_game_and_model(shared_agent: PackedAgent) -> None:
    config, preset = fine_tuning_config(shared_agent, "laptop-5v5", ["seed=9"]), load("laptop-5v5")
    assert (config.game, config.model, config.name) == (
        shared_agent.config.game, shared_agent.config.model, "tiny")
    assert (config.learning, config.schedules, config.seed) == (preset.learning, preset.schedules, 9)


def test_the_first_checkpoint_has_the_agents_weights_and_a_new_optimizer(shared_agent: PackedAgent, tmp_path: Path
                                                                         ) -> None:
    folder, config, lock = prepare(None, ["seed=4"], None, None, root=tmp_path, agent=shared_agent)
    with lock:
        checkpoints = Checkpoints(BlobStore(str(folder.path / "blobs")), "tiny", 1)
        assert checkpoints.versions() == [0]
        found = checkpoints.newest()
        assert found is not None
        version, tensors, extra = found
        for name, array in shared_agent.tensors().items():
            np.testing.assert_array_equal(tensors[f"policy/{name}"].numpy(), array, err_msg=name)
        assert not any(name.startswith("adam/") for name in tensors)
        assert all(not tensor.any() for name, tensor in tensors.items() if name.startswith("clip/"))
        assert (version, extra["hero_steps"], extra["schema"]) == (0, 0, shared_agent.spec.schema)
        assert extra["learner"]["gradient_steps"] == 0 and config.seed == 4
        learner = Learner(Policy(shared_agent.spec.layout, config.model), config.learning)
        learner.load_state_dict(tensors, extra["learner"])
    origin = RunOrigin.load(folder.origin)
    assert origin is not None
    assert (origin.agent, origin.weights_sha256) == ("tiny", shared_agent.card.weights_sha256)
    assert origin.command == "five train --from tiny --set seed=4"


def test_a_wider_network_is_reached_by_surgery(shared_agent: PackedAgent, tmp_path: Path) -> None:
    folder, config, lock = prepare(None, ["model.lstm=24"], "wide", None, root=tmp_path, agent=shared_agent)
    with lock:
        found = Checkpoints(BlobStore(str(folder.path / "blobs")), "wide", 1).newest()
    assert found is not None and config.model.lstm == 24
    spec = AgentSpec(config.game, config.model)
    shapes = {name.removeprefix("policy/"): tuple(tensor.shape) for name, tensor in found[1].items()
              if name.startswith("policy/")}
    assert shapes == spec.tensor_shapes() and found[2]["schema"] == spec.schema


def test_what_surgery_cannot_change_is_refused_before_a_run_exists(shared_agent: PackedAgent, tmp_path: Path) -> None:
    with pytest.raises(AgentUnavailable, match="cannot be brought over"):
        prepare(None, ["model.lstm=8"], None, None, root=tmp_path, agent=shared_agent)
    with pytest.raises(ConfigError, match="learning.no_such_key"):
        prepare(None, ["learning.no_such_key=1"], None, None, root=tmp_path, agent=shared_agent)
    assert not list(tmp_path.iterdir())


def test_a_missing_device_is_refused_before_a_run_exists(shared_agent: PackedAgent, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=r"services.optimizer.device 'cuda'.*services.optimizer.device=cpu"):
        prepare(None, ["services.optimizer.device=cuda"], None, None, root=tmp_path, agent=shared_agent)
    with pytest.raises(ConfigError, match=r"services.inference.device 'cuda'"):
        prepare("gpu-node", [], None, None, root=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_run_begins_at_the_temperature_of_the_agent(shared_agent: PackedAgent, tmp_path: Path) -> None:
    """Version 0 plays like the agent: at the given temperature, or at that of its card."""
    own = shared_agent.card.model_copy(update={"temperature": 0.25})
    packed = PackedAgent(Path(shutil.copytree(shared_agent.path, tmp_path / "packed")))
    (packed.path / CARD).write_text(card_text(own), encoding="utf-8")
    for agent, expected, command in ((packed, 0.25, ""), (PackedAgent(packed.path, 2.0), 2.0, " --temperature 2")):
        folder, _, lock = prepare(None, ["name=run"], f"run-{expected:g}".replace(".", "-"), None, root=tmp_path,
                                  agent=agent)
        with lock:
            found = Checkpoints(BlobStore(str(folder.path / "blobs")), folder.name, 1).newest()
        assert found is not None
        for name, array in at_temperature(shared_agent.tensors(), expected).items():
            np.testing.assert_array_equal(found[1][f"policy/{name}"].numpy(), array, err_msg=name)
        origin = RunOrigin.load(folder.origin)
        assert origin is not None and origin.command == f"five train --from tiny{command} --set name=run"


def test_a_temperature_needs_an_agent() -> None:
    with pytest.raises(ConfigError, match="--temperature 0.5: only with --from"):
        train(None, 1.0, (), None, None, temperature=0.5)


def test_a_resumed_run_takes_no_agent(shared_agent: PackedAgent, tmp_path: Path) -> None:
    folder, config, lock = prepare(None, (), None, None, root=tmp_path, agent=shared_agent)
    lock.release()
    with pytest.raises(ConfigError, match="--from .*not possible with --resume"):
        prepare(None, (), None, folder.name, root=tmp_path, agent=shared_agent)
    with pytest.raises(RunUnavailable, match="run 'tiny' exists"):
        prepare(None, (), "tiny", None, root=tmp_path, agent=shared_agent)
    with pytest.raises(AgentUnavailable, match="has files of a run 'tiny'"):
        write_first_checkpoint(shared_agent, folder, config)

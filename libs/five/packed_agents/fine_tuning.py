"""Training that begins with a packed agent: the new run's configuration, and its first checkpoint.

The first version has the agent's parameters, at its temperature, and statistics: it plays like the agent. Optimizer,
counters and version numbers start from zero.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from five.agent.learning.buffer import SampleBuffer
from five.agent.learning.learner import Learner
from five.agent.learning.pacing import Pacer
from five.agent.surgery import AgentSpec
from five.local.run_folder import RunFolder
from five.packed_agents.errors import AgentUnavailable
from five.packed_agents.folder import PackedAgent
from five.packed_agents.policy import policy_of
from five.run.config import RunConfig
from five.run.load import apply_overrides, load, validate
from five.services.optimizer.checkpoint_names import CheckpointName
from five.services.optimizer.stored_arrays import SampleCollator
from rapid import tensorfile
from rapid.blobs import BlobStore


def fine_tuning_config(agent: PackedAgent, preset: str | None, overrides: Sequence[str]) -> RunConfig:
    """Return the configuration of a run that continues an agent: its game and model, and the other sections of a
    preset, by default those of its own run. ``overrides`` come last.

    Raises ConfigError for invalid overrides, AgentUnavailable if surgery cannot bring the agent over to the game and
    model.
    """
    base = agent.config if preset is None else load(preset)
    tree: dict[str, Any] = base.model_dump(mode="json", by_alias=True)
    own: Mapping[str, Any] = agent.config.model_dump(mode="json", by_alias=True)
    tree |= {"game": own["game"], "model": {**own["model"], "precision": tree["model"]["precision"]},
             "name": agent.card.name}
    config = validate(apply_overrides(tree, overrides), f"--from {agent.path}")
    agent.tensors_for(AgentSpec(config.game, config.model))
    return config


def write_first_checkpoint(agent: PackedAgent, folder: RunFolder, config: RunConfig) -> None:
    """Store the checkpoint of version 0 of a new run. The optimizer resumes from it.

    Raises AgentUnavailable if the blob store has versions or checkpoints of a run of this name.
    """
    spec = AgentSpec(config.game, config.model)
    blobs = BlobStore(config.blobs.url or str(folder.path / "blobs"))
    if list(blobs.refs(f"{config.name}/")):
        raise AgentUnavailable(f"blobs.url {blobs.url} has files of a run {config.name!r}: choose another --name")
    torch.manual_seed(config.seed)
    policy = policy_of(spec, agent.playing_tensors(spec))
    policy.requires_grad_(True)
    policy.actor = None
    learner = Learner(policy, config.learning)
    pacer = Pacer(config.buffer, config.learning.batch_samples)
    buffer = SampleBuffer(config.buffer, SampleCollator(), seed=config.seed * 1000)
    extra = {"learner": learner.extra(), "pacer": pacer.state_dict(), "buffer": buffer.state_dict(), "hero_steps": 0,
             "flop": 0.0, "schema": spec.schema, "warm_up_until": 0}
    arrays = {name: tensor.numpy() for name, tensor in learner.state_dict().items()}
    blobs.put(list(tensorfile.file_pieces(arrays, extra)), f"{config.name}/checkpoints/{CheckpointName(0).text()}")

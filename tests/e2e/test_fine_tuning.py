"""`five train --from`: a run that begins with a packed agent's weights."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from five.evaluation.archived_versions import ArchivedVersions
from five.local.run_origin import RunOrigin
from tests.e2e.running import LEARNING_ONLY, Run
from tests.packed_agents.tiny_agent import packed_agent

torch.set_num_threads(1)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path, "tuned")
    yield run
    run.destroy()


@pytest.mark.runs
@pytest.mark.timeout(900)
def test_training_begins_with_the_agents_weights(run: Run, tmp_path: Path) -> None:
    agent = packed_agent(tmp_path / "packed")
    sets = [part for override in ("seed=3", *LEARNING_ONLY) for part in ("--set", override)]
    run.start("--from", str(agent.path), "--name", "tuned", *sets)
    run.wait_version(2)
    origin = RunOrigin.load(run.folder.origin)
    assert origin is not None and origin.agent == "tiny"
    document = run.state().document("origin")
    assert document["weights_sha256"] == agent.card.weights_sha256 == origin.weights_sha256
    assert [event.details["value"] for event in run.state().events.read() if event.what == "origin.set"] == [document]
    assert run.end() == 0
    first = ArchivedVersions(run.folder).load(0)[1].state_dict()
    for name, array in agent.tensors().items():
        np.testing.assert_array_equal(first[name].numpy(), array, err_msg=name)
    later = ArchivedVersions(run.folder).load(2)[1].state_dict()
    assert any(not torch.equal(first[name], later[name]) for name in first)
    versions = json.loads(run.folder.records.read_text())["versions"]
    assert versions[0]["version"] == 1 and versions[0]["hero_steps"] < agent.card.training.hero_steps

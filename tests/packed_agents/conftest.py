"""A packed agent for the tests that only read it, and copies for those that change it."""

import shutil
from pathlib import Path

import pytest
import torch

from five.packed_agents.folder import PackedAgent
from tests.packed_agents.tiny_agent import packed_agent

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shared_agent(tmp_path_factory: pytest.TempPathFactory) -> PackedAgent:
    """A packed agent that no test may change."""
    return packed_agent(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def agent(shared_agent: PackedAgent, tmp_path: Path) -> PackedAgent:
    """A copy of it."""
    return PackedAgent(Path(shutil.copytree(shared_agent.path, tmp_path / "agents" / "tiny")))

"""Every packed agent of the source tree: its card is complete, it loads, and it plays its check game."""

from pathlib import Path

import pytest

from dota import playback
from dota.replay import Replay
from five.packed_agents.check import play_check
from five.packed_agents.folder import GAMES, PackedAgent
from five.packed_agents.games import parse_games
from tests.repository import ROOT

AGENTS = sorted(path for path in (ROOT / "agents").iterdir() if path.is_dir() and path.name[0] != ".")
STRONGEST = ("fifth-five", "second-mid")  # `make test-runs` plays the others


@pytest.mark.parametrize("path", [
    pytest.param(path, id=path.name, marks=[] if path.name in STRONGEST else pytest.mark.runs) for path in AGENTS])
def test_shipped_agent_plays_as_its_card_says(path: Path) -> None:
    """After a change of the game `five agents renew NAME` records check game and replay again."""
    agent = PackedAgent(path)
    card = agent.card
    assert card.name == agent.path.name and card.training.commit != "unknown"
    games = parse_games((agent.path / card.games_file).read_bytes())
    assert card.games_file == GAMES and games.weights_sha256 == card.weights_sha256 and games.rules == card.rules
    assert games.scores() == card.scores and games.temperature == card.temperature
    policy = agent.policy()
    check = card.check
    assert check.against == "scripted-easy"
    assert play_check(policy, agent.config.game, check.against, check.seed, check.timesteps) == check
    for _ in playback.play(Replay.load(agent.replay)):
        pass  # it ends in the recorded state


def test_the_folder_has_agents_only() -> None:
    assert (ROOT / "agents" / "README.md").is_file()
    assert {path.name for path in (ROOT / "agents").iterdir() if path.is_file()} == {"README.md"}
    assert all((path / "card.md").is_file() for path in AGENTS)

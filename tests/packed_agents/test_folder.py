"""Packed agents by name and path, other games, and agents of other releases."""

from pathlib import Path

import numpy as np
import pytest

from dota.config import GameConfig
from five.agent.surgery import AgentSpec
from five.evaluation.match import Contestant, play
from five.packed_agents import folder
from five.packed_agents.card import card_text
from five.packed_agents.errors import AgentUnavailable, read_bytes
from five.packed_agents.folder import PackedAgent, find_agent, packed_agents
from five.run.load import load


@pytest.fixture
def known(agent: PackedAgent, monkeypatch: pytest.MonkeyPatch) -> PackedAgent:
    """The agent, found by its name."""
    monkeypatch.setenv("FIVE_AGENTS", str(agent.path.parent))
    return agent


def game_with(agent: PackedAgent, **changes: object) -> GameConfig:
    return GameConfig.model_validate(agent.config.game.model_dump() | changes)


def test_agents_are_found_by_name_and_by_path(known: PackedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_agent("tiny").path == known.path == find_agent(str(known.path)).path
    assert packed_agents()["tiny"].path == known.path
    monkeypatch.chdir(known.path.parent.parent)
    monkeypatch.delenv("FIVE_AGENTS")
    assert find_agent("agents/tiny").card == known.card


def test_a_folder_that_is_being_written_is_no_agent(known: PackedAgent) -> None:
    known.path.rename(known.path.with_name(".tiny.x1"))
    assert ".tiny.x1" not in packed_agents()


def test_an_unknown_name_lists_the_known_ones(known: PackedAgent) -> None:
    with pytest.raises(AgentUnavailable, match=r"agent 'tinny': .*did you mean 'tiny'\?"):
        find_agent("tinny")
    with pytest.raises(AgentUnavailable, match="known agents: .*tiny"):
        find_agent("nobody")


def test_an_installed_package_has_its_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel has no source tree around it, but the folder agents/ in the package."""
    package = tmp_path / "site-packages" / "five" / "packed_agents"
    (package / "agents").mkdir(parents=True)
    monkeypatch.setattr(folder, "_HERE", package)
    monkeypatch.delenv("FIVE_AGENTS", raising=False)
    assert folder.agent_folders() == [package / "agents"]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux")
def test_a_file_without_a_size_is_read_up_to_the_limit(agent: PackedAgent) -> None:
    """A folder of unknown origin may hold a link to an endless device, whose size is 0."""
    games = agent.path / agent.card.games_file
    size = games.stat().st_size
    assert len(read_bytes(games, size)) == size
    with pytest.raises(AgentUnavailable, match=f"{size} bytes, at most {size - 1} are allowed"):
        read_bytes(games, size - 1)
    games.unlink()
    games.symlink_to("/proc/self/maps")
    with pytest.raises(AgentUnavailable, match="games.json: 11 bytes, at most 10 are allowed"):
        read_bytes(games, 10)


def test_a_loaded_agent_plays(shared_agent: PackedAgent) -> None:
    policy = shared_agent.policy()
    assert policy.config.precision == "float32" and not policy.training
    assert not any(parameter.requires_grad for parameter in policy.parameters())
    match = play(shared_agent.config.game, Contestant("tiny", policy), Contestant.bot("random"), 1, seed=4)
    assert len(match.games) == 2


@pytest.mark.parametrize("changes", [{"patch": "7.19"}, {"max_game_seconds": 30.0}, {"hero_pool": ["lion", "sniper"]}])
def test_a_game_of_the_same_layout_needs_no_surgery(shared_agent: PackedAgent, changes: dict[str, object]) -> None:
    game = game_with(shared_agent, **changes)
    found = shared_agent.policy(game).state_dict()
    for name, array in shared_agent.tensors().items():
        np.testing.assert_array_equal(found[name].numpy(), array, err_msg=name)
    assert len(play(game, Contestant("tiny", shared_agent.policy(game)), Contestant.bot("random"), 1).games) == 2


def test_heroes_that_were_never_played_are_named(shared_agent: PackedAgent) -> None:
    assert shared_agent.untrained_heroes(game_with(shared_agent, hero_pool=["nevermore", "lion"])) == ["lion"]


def test_another_layout_is_reached_by_surgery(shared_agent: PackedAgent) -> None:
    """More slots, the minimap and an offered action change observation and network; what the agent knew stays."""
    observation = shared_agent.config.game.observation.model_dump() | {"allied_creeps": 14, "omit": ["nearby_map"]}
    game = game_with(shared_agent, observation=observation)
    spec = AgentSpec(game, shared_agent.spec.model)
    assert spec.layout.hash != shared_agent.spec.layout.hash
    tensors, before = shared_agent.tensors_for(spec), shared_agent.tensors()
    assert {name: array.shape for name, array in tensors.items()} == spec.tensor_shapes()
    np.testing.assert_array_equal(tensors["value.weight"], before["value.weight"])
    match = play(game, Contestant("tiny", shared_agent.policy(game)), Contestant.bot("scripted"), 1)
    assert len(match.games) == 2


def test_a_game_beyond_surgery_is_refused_with_the_reason(shared_agent: PackedAgent) -> None:
    with pytest.raises(AgentUnavailable, match="agent 'tiny' was trained in 1v1_mid, patch 7.21d, and cannot be "
                                               "brought over to 5v5.*heroes_per_team.*own game"):
        shared_agent.policy(load("laptop-5v5").game)


@pytest.mark.parametrize(("key", "what"), [("layout", "layout of observations"), ("model_schema", "model schema")])
def test_an_agent_of_another_release_is_refused(agent: PackedAgent, key: str, what: str) -> None:
    other = agent.card.model_copy(update={key: "0123456789abcdef"})
    (agent.path / "card.md").write_text(card_text(other))
    with pytest.raises(AgentUnavailable, match=f"packed with {what}.* 0123456789abcdef; this release .*commit 0123abc"):
        PackedAgent(agent.path).policy()


def test_rules_that_changed_are_listed(agent: PackedAgent) -> None:
    assert agent.rule_changes == []
    (agent.path / "card.md").write_text(card_text(agent.card.model_copy(update={"rules": 1})))
    older = PackedAgent(agent.path)
    assert older.rule_changes and older.policy() is not None


@pytest.mark.parametrize(("text", "problem"), [
    ("game: {lives: 2}\n", r"game.lives: unknown key"), ("[1]\n", "must be a mapping"), ("a: &x 1\n", "anchors"),
    ("game: [\n", "invalid YAML"), ("x" * 70_000, "70000 bytes")])
def test_a_damaged_configuration_is_refused(agent: PackedAgent, text: str, problem: str) -> None:
    path = agent.path / "config.yaml"
    path.write_text(text)
    with pytest.raises(AgentUnavailable, match=f"(?s)^{path}: .*{problem}"):
        agent.config  # noqa: B018 - the property reads the file

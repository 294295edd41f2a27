"""Packing: what the folder holds, when it is refused, and that the evaluation plays the packed weights."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dota import playback
from dota.replay import Replay
from dota.rule_changes import REVISION
from dota.vec_game import BOTS, STATS
from five import yaml_core
from five.agent.model.temperature import at_temperature
from five.evaluation.archived_versions import VersionNotArchived
from five.evaluation.journal import Journal
from five.evaluation.match import Contestant, play
from five.local.run_lock import RunInUse
from five.packed_agents import evaluation, packing
from five.packed_agents.card import TrainingFacts
from five.packed_agents.check import play_check
from five.packed_agents.errors import AgentUnavailable
from five.packed_agents.evaluation import WeightsFile
from five.packed_agents.folder import CONFIG, GAMES, WEIGHTS, PackedAgent, portable_config
from five.packed_agents.games import parse_games
from five.packed_agents.packing import EvaluationRequest, pack, renew
from five.packed_agents.policy import policy_of
from five.run.load import ConfigError, load, validate
from tests.packed_agents.tiny_agent import VERSION, ended_run, request

NO_GAMES = EvaluationRequest()


def test_a_packed_folder_is_complete(shared_agent: PackedAgent) -> None:
    card = shared_agent.card
    assert {path.name for path in shared_agent.path.iterdir()} == {
        "card.md", "config.yaml", "games.json", "weights.safetensors", "against-scripted.replay"}
    assert (card.name, card.mode, card.patch, card.heroes) == ("tiny", "1v1_mid", "7.21d", ["nevermore"])
    assert card.rules == REVISION and card.layout == shared_agent.spec.layout.hash
    assert card.training.version == VERSION and card.parameters == shared_agent.spec.parameters
    assert [score.against for score in card.scores] == list(BOTS)
    assert all(score.games == 2 == score.won + score.drawn + score.lost for score in card.scores)
    for _ in playback.play(Replay.load(shared_agent.replay)):
        pass  # it ends in the recorded state


def test_scores_come_from_the_stored_games(shared_agent: PackedAgent) -> None:
    games = parse_games((shared_agent.path / GAMES).read_bytes())
    assert games.scores() == shared_agent.card.scores
    assert games.weights_sha256 == shared_agent.card.weights_sha256 and games.columns == list(STATS)
    assert [(row.against, row.pair, row.side) for row in games.games] == [
        (bot, 0, side) for bot in BOTS for side in (0, 1)]


def test_the_evaluation_plays_the_packed_weights(shared_agent: PackedAgent) -> None:
    """Games of the loaded agent are those of the card, which a version in float32 would leave sooner or later."""
    match = play(shared_agent.config.game, Contestant("agent", shared_agent.policy()), Contestant.bot("scripted"), 1)
    rows = [row for row in parse_games((shared_agent.path / GAMES).read_bytes()).games if row.against == "scripted"]
    for played, row in zip(sorted(match.games), rows, strict=True):
        assert [round(float(value), 3) for value in played.statistics[0]] == row.own
        assert (played.score, round(played.seconds, 3)) == (row.score, row.seconds)


def test_an_agent_plays_at_its_temperature(shared_agent: PackedAgent, tmp_path: Path) -> None:
    archive = ended_run(tmp_path / "runs")
    hot = pack(archive, request(name="hot"), tmp_path / "agents")
    cold = pack(archive, request(name="cold", temperature=0.25), tmp_path / "agents")
    assert (cold.card.temperature, shared_agent.card.temperature) == (0.25, 1.0)
    assert parse_games((cold.path / GAMES).read_bytes()).temperature == 0.25
    # Games of one are not those of the other.
    assert len(list((archive.folder.path / "agent-games").glob("*.jsonl"))) == 2
    assert cold.card.check.hash != hot.card.check.hash
    evaluated = WeightsFile(cold.path / WEIGHTS, cold.card.weights_sha256, cold.spec, 0.25).policy().state_dict()
    cooled = policy_of(cold.spec, at_temperature(hot.tensors(), 0.25)).state_dict()
    for name, tensor in cold.policy().state_dict().items():
        assert tensor.equal(cooled[name]) and tensor.equal(evaluated[name]), name
    for name, array in cold.tensors().items():  # the stored weights are those of training
        np.testing.assert_array_equal(array, hot.tensors()[name], err_msg=name)


def test_a_text_that_no_card_holds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AgentUnavailable, match="card of 'tiny': weaknesses.0: String should have at least 1 char"):
        pack(ended_run(tmp_path / "runs"), request(weaknesses=[""]), tmp_path / "agents")
    assert not list((tmp_path / "agents").iterdir())


def test_a_name_that_exists_is_refused(tmp_path: Path) -> None:
    archive = ended_run(tmp_path / "runs")
    (tmp_path / "agents" / "tiny").mkdir(parents=True)
    with pytest.raises(AgentUnavailable, match=f"{tmp_path}/agents/tiny exists"):
        pack(archive, request(), tmp_path / "agents")
    assert not list((tmp_path / "agents" / "tiny").iterdir())


def test_a_version_without_evaluation_is_refused(tmp_path: Path) -> None:
    archive = ended_run(tmp_path / "runs")
    missing = f"version {VERSION} has no evaluation games .* against random, .*--games"
    with pytest.raises(AgentUnavailable, match=missing):
        pack(archive, request(evaluation=NO_GAMES), tmp_path / "agents")
    with pytest.raises(VersionNotArchived, match="version 3 "):
        pack(archive, request(version=3), tmp_path / "agents")
    assert not list((tmp_path / "agents").iterdir())  # nothing is left half written


def test_an_interrupted_evaluation_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, against = ended_run(tmp_path / "runs"), list[str]()
    play_planned = evaluation.play_planned

    def interrupted(game: object, first: Contestant, second: Contestant, planned: list[tuple[int, int]], *rest: object,
                    **options: object) -> object:
        if second.name == "scripted":
            raise KeyboardInterrupt
        against.append(second.name)
        return play_planned(game, first, second, planned, *rest, **options)

    with monkeypatch.context() as patched:
        patched.setattr("five.packed_agents.evaluation.play_planned", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pack(archive, request(), tmp_path / "agents")
    said: list[str] = []
    agent = pack(archive, request(), tmp_path / "agents", said.append)
    assert against == ["random", "scripted-easy"]
    assert [line.split()[0] for line in said] == ["scripted:", "scripted-hard:"]
    again = pack(archive, request(name="again", evaluation=NO_GAMES), tmp_path / "agents")
    assert again.card.scores == agent.card.scores and again.card.check == agent.card.check


def interrupt_after_the_first_game(monkeypatch: pytest.MonkeyPatch, bot: str) -> None:
    """Let the first game against a bot end the evaluation once it is in the journal."""
    write = Journal.write

    def interrupted(self: Journal, rows: Mapping[str, Any]) -> None:
        write(self, rows)
        if any(name.startswith(f"{bot}/") for name in rows):
            raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "write", interrupted)


def test_a_part_of_an_evaluation_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short games end first, so a part would be another score."""
    archive = ended_run(tmp_path / "runs")
    with monkeypatch.context() as patched:
        interrupt_after_the_first_game(patched, "scripted-hard")
        with pytest.raises(KeyboardInterrupt):
            pack(archive, request(), tmp_path / "agents")
    with pytest.raises(AgentUnavailable, match=r"not have all 2 evaluation games .* against scripted-hard: --games 2 "):
        pack(archive, request(evaluation=NO_GAMES), tmp_path / "agents")


def test_one_process_at_a_time_plays_a_versions_games(tmp_path: Path) -> None:
    archive, refused = ended_run(tmp_path / "runs"), list[str]()

    def pack_another(line: str) -> None:
        with pytest.raises(RunInUse, match="five agents"):
            pack(archive, request(name="other"), tmp_path / "agents")
        refused.append(line)

    pack(archive, request(), tmp_path / "agents", pack_another)
    assert len(refused) == len(BOTS)


def test_the_configuration_has_no_addresses(tmp_path: Path) -> None:
    config = load("laptop-1v1", [
        "store.state_url=redis://user:hunter2@machine:1", "blobs.url=s3://pail/path?key=hunter2", "seed=7",
        "services.inference.addresses=[machine:1]", "services.controller.tokens_file=/hunter2",
        "learning.batch_samples=32", "tracing.endpoint=http://machine", "services.rollout.games=3"])
    found = portable_config(config, "tiny")
    assert found.name == "tiny" and found.seed == 7 and found.game == config.game
    assert found.learning == config.learning and found.services.rollout.games == 3
    text = json.dumps(found.model_dump(mode="json"))
    assert not any(word in text for word in ("hunter2", "machine", "pail"))


def test_the_whole_configuration_is_stored(shared_agent: PackedAgent) -> None:
    tree = yaml_core.load((shared_agent.path / CONFIG).read_text())
    assert tree == validate({}, "defaults").model_dump(mode="json", by_alias=True) | tree
    assert validate(tree, "stored") == shared_agent.config


def stale(agent: PackedAgent) -> PackedAgent:
    """Return the agent with a card, a replay and games of an earlier game, in which it lost to every bot."""
    games = agent.games.model_copy(update={
        "rules": REVISION - 1, "games": [row.model_copy(update={"score": 0.0}) for row in agent.games.games]})
    check = agent.card.check.model_copy(update={"hash": "0" * 16, "timesteps": 1})
    card = agent.card.model_copy(update={"check": check, "rules": REVISION - 1, "scores": games.scores()})
    (agent.path / GAMES).write_text(packing.games_text(games))
    (agent.path / "card.md").write_text(packing.card_text(card))
    agent.replay.write_bytes(b"stale")
    return PackedAgent(agent.path)


def test_renewal_leaves_the_scores(agent: PackedAgent) -> None:
    replay, check = agent.replay.read_bytes(), agent.card.check
    before = stale(agent).card
    renewed = renew(PackedAgent(agent.path))
    assert renewed == before.model_copy(update={"check": check}) == PackedAgent(agent.path).card
    assert agent.replay.read_bytes() == replay


def test_renewal_evaluates_again(agent: PackedAgent) -> None:
    files, card = {path.name: path.read_bytes() for path in agent.path.iterdir()}, agent.card
    renewed = renew(stale(agent), EvaluationRequest(games=2), ["It is slow."])
    assert renewed == card.model_copy(update={"weaknesses": ["It is slow."]}) == PackedAgent(agent.path).card
    after = {path.name: path.read_bytes() for path in agent.path.iterdir()}
    assert {name: data for name, data in after.items() if data != files.get(name)}.keys() == {"card.md"}


@pytest.mark.parametrize(("weaknesses", "problem"), [
    ([""], "weaknesses.0: String should have at least 1"), (["It is slow."] * 33, "weaknesses: List should have at"),
    (["ä" * 2000] * 17, "has .* bytes, at most 65536 are allowed")], ids=["empty", "many", "large"])
def test_renewal_refuses_a_text_that_no_card_holds(agent: PackedAgent, weaknesses: list[str], problem: str) -> None:
    """It changes no file: an agent whose card cannot be read is lost."""
    before = {path.name: path.read_bytes() for path in agent.path.iterdir()}
    with pytest.raises(AgentUnavailable, match=problem):
        renew(agent, EvaluationRequest(games=2), weaknesses)
    assert {path.name: path.read_bytes() for path in agent.path.iterdir()} == before


def test_an_interrupted_renewal_continues(agent: PackedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    card, said, before = agent.card, list[str](), stale(agent)
    with monkeypatch.context() as patched:
        interrupt_after_the_first_game(patched, "scripted")
        with pytest.raises(KeyboardInterrupt):
            renew(before, EvaluationRequest(games=2))
    assert PackedAgent(agent.path).card == before.card
    assert renew(PackedAgent(agent.path), EvaluationRequest(games=2), say=said.append) == card
    assert [line.split(":")[0] for line in said] == ["scripted", "scripted-hard"]


def test_an_agent_plays_with_other_settings(agent: PackedAgent) -> None:
    card, config = agent.card, agent.config
    frameskip = config.game.frameskip
    renewed = renew(agent, EvaluationRequest(games=2), overrides=[f"game.frameskip={2 * frameskip}"])
    again = PackedAgent(agent.path)
    assert again.card == renewed and [str(setting) for setting in renewed.settings] == [
        f"game.frameskip {2 * frameskip} (trained with {frameskip})"]
    assert again.config.game == config.game.model_copy(update={"frameskip": 2 * frameskip})
    assert again.games.scores() == renewed.scores and renewed.check.hash != card.check.hash
    assert play_check(again.policy(), again.config.game, timesteps=renewed.check.timesteps) == renewed.check
    assert renew(again, EvaluationRequest(games=2), overrides=[f"game.frameskip={frameskip}"]) == card
    assert PackedAgent(agent.path).config == config


@pytest.mark.parametrize(("overrides", "games", "problem"), [
    (["game.frameskip=8"], 0, "add --games 100"),
    (["game.patch=7.19"], 2, "five train --from tiny --set game.patch=7.19"),
    (["frameskip=8"], 2, "other values of game.frameskip, .* only"), (["game.frameskip=0"], 2, "game.frameskip")])
def test_renewal_refuses_other_settings(agent: PackedAgent, overrides: list[str], games: int, problem: str) -> None:
    before = {path.name: path.read_bytes() for path in agent.path.iterdir()}
    with pytest.raises((AgentUnavailable, ConfigError), match=problem):
        renew(agent, EvaluationRequest(games=games), overrides=overrides)
    assert {path.name: path.read_bytes() for path in agent.path.iterdir()} == before


def test_games_of_an_interrupted_renewal_with_other_settings_do_not_count(agent: PackedAgent,
                                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    with monkeypatch.context() as patched:
        interrupt_after_the_first_game(patched, "scripted")
        with pytest.raises(KeyboardInterrupt):
            renew(agent, EvaluationRequest(games=2), overrides=["game.max_game_seconds=30"])
    assert PackedAgent(agent.path).config == agent.config
    renew(PackedAgent(agent.path), EvaluationRequest(games=2), say=said.append)
    assert [line.split(":")[0] for line in said] == list(BOTS)


def test_a_renewal_continues_after_a_crash_before_its_last_file(agent: PackedAgent,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    write, frameskip = packing.replace_text, agent.config.game.frameskip
    overrides, games = [f"game.frameskip={2 * frameskip}"], EvaluationRequest(games=2)

    def crash(path: Path, text: str) -> None:
        if path.name == CONFIG:
            raise KeyboardInterrupt
        write(path, text)

    with monkeypatch.context() as patched:
        patched.setattr(packing, "replace_text", crash)
        with pytest.raises(KeyboardInterrupt):
            renew(agent, games, overrides=overrides)
    renewed = renew(PackedAgent(agent.path), games, overrides=overrides)
    assert [(s.value, s.trained) for s in renewed.settings] == [(2 * frameskip, frameskip)]
    assert PackedAgent(agent.path).config.game.frameskip == 2 * frameskip


def test_facts_are_those_of_the_packed_version(tmp_path: Path) -> None:
    seen: list[int] = []

    def facts(version: int) -> TrainingFacts:
        seen.append(version)
        return request().facts(version)

    agent = pack(ended_run(tmp_path / "runs"), request(facts=facts), tmp_path / "agents")
    assert seen == [VERSION] and agent.card.training.version == VERSION

"""Evaluation games in several processes."""

from pathlib import Path

import pytest

from dota.vec_game import BOTS
from five.packed_agents import evaluation
from five.packed_agents.evaluation import WeightsFile, play_games, recorded_games
from five.packed_agents.folder import WEIGHTS, PackedAgent


def test_several_processes_play_every_game_once(shared_agent: PackedAgent, tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "BOTS", {"random": BOTS["random"]})
    monkeypatch.setattr(evaluation, "CHUNK_PAIRS", 1)
    journal, said = tmp_path / "games.jsonl", list[str]()
    weights = WeightsFile(shared_agent.path / WEIGHTS, shared_agent.card.weights_sha256, shared_agent.spec)
    play_games(journal, weights, 0, 1)
    once = recorded_games(journal, weights, 0)
    play_games(journal, weights, 0, 3, 2, said.append)
    games = recorded_games(journal, weights, 0)
    assert [(row.pair, row.side) for row in games.games] == [(pair, side) for pair in range(3) for side in (0, 1)]
    assert games.games[:2] == once.games  # what was played is not played again
    (line,) = said
    assert line.startswith("random: 6 games, score ")
    assert recorded_games(journal, weights, 1).games == []  # of another seed

"""`five agents`, and `--agent` of the commands that play, draft and render."""

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from dota import playback
from dota.replay import Replay
from dota.vec_game import BOTS
from five.cli import watch
from five.cli.agents import MOST_GAMES, table
from five.cli.main import main
from five.packed_agents.card import card_text
from five.packed_agents.folder import PackedAgent, packed_agents
from five.packed_agents.games import MAX_GAMES
from tests.packed_agents.tiny_agent import VERSION, ended_run, packed_agent

torch.set_num_threads(1)
FACTS = ["--trained-by", "make train", "--commit", "0123abc", "--hero-steps", "12", "--hours", "0.5",
         "--hardware", "a toaster"]


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PackedAgent:
    """The agent "tiny" in the working folder's agents/, which are searched first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIVE_AGENTS", str(tmp_path / "agents"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return packed_agent(tmp_path)


def test_agents_are_listed_with_mode_and_scores(agent: PackedAgent, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents"]) == 0
    header, row, *_ = capsys.readouterr().out.splitlines()
    assert header.split() == ["agent", "mode", *(score.against for score in agent.card.scores)]
    assert row.split()[:2] == ["tiny", "1v1_mid"]
    assert row.count(f"{100 * agent.card.scores[0].score:.0f} (") >= 1 and row.count("-") >= len(agent.card.scores)
    assert main(["agents", "--json"]) == 0
    assert agent.card.model_dump(mode="json") in json.loads(capsys.readouterr().out)


def test_a_damaged_agent_does_not_hide_the_others(agent: PackedAgent, capsys: pytest.CaptureFixture[str]) -> None:
    (agent.path.parent / "broken").mkdir()
    (agent.path.parent / "broken" / "card.md").write_text("no card")
    assert main(["agents"]) == 1
    captured = capsys.readouterr()
    assert "tiny" in captured.out and f"{agent.path.parent}/broken/card.md: " in captured.err


def test_an_agent_is_packed_and_renewed(agent: PackedAgent, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["agents", "pack", "trial", "--name", "second", "--weakness", "slow", "--weakness", "timid", *FACTS]
    assert main([*command, "--seed", "1"]) == 2
    assert "--games 100" in capsys.readouterr().err
    assert main([*command, "--games", "2", "--seed", "1", "--cost", "nothing", "--summary", "A toy."]) == 0
    second = PackedAgent(agent.path.parent / "second")
    assert capsys.readouterr().out.endswith(f"{second.path}\n")
    card = second.card
    assert (card.summary, card.weaknesses, card.license) == ("A toy.", ["slow", "timid"], "Apache-2.0")
    assert (card.training.command, card.training.cost, card.training.hours) == ("make train", "nothing", 0.5)
    assert main(["agents", "renew", "second"]) == 0
    assert card.check.hash in capsys.readouterr().out
    assert main(["agents", "renew", "second", "--games", "2", "--weakness", "lazy"]) == 0  # with the same seed
    assert PackedAgent(second.path).card == card.model_copy(update={"weaknesses": ["lazy"]})
    assert main([*command, "--seed", "1"]) == 2
    assert f"{second.path} exists" in capsys.readouterr().err


def test_more_games_than_a_file_holds_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert MOST_GAMES * len(BOTS) == MAX_GAMES
    with pytest.raises(SystemExit):
        main(["agents", "pack", "trial", "--name", "x", "--weakness", "y", "--games", str(MOST_GAMES + 1)])
    assert "an integer from 1 to 5000 is required" in capsys.readouterr().err


def test_missing_facts_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
                                     ) -> None:
    monkeypatch.chdir(tmp_path)
    ended_run(tmp_path / "runs")
    assert main(["agents", "pack", "trial", "--name", "x", "--weakness", "y", "--into", "here", *FACTS[2:]]) == 2
    assert "add --trained-by" in capsys.readouterr().err and not (tmp_path / "here").exists()


def test_eval_plays_an_agent_without_a_run(agent: PackedAgent, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["eval", "--agent", "tiny", "--games", "2"]
    assert main([*command, "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert (outcome["agent"], outcome["against"], outcome["games"], outcome["replay"]) == ("tiny", "scripted", 2, "")
    score = next(score for score in agent.card.scores if score.against == "scripted")
    assert (outcome["won"], outcome["drawn"], outcome["lost"]) == (
        score.won, score.drawn, score.lost)
    assert main([*command, "--against", str(agent.path), "--replay", "new/game.replay"]) == 0
    assert capsys.readouterr().out.startswith("agent tiny against tiny: won ")
    for _ in playback.play(Replay.load("new/game.replay")):
        pass


def test_a_match_outlives_an_unwritable_replay(agent: PackedAgent, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").touch()
    command = ["eval", "--agent", "tiny", "--games", "2", "--json", "--replay", "file/game.replay"]
    assert main(command) == 0
    captured = capsys.readouterr()
    outcome = json.loads(captured.out)
    assert outcome["won"] + outcome["drawn"] + outcome["lost"] == 2 and outcome["replay"] == ""
    assert "the replay is not saved: file/game.replay: " in captured.err


def test_a_runs_version_plays_an_agent(agent: PackedAgent, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "--run", "trial", "--against", "tiny", "--games", "2", "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert (outcome["version"], outcome["against"]) == (VERSION, "tiny")


def test_rules_that_changed_are_printed(agent: PackedAgent, capsys: pytest.CaptureFixture[str]) -> None:
    (agent.path / "card.md").write_text(card_text(agent.card.model_copy(update={"rules": 1})))
    assert main(["eval", "--agent", "tiny", "--games", "2", "--json"]) == 0
    assert "the rules have changed since agent 'tiny' was evaluated: " in capsys.readouterr().err
    assert main(["agents"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^tiny \*", out, re.M) and "`five eval --agent NAME` prints what" in out


def test_list_of_agents_fits_80_columns() -> None:
    cards = [agent.card for agent in packed_agents().values()]
    assert len(cards) > 3 and max(map(len, table(cards).splitlines())) <= 80


@pytest.mark.parametrize(("arguments", "problem"), [
    (["eval", "--agent", "nobody"], "agent 'nobody'"), (["eval", "--agent", "tiny", "--against", "7"], "--against '7'"),
    (["eval", "--agent", "tiny", "--run", "trial"], "--agent tiny --run"),
    (["watch", "--agent", "tiny", "--run", "trial"], "--agent tiny --run"),
    (["draft", "--agent", "tiny", "--url", "http://x"], "--agent tiny --url"),
    (["play", "--agent", "tiny", "--run", "trial"], "--agent tiny --run"),
    (["play", "--agent", "tiny", "--ratings"], "--agent tiny --ratings"),
    (["eval", "--agent", "tiny", "--version", "4"], "--version 4: a packed agent has one version"),
    (["draft", "--agent", "tiny", "--version", "4"], "--version 4: a packed agent has one version"),
    (["eval", "--agent", "tiny", "--replay", "runs"], "--replay runs: is a folder"),
    (["eval", "--run", "trial", "--replay", "x.replay"], "--replay x.replay: only with --agent"),
    (["watch", "x.replay", "--agent", "tiny"], "one of the three"),
    (["watch", "x.replay", "--run", "trial"], "one of the three"),
    (["train", "--accept-changes"], "--accept-changes: only with --resume"),
    (["train", "--from", "nobody"], "agent 'nobody'")])
def test_refusals_name_the_option(agent: PackedAgent, arguments: list[str], problem: str,
                                  capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert problem in captured.err and not captured.out
    assert sorted(path.name for path in Path("runs").iterdir()) == ["trial"]


def test_play_needs_the_consoles_pages(agent: PackedAgent, monkeypatch: pytest.MonkeyPatch,
                                       capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setattr("five.services.controller.console.static_files.BUILT", tmp_path / "built")
    assert main(["play", "--agent", "tiny"]) == 2
    assert f"{tmp_path}/built is missing" in capsys.readouterr().err


@pytest.mark.usefixtures("own_handlers")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_play_serves_an_agent_until_a_signal(number: signal.Signals, agent: PackedAgent,
                                             monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "index.html").touch()
    monkeypatch.setattr("five.services.controller.console.static_files.BUILT", tmp_path)
    served: list[tuple[object, ...]] = []
    posted: list[tuple[str, object]] = []

    class Controller:
        url = "http://here"

        def __init__(self, *address: str) -> None:
            assert address == ("http://here", "token")

        def post(self, path: str, body: object) -> dict[str, object]:
            posted.append((path, body))
            return {"path": "/#login=x", "game": "abc", "seats": [{"name": "nevermore"}]}

    @contextmanager
    def host(*arguments: object) -> Iterator[SimpleNamespace]:
        served.append(arguments[:2])
        folder = SimpleNamespace(cluster=lambda: SimpleNamespace(rest="http://here"), operator_token=lambda: "token")
        yield SimpleNamespace(folder=folder, check=lambda: os.kill(os.getpid(), number))

    monkeypatch.setattr("five.local.version_host.host_version", host)
    monkeypatch.setattr("five.cli.play.ControllerClient", Controller)
    assert main(["play", "--agent", "tiny", "--team", "dire", "--against", "scripted"]) == 0
    assert served == [(agent.config, VERSION)]
    assert posted == [("play/games", {"team": 1, "against": "scripted"}), ("session/links", {})]
    assert "http://here/play#login=x" in capsys.readouterr().out


def test_the_replay_of_an_agent_is_rendered_here(agent: PackedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[object, ...]] = []
    monkeypatch.setattr(watch, "watch", lambda *arguments: seen.append(arguments) or 0)
    assert main(["watch", "--agent", "tiny"]) == 0
    assert seen == [(str(agent.replay), "tiny.mp4", 8.0, None)]


def test_a_replay_of_another_game_says_what_to_do(agent: PackedAgent, capsys: pytest.CaptureFixture[str]) -> None:
    replay = Replay.load(agent.replay)
    replay.save(agent.replay, 1)
    assert main(["watch", "--agent", "tiny", "--out", "film.gif", "--speed", "100"]) == 2
    assert "five eval --agent tiny" in capsys.readouterr().err


def test_draft_reads_an_agents_win_head(agent: PackedAgent, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # the second call reads the table
        assert main(["draft", "--agent", "tiny", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["facts"]["version"] == VERSION and found["line_ups"] == 1
    assert main(["draft", "--agent", "tiny", "--tables"]) == 0
    assert f"version-{VERSION}" in capsys.readouterr().out
    (folder,) = Path("cache/five/agents").iterdir()
    assert folder.name == f"tiny-{agent.card.weights_sha256[:16]}"


def test_unwritable_cache_is_named_before_a_draft(agent: PackedAgent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "unwritable").symlink_to(tmp_path / "missing")  # also for root
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "unwritable"))
    assert main(["draft", "--agent", "tiny"]) == 2
    captured = capsys.readouterr()
    assert "the table cannot be stored" in captured.err and "set it to a folder that you can write" in captured.err
    assert "reading" not in captured.err

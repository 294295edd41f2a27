"""Games of bots and their table."""

from pathlib import Path

import pytest

from dota.vec_game import Winner
from five.cli.games import as_markdown, read_log, table
from five.cli.main import main
from five.evaluation.bot_games import MARKS, BotGameRecord, TeamRecord, play, quick_game_config


def record(pair: int, side: int, winner: Winner, minutes: float) -> BotGameRecord:
    """Return a finished game; the second team has twice the values of the first."""
    teams = tuple(TeamRecord(kills=10.0 * k, last_hits=50.0 * k, towers_lost=k, roshans=k,
                             first_roshan=1200.0 * k, items={"item_boots": [5.0 * k]},
                             marks={m: {"net_worth": 100.0 * k * m, "xp": 200.0 * k * m, "level": m / 2 + k,
                                        "last_hits": float(k * m)} for m in MARKS})
                  for k in (1, 2))
    return BotGameRecord(pair, side, winner, 60 * minutes, (teams[0], teams[1]), 600.0)


def test_bot_games_are_equal_on_any_number_of_threads() -> None:
    game = quick_game_config().model_copy(update={"max_game_seconds": 60.0})
    one = play(game, "scripted", "scripted-easy", 2, seed=3)
    two = play(game, "scripted", "scripted-easy", 2, seed=3, concurrent=1, threads=2)
    assert [(r.winner, r.seconds, r.teams) for r in one] == [(r.winner, r.seconds, r.teams) for r in two]
    assert [(r.pair, r.first_side) for r in one] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert max(r.teams[0].last_hits for r in one) > 0


def test_bot_against_itself_plays_each_seed_once() -> None:
    game = quick_game_config().model_copy(update={"max_game_seconds": 120.0})
    played = play(game, "scripted", "scripted", 3, seed=3)
    assert [(r.pair, r.first_side) for r in played] == [(0, 0), (1, 0), (2, 0)]
    assert len({r.teams[0].last_hits + 1000 * r.teams[1].last_hits for r in played}) > 1
    assert not [line for line in table("scripted", "scripted", played) if "beats" in line.what]


def test_scores_are_of_the_first_bot() -> None:
    assert record(0, 0, Winner.RADIANT, 30).score == 1
    assert record(0, 1, Winner.RADIANT, 30).score == 0
    assert record(0, 1, Winner.DIRE, 30).score == 1
    assert record(0, 0, Winner.DRAW, 30).score == 0.5


def test_table_counts_sides_and_bots_separately() -> None:
    """Radiant wins three of four; the first bot, which played it in two of them, wins half."""
    games = [record(0, 0, Winner.RADIANT, 30), record(0, 1, Winner.RADIANT, 40),
             record(1, 0, Winner.RADIANT, 50), record(1, 1, Winner.DIRE, 70)]
    rows = {line.what: line.value for line in table("scripted-hard", "scripted", games)}
    assert rows["Radiant wins"].startswith("75.0 %")
    assert rows["scripted-hard beats scripted"].startswith("75.0 %")
    assert "median 45.0" in rows["length, minutes"] and "20 to 60: 75 %" in rows["length, minutes"]
    assert rows["net worth a hero at 10:00"].startswith("1,500")
    assert rows["level a hero at 20:00"].startswith("11.5")
    assert rows["first tower, minute"].startswith("10.0")
    assert rows["first Aegis, minute"].startswith("20.0")
    assert rows["Aegis taken, winners and losers"] == "1.25, 1.75"
    assert "| Radiant wins |" in as_markdown(table("scripted-hard", "scripted", games))


def test_log_accumulates_games_of_several_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "games.jsonl"
    asked = ["games", "scripted", "random", "--games", "2", "--quick", "--threads", "1", "--log", str(log)]
    assert main(asked) == 0 and main([*asked, "--seed", "1"]) == 0
    played = read_log(log, "scripted", "random")
    assert len(played) == 4 and len({(r.pair, r.first_side) for r in played}) == 4
    assert "| games | 4, " in capsys.readouterr().out
    assert main([*asked[:4], "0", *asked[5:]]) == 0
    assert len(log.read_text().splitlines()) == 4
    assert main(["games", "scripted", "scripted-easy", *asked[3:]]) == 2
    assert "line 1: not a game of scripted against scripted-easy" in capsys.readouterr().err


def test_log_of_a_killed_call_continues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "games.jsonl"
    asked = ["games", "scripted", "random", "--games", "2", "--quick", "--threads", "1", "--log", str(log)]
    assert main(asked) == 0
    whole = log.read_bytes()
    log.write_bytes(whole + whole[:40])
    assert main([*asked, "--seed", "1"]) == 0
    assert len(read_log(log, "scripted", "random")) == 4 and log.read_bytes().startswith(whole)
    log.write_bytes(whole + b"{}\n")
    assert main(asked) == 2 and "line 3: not a game of scripted against random" in capsys.readouterr().err


def test_unusable_log_is_refused_before_the_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("five.cli.games.play", lambda *arguments, **options: pytest.fail("a game was played"))
    assert main(["games", "--log", str(tmp_path / "missing" / "games.jsonl")]) == 2
    assert capsys.readouterr().err.endswith("games.jsonl: No such file or directory\n")


def test_unknown_bots_are_named() -> None:
    with pytest.raises(ValueError, match="unknown bot 'clever'"):
        play(quick_game_config(), "clever", "random", 1)


@pytest.mark.parametrize(("arguments", "told"), [
    (["clever", "random"], "unknown bot 'clever'; known bots: random, "), (["--games", "0"], "--games 0: no game")])
def test_command_without_games_names_the_reason(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
                                                ) -> None:
    assert main(["games", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["games", "scripted", "random", "--games", "2", "--quick", "--threads", "1", "--json"]) == 0
    assert '"Radiant wins"' in capsys.readouterr().out

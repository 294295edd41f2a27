"""Each finished line of the log is returned once, whatever happens to the file, and the known ones are understood."""

import json
import os
from pathlib import Path

import pytest

from five.real_client.console_log import BotReport, ClientFailure, ConsoleLog, Winner, parse_line


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


@pytest.fixture
def log(tmp_path: Path) -> ConsoleLog:
    return ConsoleLog(tmp_path)


def test_only_finished_lines_are_returned_once(log: ConsoleLog) -> None:
    assert log.lines() == []
    append(log.path, "one\ntw")
    assert log.lines() == ["one"] and log.lines() == []
    append(log.path, "o\r\n\nthree\n")
    assert log.lines() == ["two", "", "three"] and log.lines() == []


def test_a_renamed_log_goes_on_in_a_new_file(log: ConsoleLog) -> None:
    append(log.path, "one\ntw")
    assert log.lines() == ["one"]
    log.path.rename(log.folder / "console.1.log")
    append(log.folder / "console.1.log", "o\n")
    os.utime(log.folder / "console.1.log", (1e9, 1e9))
    append(log.path, "three\n")
    assert log.lines() == ["two", "three"] and log.lines() == []


def test_a_log_that_goes_on_under_a_number_is_read(log: ConsoleLog) -> None:
    append(log.path, "one\n")
    append(log.folder / "console.1.log", "two\n")
    append(log.folder / "other.log", "no\n")
    os.utime(log.path, (1e9, 1e9))
    assert log.lines() == ["one", "two"]


def test_a_shortened_log_is_read_from_its_start(log: ConsoleLog) -> None:
    append(log.path, "one\ntwo\nhalf")
    assert log.lines() == ["one", "two"]
    log.path.write_text("new\n")
    assert log.lines() == ["new"]


def test_a_replaced_log_of_the_same_length_or_longer_is_read_from_its_start(log: ConsoleLog) -> None:
    append(log.path, "one\ntwo\n")
    assert log.lines() == ["one", "two"]
    log.path.write_text("six\nten\nsome more\n")
    assert log.lines() == ["six", "ten", "some more"]


def test_bytes_that_are_no_text_are_replaced(log: ConsoleLog) -> None:
    log.path.write_bytes(b"a\xff\xfeb\n")
    assert log.lines() == ["a\ufffd\ufffdb"]


def test_an_endless_line_needs_little_memory(log: ConsoleLog) -> None:
    append(log.path, "x" * 300_000)
    assert log.lines() == []
    append(log.path, "x good guys win = 1\n")
    (line,) = log.lines()
    assert len(line) <= 65_536 and parse_line(line) == Winner(2)


@pytest.mark.parametrize(("line", "team"), [
    ("06/21 12:00:01 Building: npc_dota_badguys_fort destroyed at 5528.0", 2),
    ("Building: npc_dota_goodguys_fort destroyed", 3),
    ("11/27 15:00:00 Match signout: good guys win = 1, mode = 21", 2),
    ("good guys win = 0", 3),
])
def test_the_winner_is_read(line: str, team: int) -> None:
    assert parse_line(line) == Winner(team)


def test_reports_of_bots_are_read() -> None:
    line = ('[VScript] FIVE {"kind":"done","team":2,"player":3,"time":-12.300,"sequence":17,"executed":2,"refused":1,'
            '"reason":"no unit 5"}')
    assert parse_line(f"11/27 15:00:00 {line}\r") == BotReport(kind="done", team=2, player=3, time=-12.3, sequence=17,
                                                               executed=2, refused=1, reason="no unit 5")


def test_a_failure_is_read() -> None:
    text = "FATAL ERROR: Watchdog timeout exceeded in Lua script code, exiting"
    assert parse_line(f"09/20 10:00:00 {text}") == ClientFailure(text)


@pytest.mark.parametrize("change", [{"kind": "other"}, {"team": 4}, {"player": -1}, {"player": "3"}, {"time": None},
                                    {"sequence": 1.5}, {"more": 1}, {"executed": 1 << 40}])
def test_a_damaged_report_is_no_report(change: dict[str, object]) -> None:
    report = {"kind": "done", "team": 2, "player": 3, "time": 0.0, "sequence": 17}
    assert parse_line("FIVE " + json.dumps(report)) is not None
    assert parse_line("FIVE " + json.dumps({**report, **change})) is None


@pytest.mark.parametrize("line", ["", "FIVE {", "FIVE {}", "good guys win = 2", "FIVE " + "{" * 2000,
                                  "Building: npc_dota_goodguys_tower1_mid destroyed"])
def test_other_lines_tell_nothing(line: str) -> None:
    assert parse_line(line) is None

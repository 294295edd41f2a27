"""The bots execute each order of an action file once and hold the game until the next file."""

import json
from pathlib import Path
from typing import Any

import pytest

from five.real_client.action_files import ActionFile
from tests.real_client.bot_vm import BotVm, Hung
from tests.real_client.recording_api import FIRST, HEROES, RecordingApi, start_bots

PERIOD = 4 / 30


def stop(player: int, delay: int = 0) -> dict[str, Any]:
    return {"actionType": "DOTA_UNIT_ORDER_STOP", "player": player, "actionDelay": delay}


def reports(api: RecordingApi, kind: str) -> list[dict[str, Any]]:
    lines = [json.loads(line.removeprefix("FIVE ")) for line in api.lines if line.startswith("FIVE ")]
    return [line for line in lines if line["kind"] == kind]


def tick(api: RecordingApi, vm: BotVm) -> None:
    """Let each bot think, then advance the clock by a tick."""
    for player in range(len(HEROES)):
        vm.think(FIRST + player)
    api.time += 1 / 30


def counts(api: RecordingApi) -> list[int]:
    return [len(calls) for calls in api.calls]


def test_bots_report_that_they_are_ready_once(tmp_path: Path) -> None:
    api, vm = start_bots(tmp_path)
    api.time = -89.5
    for _ in range(3):
        tick(api, vm)
    assert reports(api, "ready") == [
        {"kind": "ready", "team": 2, "player": i, "time": -89.5, "hero": name} for i, name in enumerate(HEROES)]


def test_each_order_is_executed_once_by_its_hero(tmp_path: Path) -> None:
    api, vm = start_bots(tmp_path)
    file = ActionFile(tmp_path / "bots", 2)
    file.write([stop(1), stop(3), stop(3)], api.time, api.time + 2 * PERIOD)
    for _ in range(8):
        tick(api, vm)
    assert counts(api) == [0, 1, 0, 2, 0]
    assert [(r["player"], r["sequence"], r["executed"], r["refused"]) for r in reports(api, "done")] == [
        (1, 1, 1, 0), (3, 1, 2, 0)]


def test_the_same_order_in_a_second_file_is_executed_again(tmp_path: Path) -> None:
    api, vm = start_bots(tmp_path)
    file = ActionFile(tmp_path / "bots", 2)
    for round in range(3):
        file.write([stop(0)], api.time, api.time + PERIOD)
        for _ in range(4):
            tick(api, vm)
        assert counts(api) == [round + 1, 0, 0, 0, 0]


def test_orders_of_a_file_that_was_replaced_unread_are_executed(tmp_path: Path) -> None:
    api, vm = start_bots(tmp_path)
    file = ActionFile(tmp_path / "bots", 2)
    for player in (0, 1, 2):
        file.write([stop(player)], api.time, api.time + 1)
    tick(api, vm)
    file.write([stop(3)], api.time, api.time + 1)
    for _ in range(3):
        tick(api, vm)
    assert counts(api) == [1, 1, 1, 1, 0]


def test_bots_wait_for_the_next_file_when_their_time_is_up(tmp_path: Path) -> None:
    api, vm = start_bots(tmp_path)
    file = ActionFile(tmp_path / "bots", 2)
    for _ in range(30):  # before the first file they do not wait
        tick(api, vm)
    file.write([], api.time, api.time + PERIOD)
    for _ in range(4):
        tick(api, vm)
    with pytest.raises(Hung, match="actions_t2 was loaded 51 times"):
        vm.think(FIRST)


def test_a_late_file_ends_the_wait(tmp_path: Path) -> None:
    api, vm = start_bots(tmp_path, most_loads=1000)
    file = ActionFile(tmp_path / "bots", 2)
    file.write([], api.time, api.time)
    tick(api, vm)
    loads = api.loads

    def loading() -> None:
        api.loads += 1
        if api.loads == loads + 400:
            file.write([stop(0)], api.time, api.time + PERIOD)
    api.loading = loading  # type: ignore[method-assign]
    tick(api, vm)
    assert api.loads >= loads + 400 and counts(api) == [1, 0, 0, 0, 0]


def test_a_release_ends_every_wait(tmp_path: Path) -> None:
    api, vm = start_bots(tmp_path)
    file = ActionFile(tmp_path / "bots", 2)
    file.write([], api.time, api.time)
    file.release()
    for _ in range(300):
        tick(api, vm)
    assert counts(api) == [0] * 5


def test_a_delayed_order_waits_its_ticks(tmp_path: Path) -> None:
    api, vm = start_bots(tmp_path)
    ActionFile(tmp_path / "bots", 2).write([stop(0), stop(0, delay=1), stop(0, delay=3)], api.time, api.time + 1)
    seen = []
    for _ in range(6):
        tick(api, vm)
        seen.append(counts(api)[0])
    assert seen == [1, 2, 2, 3, 3, 3]


def test_a_damaged_or_missing_file_changes_nothing(tmp_path: Path) -> None:
    api, vm = start_bots(tmp_path)
    path = ActionFile(tmp_path / "bots", 2).path
    for text in ("", "return", "return 'x'", "return {sequence='1'}", "return {}", "return 5", "return {",
                 "return {batches={}}"):
        path.write_text(text)
        tick(api, vm)
    path.unlink()
    tick(api, vm)
    assert counts(api) == [0] * 5 and not reports(api, "done")


def test_idle_bots_think_nothing_and_builtin_ones_do_not_exist(tmp_path: Path) -> None:
    api, vm = start_bots(tmp_path / "idle", "idle")
    ActionFile(tmp_path / "idle/bots", 2).write([stop(0)], 0.0, 1.0)
    tick(api, vm)
    assert counts(api) == [0] * 5 and not api.lines
    api, vm = start_bots(tmp_path / "builtin", "builtin")
    assert not vm.add_bot(FIRST)

"""An action file is replaced in one step and returns JSON as a Lua string."""

import json
import threading
from pathlib import Path

import pytest
from lupa.lua51 import LuaRuntime

from five.real_client.action_files import BATCHES, RELEASED, ActionFile, write_lua


def content(path: Path) -> dict[str, object]:
    """Return what the file returns to Lua, decoded."""
    lua = LuaRuntime(register_eval=False, register_builtins=False)
    decoded: dict[str, object] = json.loads(lua.execute(path.read_text()))
    return decoded


def test_a_file_holds_the_orders_their_number_and_the_times(tmp_path: Path) -> None:
    file = ActionFile(tmp_path, 3)
    stop = {"actionType": "DOTA_UNIT_ORDER_STOP", "player": 5}
    assert [file.write([stop], -12.25, -12.0), file.write([], -12.0, -11.75)] == [1, 2]
    assert file.path.name == "actions_t3.lua"
    assert content(file.path) == {"sequence": 2, "dotaTime": -12.0, "through": -11.75, "batches": [
        {"sequence": 1, "actions": [stop]}, {"sequence": 2, "actions": []}]}


def test_a_file_holds_the_orders_of_the_last_files(tmp_path: Path) -> None:
    file = ActionFile(tmp_path, 2)
    for _ in range(BATCHES + 3):
        file.write([], 0.0, 1.0)
    batches = content(file.path)["batches"]
    assert isinstance(batches, list) and [batch["sequence"] for batch in batches] == [4, 5, 6, 7]


def test_a_release_lets_the_bots_go_on_for_ever(tmp_path: Path) -> None:
    file = ActionFile(tmp_path, 2)
    file.release()
    assert content(file.path)["through"] == RELEASED


@pytest.mark.parametrize("text", ["'", "a\\'b", "\\", "\"'\"", "\n\t\x00\x7f", "é 漢 \U0001f600", "]]", "return 'x'"])
def test_every_text_survives_quoting(tmp_path: Path, text: str) -> None:
    write_lua(tmp_path / "x.lua", {"message": text})
    assert content(tmp_path / "x.lua") == {"message": text}


def test_numbers_that_json_lacks_are_refused(tmp_path: Path) -> None:
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError):
            write_lua(tmp_path / "x.lua", {"x": number})
    assert not list(tmp_path.iterdir())


def test_a_reader_never_sees_a_part_of_a_file(tmp_path: Path) -> None:
    file = ActionFile(tmp_path, 2)
    actions = [{"actionType": "ACTION_CHAT", "chat": {"message": "x" * 2000}}] * 20
    file.write(actions, 0.0, 1.0)
    ended = threading.Event()

    def write() -> None:
        for _ in range(100):
            file.write(actions, 0.0, 1.0)
        ended.set()
    writer = threading.Thread(target=write)
    writer.start()
    sizes = set()
    while not ended.is_set():
        text = file.path.read_text()
        assert text.startswith("return '{") and text.endswith("}'")
        sizes.add(len(text))
    writer.join()
    assert sizes and [path.name for path in tmp_path.iterdir()] == ["actions_t2.lua"]

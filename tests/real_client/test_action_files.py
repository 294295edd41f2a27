"""An action file is replaced in one step and returns its content as a Lua table."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dota.spaces import TargetType
from five.real_client.action_files import BATCHES, RELEASED, ActionFile, write_lua
from tests.real_client.bot_vm import read_lua

KEYS = st.text("abcdefgh_-", min_size=1, max_size=6)
VALUES = st.recursive(
    st.booleans() | st.integers(-2**31, 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.integers(-9, 9), inner, max_size=4),
    max_leaves=12)


def as_lua(value: Any) -> Any:
    """Return a value as Lua has it: a table with the keys 1, 2 and so on is a list, an empty one too."""
    if isinstance(value, dict):
        if sorted(value, key=str) == list(range(1, len(value) + 1)):
            return [as_lua(value[key]) for key in sorted(value)]
        return {key: as_lua(inner) for key, inner in value.items()}
    return [as_lua(inner) for inner in value] if isinstance(value, list) else value


@settings(max_examples=100, deadline=None)
@given(content=st.dictionaries(KEYS, VALUES, max_size=4))
@example(content={"a": {2: [], 1: []}})
def test_written_content_is_read_back(tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("lua") / "x.lua"
    write_lua(path, content)
    assert read_lua(path) == as_lua(content)


def test_a_file_holds_the_orders_their_number_and_the_times(tmp_path: Path) -> None:
    file = ActionFile(tmp_path, 3)
    stop = {"actionType": "DOTA_UNIT_ORDER_STOP", "player": 5}
    assert [file.write([stop], -12.25, -12.0), file.write([], -12.0, -11.75)] == [1, 2]
    assert file.path.name == "actions_t3.lua"
    assert read_lua(file.path) == {"sequence": 2, "dotaTime": -12.0, "through": -11.75, "batches": [
        {"sequence": 1, "actions": [stop]}, {"sequence": 2, "actions": []}]}


def test_a_file_holds_the_orders_of_the_last_files(tmp_path: Path) -> None:
    file = ActionFile(tmp_path, 2)
    for _ in range(BATCHES + 3):
        file.write([], 0.0, 1.0)
    batches = read_lua(file.path)["batches"]
    assert isinstance(batches, list) and [batch["sequence"] for batch in batches] == [4, 5, 6, 7]


def test_a_release_lets_the_bots_go_on_for_ever(tmp_path: Path) -> None:
    file = ActionFile(tmp_path, 2)
    file.release()
    assert read_lua(file.path)["through"] == RELEASED


@pytest.mark.parametrize("text", [
    "'", "a\\'b", "\\", "\"'\"", "\n\t\x00\x7f", "é 漢 \U0001f600", "]]", "return 'x'", "\"]] --", "\\065", "%d"])
def test_every_text_survives_quoting(tmp_path: Path, text: str) -> None:
    write_lua(tmp_path / "x.lua", {"message": text})
    assert read_lua(tmp_path / "x.lua") == {"message": text}


def test_nothing_is_nil(tmp_path: Path) -> None:
    write_lua(tmp_path / "x.lua", {"a": None, "b": 1})
    assert read_lua(tmp_path / "x.lua") == {"b": 1}


def test_numbers_of_numpy_and_enumerations_are_written(tmp_path: Path) -> None:
    write_lua(tmp_path / "x.lua", {"x": np.float64(-1.5), "action": TargetType.WARD})
    assert read_lua(tmp_path / "x.lua") == {"x": -1.5, "action": 5}


def test_numbers_without_a_literal_are_refused(tmp_path: Path) -> None:
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
        assert text.startswith("return {") and text.endswith("}")
        sizes.add(len(text))
    writer.join()
    assert sizes and [path.name for path in tmp_path.iterdir()] == ["actions_t2.lua"]

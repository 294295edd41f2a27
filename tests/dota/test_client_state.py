"""Decoder of a client's world states, on hand-made bytes and on recorded frames (`recorded_states.py`)."""

import math
import struct
from typing import Any

import pytest

from dota.client_state import read_world_state
from tests.dota.client_frames import field, frame, message, unit, vector
from tests.dota.recorded_states import NAMES, frames, recording


def test_frame_decodes_with_its_values() -> None:
    ability = message((1, 77), (2, 5059), (3, 2), (6, 3), (12, 4.5), (25, 0))
    item = message((2, 44), (3, 15), (30, 2))
    glyph = message((1, "modifier_fountain_glyph"), (2, 1), (5, 2.5))
    forever = message((1, "modifier_truesight"), (5, -1.0))
    shot = message((1, 2049), (5, vector(1.0, 2.0)), (6, 900), (8, 1), (9, 6))
    u = unit((49, 4294967295), (90, ability), (91, item), (92, glyph), (92, forever), (93, shot))
    told = read_world_state(frame((24, message((1, 5), (2, 1))), units=(u, unit(handle=2050, name="x"))))
    assert (told["team_id"], told["dota_time"], told["game_time"]) == (2, 12.0, 102.0)
    assert told["players"] == [(0, 2, 11, True, 2, 1)] and told["unknown_fields"] == 0 and told["tree_events"] == 1
    first, second = told["units"]
    assert first["abilities"] == {2: (5059, 3, 4.5, 0)} and first["items"] == {15: (44, 0, 0.0, 2)}
    assert first["modifiers"] == [("modifier_fountain_glyph", 1, 2.5), ("modifier_truesight", 0, -1.0)]
    assert first["projectiles"] == 1 and first["health"] == 500 and first["location"] == (-6000.0, -5000.0, 256.0)
    assert (second["handle"], second["name"], second["abilities"], second["modifiers"]) == (2050, "x", {}, [])


def test_negative_and_wide_numbers_keep_their_value() -> None:
    u = read_world_state(frame(units=(unit((8, -1), (49, 4294967295), (20, -3)),)))["units"][0]
    assert (u["player_id"], u["attack_target_handle"], u["health"]) == (-1, 4294967295, -3.0)


def test_number_may_be_an_integer_or_a_float() -> None:
    """The enemy's glyph cooldown was an integer until 2021 and is a float since; others may change alike."""
    assert read_world_state(frame((8, 40)))["dota_time"] == read_world_state(frame((8, 40.5)))["dota_time"]
    assert read_world_state(frame(units=(unit((20, 123.0)),)))["units"][0]["health"] == 123


def test_fields_of_no_schema_are_skipped_and_counted() -> None:
    strange = frame((500, 3), (501, "text"), (502, 1.5), units=(unit((99, b"\x08\x01"), (98, 7)),))
    told = read_world_state(strange + b"\xa1\x06" + bytes(8))
    assert told["unknown_fields"] == 6 and told["units"][0]["handle"] == 1025


@pytest.mark.parametrize(("data", "why"), [
    (b"", "team_id 0: a frame is of team 2 or 3"),
    (frame()[:-1], "cut off"),
    (frame() + b"\x80", "a number is cut off"),
    (frame() + b"\xff" * 10 + b"\x01", "more than 64 bits"),
    (frame() + b"\x00\x00", "a field has number 0"),
    (frame() + b"\x0b", "unknown wire type"),
    (frame() + field(11, b"\x08"), "Unit field 1: a number is cut off"),
    (frame((3, math.nan)), "field 3: a number is not finite"),
    (frame(units=(unit((22, math.inf)),)), "Unit field 22: a number is not finite"),
    (frame((3, "text")), "field 3: a number has another wire type"),
    (frame((11, 7)), "field 11: a message has another wire type"),
    (frame(units=(unit(handle=0),)), "a unit has no handle"),
    (frame(units=(unit(),) * 1025), "a list is too long"),
    (frame(units=(unit(*((92, b""),) * 9000),)), "a list is too long"),
    (bytes((1 << 20) + 1), "a frame has at most 1048576"),
])
def test_damaged_frame_is_refused_with_a_reason(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match="^world state: ") as refused:
        read_world_state(data)
    assert why in str(refused.value)


def test_frame_after_a_damaged_one_decodes() -> None:
    good = frame()
    for cut in range(1, len(good)):
        try:
            read_world_state(good[:cut])
        except ValueError:
            pass
        assert read_world_state(good)["units"][0]["handle"] == 1025


@pytest.mark.parametrize("name", NAMES)
def test_recorded_frames_decode(name: str) -> None:
    """The frames before the heroes are picked have no units."""
    path = recording(name)
    if path is None:
        pytest.skip("FIVE_RECORDINGS names no folder with the recorded world states")
    decoded, picking = 0, 0
    told: dict[str, Any] = {}
    for data in frames(path):
        told = read_world_state(data)
        assert told["unknown_fields"] == 0
        picking += not told["units"]
        decoded += 1
    assert decoded == 5086 and picking < 100 and told["dota_time"] > 1500


def test_length_prefix_is_the_callers() -> None:
    """A socket's length prefix is not part of a frame."""
    data = frame()
    with pytest.raises(ValueError, match="world state"):
        read_world_state(struct.pack("<I", len(data)) + data)

"""World states that a Dota 2 client sent to a bot (`CMsgBotWorldState`), as kept by the public repository
pydota2/pydota2_archive: replays/2017_10_27_1015_{Radiant,Dire}, one game of patch 7.06f, 26:40 long.

A file is a sequence of frames: a length of four bytes, little endian, then a protobuf message. Only the fields that the
tests read are decoded, without the package protobuf, which the environment does not need. The recording is not part of
this project: FIVE_RECORDINGS names the folder that holds it, plain or packed with xz.
"""

import lzma
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("2017_10_27_1015_Radiant", "2017_10_27_1015_Dire")
TIME, UNIT = 3, 11  # fields of the world state
NAMED = 3  # fields of a unit: its name, and numbers by their name in units.json
NUMBERS = {5: "level", 10: "hull_radius", 15: "vision_day", 16: "vision_night", 21: "hp", 22: "hp_regen", 26: "mana",
           27: "mana_regen", 30: "move_speed", 44: "attack_range", 46: "attack_point", 47: "acquisition_range",
           48: "projectile_speed", 60: "xp", 61: "gold_min", 62: "gold_max", 116: "armor"}


def recording(name: str = NAMES[0]) -> Path | None:
    """Return the file of a side's recording, or None where it is not at hand."""
    folder = Path(os.environ.get("FIVE_RECORDINGS", "."))
    return next((path for path in (folder / name, folder / f"{name}.xz") if path.is_file()), None)


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field; a nested message or text as bytes. Raises ValueError for another kind."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        kind = key & 7
        if kind == 0:
            value: Any
            value, at = varint(message, at)
            value -= (value >> 63) << 64
        elif kind == 5:
            value, at = struct.unpack_from("<f", message, at)[0], at + 4
        elif kind == 2:
            length, at = varint(message, at)
            value, at = message[at:at + length], at + length
        else:
            raise ValueError(f"field {key >> 3} has the unknown kind {kind}")
        yield key >> 3, value


def frames(path: Path) -> Iterator[bytes]:
    data = lzma.open(path).read() if path.suffix == ".xz" else path.read_bytes()
    at = 0
    while at + 4 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        yield data[at + 4:at + 4 + length]
        at += 4 + length


def units(message: bytes) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each unit of a frame: its type and its numbers."""
    for number, value in fields(message):
        if number == UNIT:
            name, numbers = "", {}
            for part, content in fields(value):
                if part == NAMED:
                    name = content.decode()
                elif part in NUMBERS:
                    numbers[NUMBERS[part]] = round(float(content), 3)
            yield name, numbers

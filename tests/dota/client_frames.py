"""Hand-made world states: fields of the protobuf wire format, and a small frame."""

import struct

Value = int | float | str | bytes


def varint(number: int) -> bytes:
    number %= 1 << 64
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def field(number: int, value: Value) -> bytes:
    """Return one field: an int as varint, a float as 32 bits, text and bytes by their length."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields: tuple[int, Value]) -> bytes:
    return b"".join(field(number, value) for number, value in fields)


def vector(x: float, y: float) -> bytes:
    return message((1, x), (2, y), (3, 256.0))


def unit(*more: tuple[int, Value], handle: int = 1025, name: str = "npc_dota_hero_nevermore") -> bytes:
    return message((1, handle), (2, 1), (3, name), (4, 2), (6, vector(-6000.0, -5000.0)), (7, 1), (8, 0), (20, 500),
                   (21, 550), *more)


def frame(*more: tuple[int, Value], units: tuple[bytes, ...] = ()) -> bytes:
    """Return a frame of the Radiant at 0:12 with a player and a unit."""
    player = message((1, 0), (2, 11), (3, 1), (5, 2), (6, 1), (8, 2))
    return message((1, 2), (2, 102.0), (3, 12.0), (4, 5), (10, player), *((11, u) for u in units or (unit(),)), *more)

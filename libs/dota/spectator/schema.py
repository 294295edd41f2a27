"""Schema of a spectator's frame: tables of 16-bit columns, and bitmaps.

A recording carries its schema, so that it stays readable after the game's schema changes; chunks name it by its hash.
"""

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dota import _core
from dota.malformed import MALFORMED
from dota.rewards import SIGNALS

HEROES = 10
CHOICES = 30  # actions that a hero is offered at most
AIMS = 8  # targets that are kept of a hero's choice, the most probable ones
TEAMS, FALLS = 2, 6  # enemy buildings that are kept of what a team foresees, the most probable ones
MAX_ROWS, MAX_FIELDS, MAX_BITS, MAX_PARTS = 4096, 64, 1 << 16, 32

Frame = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class FrameTable:
    """Array uint16 [rows, len(fields)]; a row of zeros is empty."""

    name: str
    rows: int
    fields: tuple[str, ...]

    @property
    def masks(self) -> int:
        """Number of 16-bit words in a row's mask of changed fields."""
        return (len(self.fields) + 15) // 16

    def column(self, field: str) -> int:
        """Return the index of a field. Raises ValueError for an unknown field."""
        return self.fields.index(field)


@dataclass(frozen=True)
class FrameBitmap:
    """Bitmap of ``count`` bits, lowest first, in whole bytes."""

    name: str
    count: int


@dataclass(frozen=True)
class FrameSchema:
    """Parts of a frame, in encoding order."""

    tables: tuple[FrameTable, ...]
    bits: tuple[FrameBitmap, ...]

    @cached_property
    def hash(self) -> bytes:
        """Hash of the schema, 8 bytes."""
        return hashlib.sha256(json.dumps(self.described(), separators=(",", ":")).encode()).digest()[:8]

    def described(self) -> dict[str, Any]:
        """Return the schema as JSON values, the input of ``parse_schema``."""
        return {"tables": [[t.name, t.rows, list(t.fields)] for t in self.tables],
                "bits": [[b.name, b.count] for b in self.bits]}

    @property
    def parts(self) -> tuple[FrameTable | FrameBitmap, ...]:
        """Tables, then bitmaps."""
        return (*self.tables, *self.bits)

    def table(self, name: str) -> FrameTable:
        """Return a table by its name. Raises KeyError."""
        return next((t for t in self.tables if t.name == name), None) or _raise_unknown_table(name)

    def empty(self) -> Frame:
        """Return a frame of zeros."""
        frame: Frame = {t.name: np.zeros((t.rows, len(t.fields)), np.uint16) for t in self.tables}
        frame.update({b.name: np.zeros((b.count + 7) // 8, np.uint8) for b in self.bits})
        return frame


def _raise_unknown_table(name: str) -> FrameTable:
    raise KeyError(f"unknown table {name!r}")


def parse_schema(described: Any) -> FrameSchema:
    """Parse the schema of a recording. Raises ValueError for a malformed one, or one over the size limits."""
    try:
        tables = tuple(FrameTable(str(name), int(rows), tuple(str(f) for f in fields))
                       for name, rows, fields in described["tables"])
        bits = tuple(FrameBitmap(str(name), int(count)) for name, count in described["bits"])
    except MALFORMED as error:
        raise ValueError(f"its schema cannot be read: {error}") from error
    names = [p.name for p in FrameSchema(tables, bits).parts]
    if len(set(names)) != len(names) or len(names) > MAX_PARTS:
        raise ValueError("its schema names a part twice, or has too many")
    if any(not 0 < t.rows <= MAX_ROWS or not 0 < len(t.fields) <= MAX_FIELDS for t in tables):
        raise ValueError("its schema has a table that is too large")
    if any(not 0 < b.count <= MAX_BITS for b in bits):
        raise ValueError("its schema has a bitmap that is too large")
    return FrameSchema(tables, bits)


def _policy_tables() -> Iterable[FrameTable]:
    """Yield the tables of policy outputs.

    Per hero: its value, its team's win probability, the probabilities of available actions and of target units, the
    rewards so far, and the predicted net worth ranks at the end. Per team: the predicted loss of visible enemy
    buildings.
    """
    yield FrameTable("thought", HEROES, ("known", "value", "win", "version", "action", "aim"))
    yield FrameTable("choice", HEROES * CHOICES, ("action", "probability"))
    yield FrameTable("aim", HEROES * AIMS, ("unit", "probability"))
    yield FrameTable("reward", HEROES, tuple(SIGNALS))
    yield FrameTable("rank", HEROES, ("first", "second", "third", "fourth", "fifth"))
    yield FrameTable("fall", TEAMS * FALLS, ("unit", "probability"))


def game_schema(policy_debug: bool) -> FrameSchema:
    """Return the current schema of recordings, with or without policy outputs."""
    tables = tuple(FrameTable(name, rows, tuple(fields)) for name, rows, fields in _core.SEEN_TABLES)
    return FrameSchema(tables + (tuple(_policy_tables()) if policy_debug else ()),
                       tuple(FrameBitmap(*b) for b in _core.SEEN_BITS))


def pack_frame(schema: FrameSchema, frame: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Encode a single frame, for an encoder in another process."""
    return zlib.compress(b"".join(frame[p.name].tobytes() for p in schema.parts), 1)


def unpack_frame(schema: FrameSchema, data: bytes) -> Frame:
    """Decode the result of ``pack_frame``. Raises ValueError for bytes that are not a frame of this schema."""
    frame = schema.empty()
    size = sum(array.nbytes for array in frame.values())
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(data, size + 1)
    except zlib.error as error:
        raise ValueError(f"a frame cannot be unpacked: {error}") from error
    if len(raw) != size or not unpacker.eof:
        raise ValueError(f"a frame has {len(raw)} bytes; its schema needs {size}")
    at = 0
    for array in frame.values():
        array[...] = np.frombuffer(raw, array.dtype, array.size, at).reshape(array.shape)
        at += array.nbytes
    return frame


def same(a: Mapping[str, npt.NDArray[Any]], b: Mapping[str, npt.NDArray[Any]]) -> bool:
    """Return whether two frames are equal."""
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)

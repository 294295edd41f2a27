"""Chunk codec: self-contained pieces of about four seconds of a game. Files and browsers get the same bytes.

A chunk, all numbers little-endian::

    "FVCH"  uint16 format  uint16 steps  8 bytes schema hash  uint32 frame of its first step
    uint32 size unpacked  uint32 size packed  uint32 CRC-32 of the packed bytes  packed: zlib of

    for every step
      for every table  uint16 n, uint16[n] changed rows, uint16[n, masks] changed fields of each row,
                       uint16[..] differences modulo 65536: all fields of the first row, then of the next
      for every bitmap uint16 n, uint16[n] alternating run lengths: unchanged bits, flipped bits
      uint32 size, JSON of the step's events

The first step is the difference from a frame of zeros: a keyframe. Differences are small and mostly equal, which zlib
compresses well; all low bytes precede all high bytes for the same reason.
"""

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dota.malformed import MALFORMED
from dota.spectator.schema import Frame, FrameSchema

MAGIC = b"FVCH"
FORMAT = 1
HEAD = struct.Struct("<4sHH8sIIII")
CHUNK_STEPS = 30  # 4 s
MAX_STEPS = 1024
MAX_SIZE = 16 << 20  # unpacked
LEVEL = 6

Event = Mapping[str, Any]


@dataclass(frozen=True)
class RecordedStep:
    """Decoded step: a frame in its own memory, and the events since the previous step."""

    frame: Frame
    events: list[dict[str, Any]]


@dataclass(frozen=True)
class ChunkHeader:
    """Header of a chunk, followed by ``size`` bytes of body."""

    steps: int
    schema: bytes
    frame: int
    unpacked: int
    size: int
    checksum: int


class ChunkWriter:
    """Encoder that collects steps into a chunk."""

    def __init__(self, schema: FrameSchema) -> None:
        self._schema = schema
        self._before = schema.empty()
        self._parts: list[bytes] = []
        self._first = 0
        self.steps = 0

    def add(self, frame: Mapping[str, npt.NDArray[Any]], engine_frame: int, events: Sequence[Event] = ()) -> None:
        """Add a step. The arrays are copied."""
        if self.steps == 0:
            self._first = engine_frame
        self._parts += changes(self._schema, self._before, frame)
        self._parts.append(pack_events(events))
        self.steps += 1

    def take(self) -> bytes:
        """Return the chunk of the added steps and start another. Raises ValueError for an empty one."""
        if not self.steps:
            raise ValueError("a chunk has at least one step")
        chunk = pack_chunk(self._schema, self._first, self.steps, self._parts)
        self._before = self._schema.empty()
        self._parts, self.steps = [], 0
        return chunk


def pack_chunk(schema: FrameSchema, first: int, steps: int, parts: Sequence[bytes]) -> bytes:
    """Return a chunk of ``steps`` encoded steps (``changes``, then ``pack_events`` of each), the first relative to a
    frame of zeros; ``first`` is its engine frame."""
    raw = b"".join(parts)
    packed = zlib.compress(raw, LEVEL)
    return HEAD.pack(MAGIC, FORMAT, steps, schema.hash, first, len(raw), len(packed), zlib.crc32(packed)) + packed


def changes(schema: FrameSchema, before: Frame, frame: Mapping[str, npt.NDArray[Any]]) -> list[bytes]:
    """Encode the difference of ``frame`` to ``before`` in parts, without events; ``before`` becomes equal to ``frame``.
    """
    parts: list[bytes] = []
    for table in schema.tables:
        now, then = frame[table.name], before[table.name]
        changed = now != then
        rows = np.flatnonzero(changed.any(1))
        parts.append(struct.pack("<H", len(rows)))
        if len(rows):
            which = changed[rows]
            parts.append(rows.astype("<u2").tobytes())
            masks = np.zeros((len(rows), table.masks * 2), np.uint8)
            packed = np.packbits(which, axis=1, bitorder="little")
            masks[:, :packed.shape[1]] = packed
            parts.append(masks.tobytes())
            parts.append(_split_bytes((now[rows] - then[rows])[which]))
            then[rows] = now[rows]
    for bits in schema.bits:
        lit: npt.NDArray[np.uint8] = frame[bits.name]
        flipped = lit ^ before[bits.name]
        runs = np.zeros(0, np.int64)
        if flipped.any():
            edges = np.flatnonzero(np.diff(np.unpackbits(flipped, bitorder="little", count=bits.count), prepend=0))
            runs = np.diff(edges, prepend=0)
        parts.append(struct.pack("<H", len(runs)))
        parts.append(_split_bytes(runs.astype(np.uint16)))
        before[bits.name][...] = lit
    return parts


def pack_events(events: Sequence[Event]) -> bytes:
    """Encode a step's events, the end of its bytes."""
    text = json.dumps(list(events), separators=(",", ":")).encode() if events else b""
    return struct.pack("<I", len(text)) + text


def _split_bytes(values: npt.NDArray[np.uint16]) -> bytes:
    """Return all low bytes, then all high bytes."""
    return values.astype("<u2").view(np.uint8).reshape(-1, 2).T.tobytes()


def read_head(data: bytes) -> ChunkHeader:
    """Decode the header of a chunk. Raises ValueError for a malformed one, or one over the size limits."""
    if len(data) < HEAD.size:
        raise ValueError("a chunk's header is truncated")
    magic, form, steps, schema, frame, unpacked, size, checksum = HEAD.unpack_from(data)
    if magic != MAGIC or form != FORMAT:
        raise ValueError("not a chunk, or a chunk of another format")
    if not 0 < steps <= MAX_STEPS or unpacked > MAX_SIZE or size > MAX_SIZE:
        raise ValueError(f"a chunk claims {steps} steps in {unpacked} bytes, packed {size}")
    return ChunkHeader(steps, schema, frame, unpacked, size, checksum)


def read_chunk(data: bytes, schema: FrameSchema) -> Iterator[RecordedStep]:
    """Yield the steps of a whole chunk. Raises ValueError for damage or another schema."""
    head = read_head(data)
    if head.schema != schema.hash:
        raise ValueError(f"a chunk has schema {head.schema.hex()}, its recording {schema.hash.hex()}")
    packed = data[HEAD.size:]
    if len(packed) != head.size or zlib.crc32(packed) != head.checksum:
        raise ValueError("a chunk is truncated or damaged")
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(packed, head.unpacked + 1)
    except zlib.error as error:
        raise ValueError(f"a chunk cannot be unpacked: {error}") from error
    if len(raw) != head.unpacked or not unpacker.eof:
        raise ValueError("a chunk's unpacked size differs from its header")
    reader = _Reader(raw)
    frame = schema.empty()
    for _ in range(head.steps):
        events = _read_step(reader, schema, frame)
        yield RecordedStep({name: array.copy() for name, array in frame.items()}, events)
    if reader.left:
        raise ValueError("a chunk has trailing bytes")


def _read_step(reader: "_Reader", schema: FrameSchema, frame: Frame) -> list[dict[str, Any]]:
    for table in schema.tables:
        n = reader.number()
        if not n:
            continue
        rows = reader.words(n)
        if int(rows.max()) >= table.rows or bool((np.diff(rows.astype(np.int32)) <= 0).any()):
            raise ValueError(f"a chunk changes unknown rows of table {table.name!r}, or one twice")
        masks = reader.bytes(n * table.masks * 2).reshape(n, -1)
        which = np.unpackbits(masks, axis=1, bitorder="little").astype(np.bool_)
        if which[:, len(table.fields):].any():
            raise ValueError(f"a chunk changes unknown fields of table {table.name!r}")
        which = which[:, :len(table.fields)]
        change = np.zeros(which.shape, np.uint16)
        change[which] = reader.planes(int(which.sum()))
        frame[table.name][rows] += change
    for bits in schema.bits:
        n = reader.number()
        if not n:
            continue
        runs = reader.planes(n).astype(np.int64)
        edges = np.cumsum(runs)
        if edges[-1] >= bits.count or bool((runs[1:] == 0).any()):
            raise ValueError(f"a chunk flips unknown bits of {bits.name!r}")
        turns = np.zeros(bits.count, np.uint32)
        turns[edges] = 1
        frame[bits.name] ^= np.packbits((np.cumsum(turns) & 1).astype(np.uint8), bitorder="little")
    text = bytes(reader.bytes(int.from_bytes(bytes(reader.bytes(4)), "little")))
    if not text:
        return []
    try:
        events = json.loads(text)
    except MALFORMED as error:
        raise ValueError(f"a chunk's events cannot be read: {error}") from error
    if not isinstance(events, list) or not all(isinstance(e, dict) for e in events):
        raise ValueError("a chunk's events are not a list of objects")
    return events


def read_step(data: bytes, schema: FrameSchema, frame: Frame) -> list[dict[str, Any]]:
    """Apply one encoded step to ``frame`` and return its events. Raises ValueError for damage."""
    reader = _Reader(data)
    events = _read_step(reader, schema, frame)
    if reader.left:
        raise ValueError("a step has trailing bytes")
    return events


class _Reader:
    """Bounds-checked reader of a chunk's bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = np.frombuffer(data, np.uint8)
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def bytes(self, count: int) -> npt.NDArray[np.uint8]:
        if count > self.left:
            raise ValueError("a chunk's last step is truncated")
        self._at += count
        return self._data[self._at - count:self._at]

    def number(self) -> int:
        low, high = self.bytes(2).tolist()
        return int(low | high << 8)

    def words(self, count: int) -> npt.NDArray[np.uint16]:
        return np.frombuffer(self.bytes(2 * count).tobytes(), "<u2")

    def planes(self, count: int) -> npt.NDArray[np.uint16]:
        return np.frombuffer(self.bytes(2 * count).reshape(2, -1).T.tobytes(), "<u2")

"""Recording files: a header, chunks, and an index at the end. A truncated file is playable up to the cut.

The index is JSON: ``chunks`` [offset, frame, time, steps] of each, ``events`` with their times, and ``track``: every
4/3 seconds [time, Radiant's win probability or null, net worth of Radiant, of Dire]. It is compressed with zlib between
"FVIX" with its sizes and, in the last 8 bytes, its offset.
"""

import contextlib
import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dota.config import GameConfig
from dota.malformed import MALFORMED
from dota.spectator.camera import Camera, ChunkEntry
from dota.spectator.chunks import HEAD, RecordedStep, read_chunk, read_head
from dota.spectator.header import Header, read_header
from dota.spectator.schema import FrameSchema

SUFFIX = ".view"
INDEX = b"FVIX"
_SIZES = struct.Struct("<II")
_END = struct.Struct("<Q")
MAX_INDEX = 16 << 20
MAX_FILE = 256 << 20


class RecordingIndex:
    """Index at the end of a recording."""

    def __init__(self) -> None:
        self._found: dict[str, list[Any]] = {"chunks": [], "events": [], "track": []}

    def add(self, offset: int, facts: ChunkEntry) -> None:
        """Add the chunk at ``offset``."""
        self._found["chunks"].append([offset, facts.frame, round(facts.time, 2), facts.steps])
        self._found["events"] += facts.events
        self._found["track"] += facts.track

    def packed(self, at: int) -> bytes:
        """Encode the index, whose first byte is at offset ``at``."""
        raw = json.dumps(self._found, separators=(",", ":")).encode()
        packed = zlib.compress(raw, 9)
        return INDEX + _SIZES.pack(len(raw), len(packed)) + packed + _END.pack(at)


class RecordingWriter:
    """Writer of a game's recording under a temporary name during the game; ``close`` renames it.

    Raises OSError for a full disk or an unwritable folder, which ends the recording.
    """

    def __init__(self, path: Path, config: GameConfig, about: Mapping[str, Any]) -> None:
        self._path = path
        self._temporary = path.with_name(path.name + ".part")
        self.camera = Camera(config, about, self._chunk)
        self._index = RecordingIndex()
        self._file = self._temporary.open("wb")
        try:
            self._file.write(self.camera.packed_header())
        except OSError:
            self.drop()
            raise

    def _chunk(self, chunk: bytes, facts: ChunkEntry) -> None:
        self._index.add(self._file.tell(), facts)
        self._file.write(chunk)

    def close(self) -> None:
        """Flush the last chunk, write the index, and rename the file."""
        self.camera.end()
        self._file.write(self._index.packed(self._file.tell()))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._temporary.replace(self._path)

    def drop(self) -> None:
        """Discard the recording of an aborted game."""
        with contextlib.suppress(OSError):  # it writes what is buffered, which a full disk does not take
            self._file.close()
        self._temporary.unlink(missing_ok=True)


class Recording:
    """Recording in memory: ``header``, ``schema``, and its chunks as (offset, end)."""

    def __init__(self, data: bytes) -> None:
        self.header: Header
        self.schema: FrameSchema
        self.header, self.schema, at = read_header(data)
        self._data = data
        self.spans: list[tuple[int, int]] = []
        while at + HEAD.size <= len(data) and data[at:at + 4] != INDEX:
            end = at + HEAD.size + read_head(data[at:at + HEAD.size]).size
            if end > len(data):
                break  # it was still being written
            self.spans.append((at, end))
            at = end
        self._index_at = at

    @classmethod
    def load(cls, path: str | Path) -> "Recording":
        """Read a file. Raises ValueError with the reason when it is not a recording or is damaged."""
        path = Path(path)
        try:
            if path.stat().st_size > MAX_FILE:
                raise ValueError(f"it is larger than {MAX_FILE >> 20} MiB")
            return cls(path.read_bytes())
        except ValueError as error:
            raise ValueError(f"{path} is not a readable recording: {error}") from error

    def chunk(self, number: int) -> bytes:
        """Return the bytes of a chunk."""
        start, end = self.spans[number]
        return self._data[start:end]

    def steps(self) -> Iterator[RecordedStep]:
        """Yield all steps. Raises ValueError for damage."""
        for number in range(len(self.spans)):
            yield from read_chunk(self.chunk(number), self.schema)

    def index(self) -> dict[str, Any]:
        """Return the index. Raises ValueError when the recording is truncated and has none."""
        data, at = self._data, self._index_at
        if len(data) < at + len(INDEX) + _SIZES.size + _END.size or data[at:at + 4] != INDEX:
            raise ValueError("the recording is truncated and has no index")
        unpacked, packed = _SIZES.unpack_from(data, at + 4)
        if unpacked > MAX_INDEX:
            raise ValueError("its index is too large")
        start = at + 4 + _SIZES.size
        unpacker = zlib.decompressobj()
        try:
            raw = unpacker.decompress(data[start:start + packed], unpacked + 1)
            index = json.loads(raw) if len(raw) == unpacked else None
        except (zlib.error, *MALFORMED) as error:
            raise ValueError(f"its index cannot be read: {error}") from error
        if not isinstance(index, dict):
            raise ValueError("its index cannot be read")
        return index

"""Encoded frames of one side's view, shared by everybody on it (docs/play-protocol.md)."""

import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from dota.config import GameConfig
from dota.spectator.camera import jump_columns, mark_jumps
from dota.spectator.chunks import changes, pack_events
from dota.spectator.header import Header, make_header
from dota.spectator.schema import Frame, game_schema

HEADER, KEYFRAME, CHANGES = 1, 2, 3  # a message's first byte
_HEAD = struct.Struct("<BI")
STEPS_PER_SECOND = 7.5
UNIT_PER_FRAME = 150.0  # world units; a unit that moves further in an engine frame did not walk or charge, it jumped

Array = npt.NDArray[Any]
Write = Callable[[dict[str, Array]], None]


def header_by_timestep(config: GameConfig, about: Mapping[str, Any]) -> Header:
    """Return the header of a game that is recorded every timestep. It does not depend on ``frameskip``."""
    return {**make_header(config, game_schema(policy_debug=True), about), "steps_per_second": STEPS_PER_SECOND}


def header_of(config: GameConfig, about: Mapping[str, Any], whose: Mapping[str, Any]) -> bytes:
    """Return the encoded header of a game: zlib of JSON, as in a recording. ``about`` holds entries of the game,
    ``whose`` those of the view."""
    header = {**header_by_timestep(config, about), **whose}
    return zlib.compress(json.dumps(header, separators=(",", ":")).encode(), 6)


def map_of(config: GameConfig) -> tuple[float, float, float]:
    """Return the origin x and y of the views' map and its width, in world units."""
    found = make_header(config, game_schema(policy_debug=True), {})["map"]
    return float(found["x"]), float(found["y"]), float(found["extent"])


def message_of(engine_frame: int, whole: bool, body: bytes, events: Sequence[Mapping[str, Any]]) -> bytes:
    """Encode a frame's message: its kind, the engine frame, and a step as in a recording's chunk."""
    return _HEAD.pack(KEYFRAME if whole else CHANGES, engine_frame & 0xFFFFFFFF) + body + pack_events(events)


class View:
    """Frames of one side's view (None: the whole game). Call ``record`` for each frame. ``changes`` and ``keyframe``
    are its encodings without events, computed once for all receivers."""

    def __init__(self, team: int | None, far: float = UNIT_PER_FRAME) -> None:
        self.team = team
        self.schema = game_schema(policy_debug=True)
        self.engine_frame = 0
        self.events: list[dict[str, Any]] = []
        self._far = far
        self._now: Frame = self.schema.empty()
        self._before: Frame = self.schema.empty()
        self._zeros: Frame = self.schema.empty()
        self._columns = jump_columns(self.schema)
        self._changes: bytes | None = None
        self._keyframe: bytes | None = None

    def record(self, write: Write, engine_frame: int, events: list[dict[str, Any]]) -> None:
        """Record the next frame, which ``write`` fills in, and its events."""
        self._now, self._before = self._before, self._now
        write(self._now)
        mark_jumps(self._now["unit"], self._before["unit"], self._columns, self._far)
        self.engine_frame, self.events = engine_frame, events
        self._changes = self._keyframe = None

    def changes(self) -> bytes:
        """Return the frame as differences to the previous one."""
        if self._changes is None:
            # Encoding updates the previous frame in place, which nothing else needs.
            self._changes = b"".join(changes(self.schema, self._before, self._now))
        return self._changes

    def keyframe(self) -> bytes:
        """Return the frame as differences to zeros."""
        if self._keyframe is None:
            for array in self._zeros.values():
                array[...] = 0
            self._keyframe = b"".join(changes(self.schema, self._zeros, self._now))
        return self._keyframe

    @property
    def frame(self) -> Frame:
        """The current frame, read-only."""
        return self._now


def frame_of(message: bytes) -> tuple[int, int]:
    """Return a message's kind and engine frame. Raises ValueError for a malformed one."""
    if len(message) < _HEAD.size:
        raise ValueError(f"message of {len(message)} bytes: a frame has at least {_HEAD.size}")
    kind, engine_frame = _HEAD.unpack_from(message)
    return int(kind), int(engine_frame)


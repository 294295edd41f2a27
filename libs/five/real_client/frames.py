"""Frames of a world-state socket: a 4-byte little-endian length and a serialized CMsgBotWorldState each.

Some builds announce the whole length of a message and send only its first 65,536 bytes (ValveSoftware/Dota2-Gameplay
issue 31063, Linux server, March 2026). The decoder recognizes the start of a world state, so it recovers from a cut
frame and from any other loss of the frame boundary without a new connection. The start is that of each of the 10,172
frames of a game recorded in 2017 (pydota2/pydota2_archive, replays/2017_10_27_1015); later builds are to be verified.
"""

import math
import re
import struct
from dataclasses import dataclass, field

LENGTH_BYTES = 4
CUT_BYTES = 65_536  # of a payload that is sent of a larger one
LARGEST = 4 << 20  # bytes of a payload; a larger length is a damaged one
# team_id 2 or 3, game_time, dota_time, game_state
START = re.compile(rb"\x08[\x02\x03]\x15.{4}\x1d.{4}\x20[\x00-\x1f]", re.DOTALL)
START_BYTES = 14
_TEAM_ID, _GAME_TIME, _DOTA_TIME, _GAME_STATE, _UNITS = 1, 2, 3, 4, 11
_FIXED_BYTES = {1: 8, 5: 4}
_VARINT, _LENGTH_DELIMITED = 0, 2
_VARINT_BYTES = 10
PLAYED_STATES = (4, 5)  # before the horn, and after it


@dataclass(frozen=True)
class Frame:
    """World state. ``payload`` holds whole fields only; ``lost_bytes`` of the message are missing or unreadable.

    Attributes:
        team: 2 Radiant, 3 Dire.
        dota_time: seconds since the horn.
        units: number of units in the payload.
    """

    payload: bytes
    team: int
    game_time: float
    dota_time: float
    game_state: int
    units: int
    lost_bytes: int = 0

    @property
    def is_playable(self) -> bool:
        """Return whether heroes can be ordered: the game has units and is before or after the horn, not over."""
        return self.game_state in PLAYED_STATES and self.units > 0 and math.isfinite(self.dota_time)


def read_frame(payload: bytes, length: int | None = None) -> Frame:
    """Return the frame of a payload, of which ``length`` bytes were announced (by default all).

    Fields are read up to the first that is cut off or invalid. Raises ValueError if the payload does not begin as a
    world state.
    """
    if not START.match(payload):
        raise ValueError(f"payload of {len(payload)} bytes is not a world state: it begins with {payload[:14].hex()}")
    end, units = _whole_fields(payload)
    game_time, dota_time = struct.unpack_from("<x x x f x f", payload.ljust(13, b"\0"))
    lost = (len(payload) if length is None else length) - end
    return Frame(payload[:end], payload[1], game_time, dota_time, payload[13], units, lost)


def _whole_fields(payload: bytes) -> tuple[int, int]:
    """Return the end of the last whole top-level field, and the number of units before it."""
    end = units = 0
    while end < len(payload):
        tag, at = _varint(payload, end)
        kind = tag & 7
        if kind == _VARINT:
            at = _varint(payload, at)[1]
        elif kind == _LENGTH_DELIMITED:
            length, at = _varint(payload, at)
            at += length
        else:
            at += _FIXED_BYTES.get(kind, LARGEST)
        if tag >> 3 == 0 or at > len(payload):
            break
        end, units = at, units + (tag >> 3 == _UNITS and kind == _LENGTH_DELIMITED)
    return end, units


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint and the position after it; a position beyond the data for one that does not end."""
    value = 0
    for i, byte in enumerate(data[at:at + _VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value, at + i + 1
    return 0, len(data) + 1


@dataclass
class FrameDecoder:
    """Splits a socket's bytes into frames. Bytes arrive in pieces of any size.

    Attributes:
        cut_frames: frames of which not all bytes arrived.
        skipped_bytes: bytes between frames, after a lost boundary.
    """

    cut_frames: int = 0
    skipped_bytes: int = 0
    _held: bytearray = field(default_factory=bytearray)
    _searched: int = 0  # up to here no next frame begins within the held, unfinished one

    def feed(self, data: bytes) -> list[Frame]:
        """Add received bytes and return the frames that are complete now, oldest first."""
        self._held += data
        frames = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def flush(self) -> Frame | None:
        """Return the unfinished frame if it is as long as a cut one. Call it when the socket has been silent."""
        if len(self._held) < LENGTH_BYTES + CUT_BYTES or not self._starts():
            return None
        return self._take(len(self._held))

    def reset(self) -> None:
        """Forget the unfinished frame: the connection is a new one."""
        self._held.clear()
        self._searched = 0

    def _starts(self) -> bool:
        return START.match(self._held, LENGTH_BYTES) is not None

    def _next(self) -> Frame | None:
        """Return the next frame of the held bytes, or None if more bytes are needed."""
        if len(self._held) < LENGTH_BYTES + START_BYTES:
            return None
        length = self._length(0)
        if length > LARGEST or length < START_BYTES or not self._starts():
            if not self._skip():
                return None
            length = self._length(0)
        if length > CUT_BYTES:
            following = self._following(LENGTH_BYTES + length)
            if following >= 0:
                return self._take(following)
        if len(self._held) < LENGTH_BYTES + length:
            return None
        return self._take(LENGTH_BYTES + length)

    def _length(self, at: int) -> int:
        return int.from_bytes(self._held[at:at + LENGTH_BYTES], "little")

    def _find(self, begin: int, end: int) -> int:
        """Return where a frame begins from ``begin`` on and before ``end``, or -1."""
        for match in START.finditer(self._held, begin + LENGTH_BYTES, end + LENGTH_BYTES + START_BYTES):
            at = match.start() - LENGTH_BYTES
            if at < end and START_BYTES <= self._length(at) <= LARGEST:
                return at
        return -1

    def _following(self, end: int) -> int:
        """Return where another frame begins within the held one, before ``end``, or -1."""
        found = self._find(max(self._searched, LENGTH_BYTES + START_BYTES), end)
        self._searched = max(0, len(self._held) - START_BYTES - LENGTH_BYTES)
        return found

    def _skip(self) -> bool:
        """Drop bytes up to the next frame; return whether there is one."""
        at = self._find(0, len(self._held))
        self._drop(at if at >= 0 else len(self._held) - START_BYTES - LENGTH_BYTES + 1)
        return at >= 0

    def _drop(self, count: int) -> None:
        self.skipped_bytes += count
        del self._held[:count]
        self._searched = 0

    def _take(self, end: int) -> Frame:
        """Remove the bytes before ``end`` and return their frame."""
        length = self._length(0)
        payload = bytes(self._held[LENGTH_BYTES:end])
        del self._held[:end]
        self._searched = 0
        self.cut_frames += len(payload) < length
        return read_frame(payload, length)

"""Action files: how orders reach the bots. Each is a Lua chunk that returns a table.

A bot may load the file at any time, so a file is written under another name and renamed: a reader gets the old file or
the new one, never a part.
"""

import math
import os
import string
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BATCHES = 4  # files whose orders a file holds, so that those of a file that was replaced unread are not lost
_PLAIN = frozenset(string.ascii_letters + string.digits + " _.,:;/+-*()[]{}!?#")  # the others are written as codes
RELEASED = 1e9  # game seconds: no game reaches them, so bots never wait for another file

Action = Mapping[str, Any]


@dataclass
class ActionFile:
    """Action file of a team (2 Radiant, 3 Dire) in the folder of the bots. ``sequence`` numbers the written files."""

    folder: Path
    team: int
    sequence: int = field(default=0, init=False)
    _batches: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=BATCHES), init=False)

    @property
    def path(self) -> Path:
        """Return the path of the file that the bots load."""
        return self.folder / f"actions_t{self.team}.lua"

    def write(self, actions: Sequence[Action], dota_time: float, through: float) -> int:
        """Replace the file and return its number.

        ``actions`` have the JSON names of Valve's CMsgBotWorldState.Action, and ``dota_time`` is that of the world
        state that they answer. Until ``through``, in game seconds, the bots go on without another file; then they wait.
        """
        self.sequence += 1
        self._batches.append({"sequence": self.sequence, "actions": list(actions)})
        write_lua(self.path, {"sequence": self.sequence, "dotaTime": dota_time, "through": through,
                              "batches": list(self._batches)})
        return self.sequence

    def release(self) -> None:
        """Let the bots go on for ever without orders."""
        self.write([], 0.0, RELEASED)


def write_lua(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a Lua file by one that returns the content as a table. Raises ValueError for NaN and infinite numbers,
    and TypeError for a value that `lua_literal` cannot write."""
    text = f"return {lua_literal(content)}"
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(text, encoding="ascii")
    unfinished.replace(path)


def lua_literal(value: Any) -> str:
    """Return a value as an expression of Lua 5.1: None, a truth value, a number, a text (its bytes in UTF-8), or a
    sequence or mapping of those. Keys are whole numbers and texts."""
    match value:
        case None:
            return "nil"
        case bool():
            return str(value).lower()
        case int():
            return int.__repr__(value)  # repr() of an enumeration's member is not a number
        case float():
            if not math.isfinite(value):
                raise ValueError(f"Lua has no literal for {value}")
            return float.__repr__(value)  # repr() of a numpy.float64 is not a number
        case str():
            return '"' + "".join(chr(b) if chr(b) in _PLAIN else f"\\{b:03d}" for b in value.encode()) + '"'
        case Mapping():
            return "{" + ",".join(f"[{lua_literal(key)}]={lua_literal(item)}" for key, item in value.items()) + "}"
        case Sequence():
            return "{" + ",".join(map(lua_literal, value)) + "}"
    raise TypeError(f"Lua has no literal for a {type(value).__name__}")

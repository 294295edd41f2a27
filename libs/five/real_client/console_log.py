"""Console log of the client: what the bots report and who won.

After the end the client sends no world state, so only the log names the winner: ``good guys win = 1`` (dotaservice
0.3.9, client of 2019) or the destroyed ancient (Passerby/dota2-env, client 6933 of September 2026). The log may go on
in ``console.<number>.log`` (dotaservice 0.3.9).
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

_READ_BYTES = 1 << 20
_LONGEST_LINE = 1 << 16
_PROBE_BYTES = 64
_WINS = re.compile(r"good guys win = ([01])\b|Building: npc_dota_(goodguys|badguys)_fort destroyed")
_FAILURE = re.compile(r"FATAL ERROR: .{0,200}")
_REPORT = re.compile(r"\bFIVE (\{.{1,1000}\})")
RADIANT, DIRE = 2, 3
Count = Annotated[int, Field(ge=0, le=1 << 31)]


class BotReport(BaseModel):
    """Line that a bot printed: ``ready`` once a bot thinks, ``done`` for the orders of one action file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    kind: Annotated[str, Field(pattern="^(ready|done)$")]
    team: Annotated[int, Field(ge=RADIANT, le=DIRE)]
    player: Annotated[int, Field(ge=0, le=63)]
    time: Annotated[float, Field(ge=-1e6, le=1e6)]
    hero: str = ""
    sequence: Count = 0
    executed: Count = 0
    refused: Count = 0
    reason: str = ""


@dataclass(frozen=True)
class Winner:
    """End of the game. ``team`` is 2 (Radiant) or 3 (Dire)."""

    team: int


@dataclass(frozen=True)
class ClientFailure:
    """Error after which the client ends."""

    text: str


def parse_line(line: str) -> BotReport | Winner | ClientFailure | None:
    """Return what a line tells, or None. A damaged report counts as no report."""
    if found := _REPORT.search(line):
        try:
            return BotReport.model_validate_json(found[1])
        except ValidationError:
            return None
    if found := _WINS.search(line):
        return Winner(RADIANT if found[1] == "1" or found[2] == "badguys" else DIRE)
    if found := _FAILURE.search(line):
        return ClientFailure(found[0])
    return None


@dataclass
class _OpenFile:
    """Read position of a log file. ``tail`` are the bytes before it, ``partial`` those of an unfinished line."""

    at: int = 0
    tail: bytes = b""
    partial: bytes = b""


@dataclass
class ConsoleLog:
    """Growing log ``console.log`` of a folder, with its continuations. Renamed, shortened and replaced files are
    recognized, so each line is returned once."""

    folder: Path
    _files: dict[tuple[int, int], _OpenFile] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Return the path of the log that the client writes."""
        return self.folder / "console.log"

    def lines(self) -> list[str]:
        """Return the finished lines since the last call, file by file in the order of their last change."""
        found = []
        for path in self.folder.glob("console*.log"):
            try:
                status = path.stat()
            except FileNotFoundError:  # renamed meanwhile
                continue
            found.append((status.st_mtime_ns, path, (status.st_dev, status.st_ino)))
        lines: list[str] = []
        for _, path, identity in sorted(found):
            lines += self._read(path, self._files.setdefault(identity, _OpenFile()))
        return lines

    def _read(self, path: Path, file: _OpenFile) -> list[str]:
        """Return the new finished lines of one file."""
        lines: list[str] = []
        try:
            with path.open("rb") as log:
                log.seek(file.at - len(file.tail))
                if log.read(len(file.tail)) != file.tail:  # shortened or replaced: start from the beginning
                    file.at, file.tail, file.partial = 0, b"", b""
                    log.seek(0)
                while data := log.read(_READ_BYTES):
                    file.at += len(data)
                    file.tail = (file.tail + data)[-_PROBE_BYTES:]
                    *whole, rest = (file.partial + data).split(b"\n")
                    file.partial = rest[-_LONGEST_LINE:]
                    lines += [line[-_LONGEST_LINE:].decode("utf-8", "replace").rstrip("\r") for line in whole]
        except FileNotFoundError:  # renamed meanwhile: its lines come with the next call
            pass
        return lines

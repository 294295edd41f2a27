"""Append-only journal of rows, one JSON line a change. An incomplete last line is discarded."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rapid.malformed import MALFORMED


class JournalDamaged(RuntimeError):
    """A journal with a complete line that no write has made."""


class Journal:
    """The rows that result from the changes in a file. Only `write` changes it, and only one process may write.

    Raises JournalDamaged naming the line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: dict[str, Any] = {}
        self._whole = 0  # bytes of complete lines
        self._forgotten = False
        if path.exists():
            for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
                if not line.endswith(b"\n"):
                    break
                try:
                    self._apply(dict(json.loads(line)))
                except MALFORMED as error:
                    raise JournalDamaged(f"{path}, line {number}: not a change of a journal: {error}. Remove the line, "
                                         "or rename the file to play all of its games again") from None
                self._whole += len(line)

    def write(self, rows: Mapping[str, Any]) -> None:
        """Append a change: JSON values by name; None removes a row."""
        if self._forgotten and self._path.exists():
            self._path.rename(self._path.with_name(f"{self._path.name}.{int(self._path.stat().st_mtime)}"))
        self._forgotten = False
        with self._path.open("ab") as file:
            if file.tell() > self._whole:  # a process died, or a disk was full, while the last line was written
                file.truncate(self._whole)
            size = file.write(json.dumps(rows).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._whole += size
        self._apply(rows)

    def forget(self) -> None:
        """Start again without rows. The next `write` renames the old file, with its time in the name."""
        self.rows, self._whole, self._forgotten = {}, 0, True

    def _apply(self, rows: Mapping[str, Any]) -> None:
        for name, row in rows.items():
            if row is None:
                self.rows.pop(name, None)
            else:
                self.rows[name] = row

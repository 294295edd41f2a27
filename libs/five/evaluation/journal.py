"""Append-only journal of rows, one JSON line a change. An incomplete last line is discarded."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Journal:
    """The rows that result from the changes in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: dict[str, Any] = {}
        whole = 0
        if path.exists():
            for line in path.read_bytes().splitlines(keepends=True):
                if not line.endswith(b"\n"):
                    break
                self._apply(json.loads(line))
                whole += len(line)
            if whole < path.stat().st_size:
                os.truncate(path, whole)

    def write(self, rows: Mapping[str, Any]) -> None:
        """Append a change: JSON values by name; None removes a row."""
        with self._path.open("ab") as file:
            file.write(json.dumps(rows).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._apply(rows)

    def forget(self) -> None:
        """Start again without rows. The old file is renamed, with its time in the name."""
        if self._path.exists():
            self._path.rename(self._path.with_name(f"{self._path.name}.{int(self._path.stat().st_mtime)}"))
        self.rows = {}

    def _apply(self, rows: Mapping[str, Any]) -> None:
        for name, row in rows.items():
            if row is None:
                self.rows.pop(name, None)
            else:
                self.rows[name] = row

"""Mutants that mean the same as the original, recorded with a reason in equivalent.toml.

An entry has ``file``, ``definition``, ``before`` and ``after`` as the report prints them, and ``reason``. Line numbers
are no part of it, so an entry holds until its line or the name around it changes.
"""

import tomllib
from pathlib import Path

Key = tuple[str, str, str, str]
"""Source file, definition, and the changed lines before and after; `tools.mutations.mutants.Mutant.key`."""

EQUIVALENT_FILE = Path(__file__).parent / "equivalent.toml"


class EquivalentMutants:
    """Reasons of the mutants that no test can notice, by key."""

    def __init__(self, file: Path = EQUIVALENT_FILE) -> None:
        document = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        self.reasons: dict[Key, str] = {}
        for entry in document.get("mutant", []):
            if not entry.get("reason", "").strip():
                raise ValueError(f"{file}: {entry['file']} {entry['before']!r}: reason is required")
            key = (entry["file"], entry["definition"], _join(entry["before"]), _join(entry["after"]))
            self.reasons[key] = entry["reason"]

    def reason(self, key: Key) -> str | None:
        """Return why the mutant is equivalent, None if it is not recorded."""
        return self.reasons.get(key)


def _join(lines: str) -> str:
    return " ".join(lines.split())

"""Errors of packed agents. Their messages are for the user."""

import os
from pathlib import Path


class AgentUnavailable(ValueError):
    """A packed agent that does not exist, is damaged, or does not fit the requested game."""


def damaged(path: Path, reason: object) -> AgentUnavailable:
    """Return the error of a file of a packed agent."""
    return AgentUnavailable(f"{path}: {reason}. The file is damaged or was changed: get the folder again, or pack the "
                            "agent again from its run (`five agents pack`)")


def read_bytes(path: Path, limit: int) -> bytes:
    """Return a file's bytes. Raises AgentUnavailable for a missing file and for one of more than ``limit`` bytes."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)  # a device has no end, and its size is 0
            size = max(len(data), os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise AgentUnavailable(f"{path}: {error.strerror}: every packed agent's folder must have this file") from None
    if len(data) > limit:
        raise damaged(path, f"{size} bytes, at most {limit} are allowed")
    return data

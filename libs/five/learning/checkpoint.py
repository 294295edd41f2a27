"""Checkpoints: everything that the next step depends on, in one safetensors file.

Tensors are stored as tensors; counters, random states and schedules as JSON in the file's header. Nothing is pickled.
A file is written under another name and then moved, so that a reader never finds half of one.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

FORMAT = "five-checkpoint-1"
SUFFIX = ".safetensors"


class CheckpointError(ValueError):
    """A checkpoint that cannot be read; the message says which and why."""


def pack(tensors: Mapping[str, Tensor], extra: Mapping[str, Any]) -> bytes:
    """A checkpoint as bytes. ``extra`` holds JSON values."""
    held = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return save_tensors(held, {"format": FORMAT, "extra": json.dumps(extra)})


def unpack(data: bytes, name: str = "checkpoint") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """(tensors, extra) of `pack`. Raises CheckpointError; ``name`` is what it calls the checkpoint."""
    try:
        tensors = load_tensors(data)
        length = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + length]).get("__metadata__") or {}
        if metadata.get("format") != FORMAT:
            raise CheckpointError(f"{name} is no checkpoint of this program: its format is "
                                  f"{metadata.get('format')!r}, not {FORMAT!r}")
        extra: dict[str, Any] = json.loads(metadata["extra"])
    except (SafetensorError, json.JSONDecodeError, KeyError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{name} is damaged ({len(data)} bytes): {error}") from error
    return tensors, extra


def write(path: Path, tensors: Mapping[str, Tensor], extra: Mapping[str, Any]) -> None:
    """Writes a checkpoint so that ``path`` holds all of it or what it held before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(pack(tensors, extra))
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the move itself
    finally:
        os.close(folder)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """(tensors, extra) of a checkpoint. Raises CheckpointError when it is damaged, OSError when it is not there."""
    return unpack(path.read_bytes(), str(path))


class CheckpointFolder:
    """The newest few checkpoints of one optimizer, one file a gradient step, in a folder."""

    def __init__(self, folder: Path, keep: int = 3) -> None:
        if keep < 1:
            raise ValueError(f"at least one checkpoint is kept, not {keep}")
        self.folder = folder
        self.keep = keep

    def path(self, step: int) -> Path:
        """Where the checkpoint of a gradient step lies."""
        return self.folder / f"step-{step:012d}{SUFFIX}"

    def steps(self) -> list[int]:
        """Gradient steps of the checkpoints there are, oldest first."""
        return sorted(int(p.name[5 : -len(SUFFIX)]) for p in self.folder.glob(f"step-{'[0-9]' * 12}{SUFFIX}"))

    def save(self, step: int, tensors: Mapping[str, Tensor], extra: Mapping[str, Any]) -> Path:
        """Writes a checkpoint, then removes the oldest beyond ``keep``."""
        path = self.path(step)
        write(path, tensors, extra)
        for old in self.steps()[: -self.keep]:
            if old != step:
                self.path(old).unlink(missing_ok=True)
        return path

    def newest(self) -> tuple[int, dict[str, Tensor], dict[str, Any]] | None:
        """The newest checkpoint that can be read, damaged ones passed over; None when there is none at all.

        Raises CheckpointError when there are some and none can be read: going on from nothing would lose the run.
        """
        errors = []
        for step in reversed(self.steps()):
            try:
                tensors, extra = read(self.path(step))
            except CheckpointError as error:
                errors.append(str(error))
                continue
            return step, tensors, extra
        if errors:
            raise CheckpointError(f"no checkpoint in {self.folder} can be read: {'; '.join(errors)}")
        return None

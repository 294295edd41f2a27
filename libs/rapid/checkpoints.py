"""Checkpoints: named arrays and JSON values in one safetensors file each, written whole or not at all."""

import json
import os
import re
import secrets
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from rapid import tensorfile
from rapid.store.errors import Corrupt

Array = npt.NDArray[Any]
_FILE = re.compile(r"checkpoint-(\d{10})\.safetensors")


class Checkpoints:
    """Checkpoints of one process in a folder, by step. The newest ``keep`` stay."""

    def __init__(self, folder: Path, keep: int = 3) -> None:
        if keep < 1:
            raise ValueError("keep must be at least 1")
        self._folder = folder
        self._keep = keep

    def path(self, step: int) -> Path:
        """The file of a step."""
        return self._folder / f"checkpoint-{step:010d}.safetensors"

    def save(self, step: int, tensors: Mapping[str, Array], meta: Mapping[str, Any],
             bfloat16: Collection[str] = ()) -> Path:
        """Writes a checkpoint and, once it is on disk, makes it the latest; then removes what is beyond ``keep``.

        A crash at any moment leaves the latest as it was or as it is to be.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self.path(step)
        checksum = xxhash.xxh3_128()
        pieces = tensorfile.file_pieces(tensors, meta, bfloat16)
        for piece in pieces:
            checksum.update(piece)
        _write(path, pieces)
        pointer = json.dumps({"step": step, "file": path.name, "xxh3_128": checksum.hexdigest()})
        _write(self._folder / "latest.json", [memoryview(pointer.encode())])
        for old in self.steps()[:-self._keep]:
            if old != step:
                self.path(old).unlink(missing_ok=True)
        return path

    def steps(self) -> list[int]:
        """Steps that have a file, in order."""
        if not self._folder.is_dir():
            return []
        found = (_FILE.fullmatch(p.name) for p in self._folder.iterdir())
        return sorted(int(m[1]) for m in found if m)

    def latest(self) -> int | None:
        """The step of the latest checkpoint; None when there is none."""
        pointer = self._pointer()
        return None if pointer is None else int(pointer["step"])

    def _pointer(self) -> dict[str, Any] | None:
        try:
            row: dict[str, Any] = json.loads((self._folder / "latest.json").read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise Corrupt(f"{self._folder / 'latest.json'} is damaged ({error}): name the step to load instead"
                          ) from None
        return row

    def load(self, step: int | None = None) -> tuple[int, dict[str, Array], dict[str, Any]]:
        """Step, arrays and metadata of a checkpoint, by default of the latest; bfloat16 arrays as uint16.

        Raises FileNotFoundError, and Corrupt for a file that is not what was written.
        """
        pointer = self._pointer()
        if step is None:
            if pointer is None:
                raise FileNotFoundError(f"there is no checkpoint in {self._folder}")
            step = int(pointer["step"])
        path = self.path(step)
        try:
            data = np.fromfile(path, np.uint8)
        except FileNotFoundError:
            listed = ", ".join(map(str, self.steps())) or "none"
            raise FileNotFoundError(f"there is no checkpoint of step {step} in {self._folder}; there are: {listed}"
                                    ) from None
        expected = pointer["xxh3_128"] if pointer is not None and pointer["step"] == step else None
        if expected is not None and xxhash.xxh3_128_hexdigest(data.data) != expected:
            raise Corrupt(f"{path} fails its checksum; load an earlier step")
        try:
            arrays, index = tensorfile.parse(data)
        except ValueError as error:
            raise Corrupt(f"{path}: {error}") from None
        return step, arrays, index.meta


def _write(path: Path, pieces: Collection[memoryview]) -> None:
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        beside.unlink(missing_ok=True)

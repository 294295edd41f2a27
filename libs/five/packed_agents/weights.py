"""Weights of a packed agent: a safetensors file of bfloat16 parameters and exact statistics.

Parameters are rounded to bfloat16. Running statistics stay float64: their counts and sums need more digits.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.surgery import AgentSpec
from five.packed_agents.errors import AgentUnavailable, damaged
from rapid import tensorfile
from rapid.atomic_file import replacing
from rapid.bfloat16 import from_bfloat16, to_bfloat16

MAX_HEADER_BYTES = 1 << 20
PARAMETER_TAG, STATISTIC_TAG = "BF16", "F64"
Array = npt.NDArray[Any]


def write_weights(path: Path, tensors: Mapping[str, Array]) -> str:
    """Write a version's tensors, float32 parameters as bfloat16. Return the file's SHA-256 in hex."""
    rounded = [name for name, array in tensors.items() if array.dtype == np.float32]
    arrays = {name: to_bfloat16(array) if name in rounded else array for name, array in tensors.items()}
    digest = hashlib.sha256()
    with replacing(path, sync=True) as file:
        for piece in tensorfile.file_pieces(arrays, {}, rounded):
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def read_weights(path: Path, spec: AgentSpec, sha256: str) -> dict[str, Array]:
    """Return the tensors of a file by name: parameters float32, statistics float64.

    Names, shapes and dtypes are checked before any data is read. Raises AgentUnavailable naming path and tensor.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            begin = tensorfile.header_bytes(file.read(8), size)
            if begin > MAX_HEADER_BYTES:
                raise ValueError(f"its header has {begin} bytes, at most {MAX_HEADER_BYTES} are allowed")
            index = tensorfile.parse_header(file.read(begin - 8), size - begin)
            _require_tensors(index, spec)
            file.seek(0)
            data = np.fromfile(file, np.uint8)
    except OSError as error:
        raise AgentUnavailable(f"{path}: {error.strerror}: every packed agent's folder must have this file") from None
    except ValueError as error:
        raise damaged(path, error) from None
    found = hashlib.sha256(data.data).hexdigest()
    if found != sha256:
        raise damaged(path, f"its SHA-256 is {found}, the card has {sha256}")
    arrays, _ = tensorfile.parse(data)
    tensors = {name: from_bfloat16(array) if name in index.bfloat16 else array for name, array in arrays.items()}
    for name, array in tensors.items():
        if not np.isfinite(array).all():
            raise damaged(path, f"tensor {name!r} has values that are not finite")
    return tensors


def _require_tensors(index: tensorfile.TensorIndex, spec: AgentSpec) -> None:
    """Raise ValueError naming tensors that are missing, unknown, or of another shape or dtype than the agent's."""
    found = {entry.name: entry for entry in index.entries}
    wrong = [f"tensor {name!r} is missing" for name in spec.labels if name not in found]
    wrong += [f"tensor {name!r} is unknown" for name in found if name not in spec.labels]
    for name, labels in spec.labels.items():
        if (entry := found.get(name)) is None:
            continue
        tag = STATISTIC_TAG if labels.dtype == "float64" else PARAMETER_TAG
        if entry.shape != labels.shape or entry.tag != tag:
            wrong.append(f"tensor {name!r} is {entry.tag} {list(entry.shape)}, the agent's configuration needs {tag} "
                         f"{list(labels.shape)}")
    if wrong:
        raise ValueError("; ".join(wrong[:5]) + (f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""))

"""Named arrays in the safetensors format, read and written without copies.

Parameters of hundreds of megabytes go from their arrays to a socket or a file, and back, without being assembled in
memory. bfloat16 is carried as uint16 and tagged in the index.
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rapid.malformed import MALFORMED

Array = npt.NDArray[Any]

_TAGS = {
    "float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "int16": "I16",
    "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL",
}
_DTYPES = {tag: np.dtype(name) for name, tag in _TAGS.items()} | {"BF16": np.dtype(np.uint16)}
MAX_HEADER_BYTES = 100_000_000  # limit of the safetensors library


@dataclass(frozen=True)
class TensorEntry:
    """An array: its byte range in the data section, dtype tag and shape."""

    name: str
    tag: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True)
class TensorIndex:
    """Arrays of a file in the order of their bytes, and JSON metadata."""

    entries: tuple[TensorEntry, ...]
    meta: dict[str, Any]
    label: str = ""  # for people; it also distinguishes files of equal contents

    @property
    def data_bytes(self) -> int:
        """Size of the data section in bytes."""
        return self.entries[-1].end if self.entries else 0

    @property
    def bfloat16(self) -> tuple[str, ...]:
        """Names of the bfloat16 arrays carried as uint16."""
        return tuple(e.name for e in self.entries if e.tag == "BF16")

    def header(self) -> bytes:
        """Return the bytes of a file before its data section."""
        about = {"meta": json.dumps(self.meta, sort_keys=True, allow_nan=False)}
        table: dict[str, Any] = {"__metadata__": {**about, "label": self.label} if self.label else about}
        for e in self.entries:
            table[e.name] = {"dtype": e.tag, "shape": list(e.shape), "data_offsets": [e.start, e.end]}
        text = json.dumps(table, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text

    def arrays(self, data: npt.NDArray[np.uint8]) -> dict[str, Array]:
        """Return views of a data section, uint8 [data_bytes], by name."""
        return {e.name: data[e.start:e.end].view(_DTYPES[e.tag]).reshape(e.shape) for e in self.entries}


def index_of(tensors: Mapping[str, Array], meta: Mapping[str, Any], bfloat16: Collection[str] = (),
             label: str = "") -> TensorIndex:
    """Return the index of a file of ``tensors``. Wider dtypes come first, so that every array is aligned.

    Raises ValueError for a dtype that the format lacks, or a bfloat16 array that is not carried as uint16.
    """
    unknown = set(bfloat16) - set(tensors)
    if unknown:
        raise ValueError(f"bfloat16 names unknown tensors: {', '.join(sorted(unknown))}")
    entries, start = [], 0
    for name in sorted(tensors, key=lambda n: (-tensors[n].dtype.itemsize, n)):
        array = tensors[name]
        if name == "__metadata__":
            raise ValueError("a tensor cannot be named __metadata__")
        if name in bfloat16:
            if array.dtype != np.uint16:
                raise ValueError(f"tensor {name!r} is bfloat16 carried as uint16, not {array.dtype.name}")
            tag = "BF16"
        elif array.dtype.name in _TAGS:
            tag = _TAGS[array.dtype.name]
        else:
            raise ValueError(f"tensor {name!r}: dtype {array.dtype.name} cannot be stored")
        entries.append(TensorEntry(name, tag, array.shape, start, start + array.nbytes))
        start += array.nbytes
    return TensorIndex(tuple(entries), dict(meta), label)


def parse_header(text: bytes, data_bytes: int) -> TensorIndex:
    """Parse a header's JSON (without its length prefix) and check it against the size of the data section.

    Raises ValueError unless it is a safetensors header whose arrays fill the data section exactly.
    """
    try:
        table = json.loads(text)
        found = table.pop("__metadata__", {})
        meta = dict(json.loads(found.get("meta", "{}")))
        label = str(found.get("label", ""))
        entries = [TensorEntry(name, row["dtype"], tuple(row["shape"]), *row["data_offsets"])
                   for name, row in table.items()]
    except MALFORMED as error:
        raise ValueError(f"not a safetensors header: {error}") from None
    for e in entries:
        if not all(type(n) is int and n >= 0 for n in (*e.shape, e.start, e.end)):
            raise ValueError(f"tensor {e.name!r}: shape and offsets must be natural numbers")
    place = 0
    for e in sorted(entries, key=lambda e: (e.start, e.end)):
        dtype = _DTYPES.get(e.tag) if isinstance(e.tag, str) else None
        if dtype is None:
            raise ValueError(f"tensor {e.name!r}: unknown dtype {e.tag!r}")
        if e.start != place or e.end - e.start != math.prod(e.shape) * dtype.itemsize:
            raise ValueError(f"tensor {e.name!r}: bytes {e.start} to {e.end} do not fit shape {list(e.shape)} of "
                             f"{e.tag} at {place}")
        place = e.end
    if place != data_bytes:
        raise ValueError(f"the header describes {place} bytes of data, there are {data_bytes}")
    return TensorIndex(tuple(sorted(entries, key=lambda e: (e.start, e.end))), meta, label)


def pieces_of(index: TensorIndex, tensors: Mapping[str, Array]) -> list[memoryview]:
    """Return the data section as views of the arrays, in order. Only a non-contiguous array is copied."""
    return [np.ascontiguousarray(tensors[e.name]).reshape(-1).view(np.uint8).data
            for e in index.entries if e.end > e.start]


def split_chunks(pieces: Iterable[memoryview], size: int) -> list[list[memoryview]]:
    """Cut the bytes into chunks of ``size`` (the last may be shorter), each a list of views."""
    runs: list[list[memoryview]] = []
    room = 0
    for piece in pieces:
        while len(piece):
            if room == 0:
                runs.append([])
                room = size
            part = piece[:room]
            runs[-1].append(part)
            room -= len(part)
            piece = piece[len(part):]
    return runs


def header_bytes(start: bytes, size: int) -> int:
    """Return the number of bytes before the data section of a file of ``size`` bytes, from its first 8 bytes.

    Raises ValueError unless it is a safetensors file.
    """
    if len(start) < 8:
        raise ValueError(f"not a safetensors file: {size} bytes")
    length = int.from_bytes(start[:8], "little")
    if length > min(MAX_HEADER_BYTES, size - 8):
        raise ValueError(f"not a safetensors file: its header would have {length} of {size} bytes")
    return 8 + length


def parse(data: "bytes | bytearray | memoryview | npt.NDArray[np.uint8]") -> tuple[dict[str, Array], TensorIndex]:
    """Return arrays (views of ``data``) and index of a whole file. Raise ValueError unless it is a safetensors file."""
    view = np.frombuffer(data, np.uint8)
    begin = header_bytes(view[:8].tobytes(), view.size)
    body = view[begin:]
    index = parse_header(view[8:begin].tobytes(), body.size)
    if index.entries and body.ctypes.data % 8:
        # numpy needs alignment, which files of other writers may lack.
        body = body.copy()
    return index.arrays(body), index


def file_pieces(tensors: Mapping[str, Array], meta: Mapping[str, Any],
                bfloat16: Collection[str] = (), label: str = "") -> Sequence[memoryview]:
    """Return a whole file as pieces to be written one after another."""
    index = index_of(tensors, meta, bfloat16, label)
    return [memoryview(index.header()), *pieces_of(index, tensors)]

"""Asynchronous copies of a request's observations to the device while another batch is evaluated.

Observations are written once, into page-locked memory, and copied from there in a separate stream. Sparse observations
are unpacked on the device: fewer bytes are transferred, and the CPU does no work.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from five.services.inference.requests import Array
from rapid.packed_array import PackedArray

ALIGNED = 16  # bytes at which each array begins
# torch has few kernels for uint16, so such arrays are copied as int16 with the same bits.
CARRIED = {np.dtype(np.uint16): np.dtype(np.int16), np.dtype(np.bool_): np.dtype(np.uint8)}


class SparseArray(NamedTuple):
    """Sparse encoding of float16 values on the device: ``mask`` uint8, ``values`` float16."""

    mask: torch.Tensor
    values: torch.Tensor
    shape: tuple[int, ...]


@dataclass(frozen=True)
class StagedArrays:
    """Observations on the device, valid once ``copied``; ``buffer`` is the memory of all of them."""

    arrays: dict[str, torch.Tensor | SparseArray]
    buffer: torch.Tensor
    copied: torch.cuda.Event | None


class Stager:
    """Copier of requests to a device. Any thread may stage; another thread may join the staged requests."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def stage(self, observations: Mapping[str, Array | PackedArray]) -> StagedArrays:
        """Begin one copy of all arrays without waiting for it."""
        pieces: list[Array] = []
        for array in observations.values():
            pieces += _bytes_of(array)
        offsets, size = [], 0
        for piece in pieces:
            offsets.append(size)
            size += -(-piece.size // ALIGNED) * ALIGNED
        host = torch.empty(max(size, 1), dtype=torch.uint8, pin_memory=self._stream is not None)
        buffer = host.numpy()
        for offset, piece in zip(offsets, pieces, strict=True):
            buffer[offset:offset + piece.size] = piece
        copied = None
        if self._stream is None:
            on_device = host
        else:
            with torch.cuda.stream(self._stream):
                on_device = host.to(self._device, non_blocking=True)
                copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
                copied.record(self._stream)
        parts = iter([on_device[offset:offset + piece.size] for offset, piece in zip(offsets, pieces, strict=True)])
        arrays: dict[str, torch.Tensor | SparseArray] = {}
        for name, array in observations.items():
            if isinstance(array, PackedArray):
                arrays[name] = SparseArray(next(parts), next(parts).view(torch.float16), array.shape)
            else:
                arrays[name] = next(parts).view(device_dtype(array.dtype)).view(array.shape)
        return StagedArrays(arrays, on_device, copied)

    def join(self, staged: Sequence[StagedArrays]) -> dict[str, torch.Tensor]:
        """Concatenate requests in the stream of this thread; dtypes are those of `device_dtype`."""
        for one in staged:
            if one.copied is not None:
                stream = torch.cuda.current_stream(self._device)
                stream.wait_event(one.copied)
                one.buffer.record_stream(stream)
        return {name: _join_arrays([one.arrays[name] for one in staged], self._device) for name in staged[0].arrays}


def device_dtype(dtype: "np.dtype[np.generic]") -> torch.dtype:
    """Return the dtype that an array of ``dtype`` has on the device until the policy reads it."""
    return torch.from_numpy(np.empty(0, CARRIED.get(dtype, dtype))).dtype


def to_device(array: Array, device: torch.device) -> torch.Tensor:
    """Copy a small array to the device without waiting for it."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def unpack_parts(parts: Sequence[SparseArray], device: torch.device) -> torch.Tensor:
    """Unpack the parts one after another into float16 [rows of all parts, ...]. The host knows all sizes."""
    inner = parts[0].shape[1:]
    width = math.prod(inner)
    starts, base = [], 0  # the bit at which each row begins
    for part in parts:
        starts.append(8 * base + width * np.arange(part.shape[0]))
        base += part.mask.numel()
    start = to_device(np.concatenate(starts).astype(np.int32), device)
    bit = (start[:, None] + torch.arange(width, dtype=torch.int32, device=device)).flatten()
    mask = torch.cat([part.mask for part in parts]).index_select(0, bit >> 3)
    present = (mask >> (bit & 7)) & 1
    # An absent value reads the zero in front; present values follow in order.
    zero = torch.zeros(1, dtype=torch.float16, device=device)
    values = torch.cat([zero, *(part.values for part in parts)])
    return values.index_select(0, present.cumsum(0, dtype=torch.int32) * present).view(len(start), *inner)


def _bytes_of(array: Array | PackedArray) -> list[Array]:
    if isinstance(array, PackedArray):
        data = np.frombuffer(array.data, np.uint8)
        mask_bytes = -(-array.size // 8)
        return [data[:mask_bytes], data[mask_bytes:]]
    return [np.ascontiguousarray(array).reshape(-1).view(np.uint8)]


def _join_arrays(arrays: Sequence[torch.Tensor | SparseArray], device: torch.device) -> torch.Tensor:
    packed = [array for array in arrays if isinstance(array, SparseArray)]
    if len(packed) == len(arrays):
        return unpack_parts(packed, device)
    # The clients use different encodings.
    plain = [unpack_parts([array], device) if isinstance(array, SparseArray) else array for array in arrays]
    return plain[0] if len(plain) == 1 else torch.cat(plain)

"""A request's observations on their way to the device, while another batch is evaluated there.

They are written once, into page-locked memory, and copied from there in a stream of their own. What came in the sparse
encoding is unpacked on the device: fewer bytes move, and the CPU has no part in it.
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
# Kernels for unsigned 16-bit numbers are few: they travel as signed ones of the same bits.
CARRIED = {np.dtype(np.uint16): np.dtype(np.int16), np.dtype(np.bool_): np.dtype(np.uint8)}


class Sparse(NamedTuple):
    """The sparse encoding of float16 values on the device: ``mask`` uint8, ``values`` float16."""

    mask: torch.Tensor
    values: torch.Tensor
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Staged:
    """Observations on the device once ``copied``; ``whole`` is the memory that all of them lie in."""

    arrays: dict[str, torch.Tensor | Sparse]
    whole: torch.Tensor
    copied: torch.cuda.Event | None


class Stager:
    """Copies requests to a device. Any thread may stage, another may join what was staged."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def stage(self, observations: Mapping[str, Array | PackedArray]) -> Staged:
        """Begins one copy of all arrays; the host does not wait for it."""
        pieces: list[Array] = []
        for array in observations.values():
            pieces += _bytes_of(array)
        offsets, size = [], 0
        for piece in pieces:
            offsets.append(size)
            size += -(-piece.size // ALIGNED) * ALIGNED
        host = torch.empty(max(size, 1), dtype=torch.uint8, pin_memory=self._stream is not None)
        room = host.numpy()
        for offset, piece in zip(offsets, pieces, strict=True):
            room[offset:offset + piece.size] = piece
        copied = None
        if self._stream is None:
            there = host
        else:
            with torch.cuda.stream(self._stream):
                there = host.to(self._device, non_blocking=True)
                copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
                copied.record(self._stream)
        parts = iter([there[offset:offset + piece.size] for offset, piece in zip(offsets, pieces, strict=True)])
        arrays: dict[str, torch.Tensor | Sparse] = {}
        for name, array in observations.items():
            if isinstance(array, PackedArray):
                arrays[name] = Sparse(next(parts), next(parts).view(torch.float16), array.shape)
            else:
                arrays[name] = next(parts).view(carried(array.dtype)).view(array.shape)
        return Staged(arrays, there, copied)

    def join(self, staged: Sequence[Staged]) -> dict[str, torch.Tensor]:
        """Requests one after another, in the stream of this thread; dtypes as `carried` has them."""
        if self._stream is not None:
            stream = torch.cuda.current_stream(self._device)
            for one in staged:
                if one.copied is not None:
                    stream.wait_event(one.copied)
                one.whole.record_stream(stream)
        return {name: _joined([one.arrays[name] for one in staged], self._device) for name in staged[0].arrays}


def carried(dtype: "np.dtype[np.generic]") -> torch.dtype:
    """What an array of ``dtype`` is on the device until the policy sees it."""
    return torch.from_numpy(np.empty(0, CARRIED.get(dtype, dtype))).dtype


def to_device(array: Array, device: torch.device) -> torch.Tensor:
    """A small array on the device; the host waits for nothing."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def unpacked(parts: Sequence[Sparse], device: torch.device) -> torch.Tensor:
    """float16 [rows of all parts, ...]: what was packed, part after part. All sizes are known to the host."""
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
    # An absent value is taken from the zero in front; those that are there lie in their order.
    zero = torch.zeros(1, dtype=torch.float16, device=device)
    values = torch.cat([zero, *(part.values for part in parts)])
    return values.index_select(0, present.cumsum(0, dtype=torch.int32) * present).view(len(start), *inner)


def _bytes_of(array: Array | PackedArray) -> list[Array]:
    if isinstance(array, PackedArray):
        data = np.frombuffer(array.data, np.uint8)
        border = -(-array.size // 8)
        return [data[:border], data[border:]]
    return [np.ascontiguousarray(array).reshape(-1).view(np.uint8)]


def _joined(arrays: Sequence[torch.Tensor | Sparse], device: torch.device) -> torch.Tensor:
    packed = [array for array in arrays if isinstance(array, Sparse)]
    if len(packed) == len(arrays):
        return unpacked(packed, device)
    # Clients differ in their encoding.
    plain = [unpacked([array], device) if isinstance(array, Sparse) else array for array in arrays]
    return plain[0] if len(plain) == 1 else torch.cat(plain)

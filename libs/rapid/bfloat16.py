"""bfloat16 carried as uint16, the upper half of a float32, because numpy has no bfloat16."""

from typing import Any

import numpy as np
import numpy.typing as npt

_BLOCK = 1 << 18  # values converted at a time, so that the intermediate steps stay in cache


def to_bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Convert float32 of any shape to bfloat16 bits, rounded to nearest, ties to even. NaN stays NaN."""
    bits = np.ascontiguousarray(values, np.float32).reshape(-1).view(np.uint32)
    result = np.empty(bits.size, np.uint16)
    for start in range(0, bits.size, _BLOCK):
        block = bits[start:start + _BLOCK]
        rounded = block + (np.uint32(0x7FFF) + ((block >> np.uint32(16)) & np.uint32(1)))
        nan = (block & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
        if nan.any():
            rounded[nan] = block[nan] | np.uint32(0x400000)
        result[start:start + _BLOCK] = rounded >> np.uint32(16)
    return result.reshape(values.shape)


def from_bfloat16(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Convert bfloat16 bits of any shape to the same values in float32."""
    flat = np.ascontiguousarray(bits).reshape(-1)
    result: npt.NDArray[Any] = np.empty(flat.size, np.uint32)
    for start in range(0, flat.size, _BLOCK):
        np.left_shift(flat[start:start + _BLOCK].astype(np.uint32), np.uint32(16),
                      out=result[start:start + _BLOCK])
    return result.view(np.float32).reshape(bits.shape)

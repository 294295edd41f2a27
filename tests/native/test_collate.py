"""Collation of stored samples: bit-exact for every encoding, unpack method and number of threads."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dota.packing import pack_f16
from five.native import _native
from five.native.collate import Collator, Encoding, StoredArray, StoredSet

METHODS = range(4)  # best, portable, shuffle, expand


def array(parts: int, rows: int, width: int, share: float, seed: int) -> npt.NDArray[np.uint16]:
    """Return uint16 [parts, rows, width]; half of the values repeat the previous row."""
    rng = np.random.default_rng(seed)
    shape = (parts, rows, width)
    values = np.where(rng.random(shape) < share, rng.integers(1, 2**16, shape), 0).astype(np.uint16)
    for row in range(1, rows):
        np.copyto(values[:, row], values[:, row - 1], where=rng.random((parts, width)) < 0.5)
    return values


def array_of(data: Any, encoding: Encoding, rows: int, row_bytes: int) -> StoredArray:
    return StoredArray(data, 0, memoryview(data).nbytes, encoding, rows, row_bytes)


def stored_array_of(values: npt.NDArray[np.uint16], encoding: Encoding) -> StoredArray:
    if encoding is Encoding.CHANGES:
        values = values.copy()
        values[:, 1:] ^= values[:, :-1].copy()
    data: Any = values if encoding is Encoding.PLAIN else pack_f16(values)
    return array_of(data, encoding, values.shape[1], 2 * values.shape[2])


def collated(sets: Sequence[StoredSet], parts: Sequence[int], like: npt.NDArray[np.uint16], method: int
            ) -> npt.NDArray[np.uint16]:
    out = np.full((like.shape[1], len(sets), like.shape[2]), 0xBEEF, np.uint16)
    _native.Collator(1).collate([s.native for s in sets], parts, [out], method)
    return out


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 300), st.sampled_from([0.0, 0.03, 0.4, 1.0]),
       st.integers(0, 99))
def test_every_encoding_and_method_is_bit_exact(
        parts: int, rows: int, width: int, share: float, seed: int) -> None:
    values = array(parts, rows, width, share, seed)
    order = list(np.random.default_rng(seed).permutation(parts)) + [0]
    for encoding in Encoding:
        whole = StoredSet([stored_array_of(values, encoding)], parts)
        for method in METHODS:
            out = collated([whole] * len(order), order, values, method)
            np.testing.assert_array_equal(out, values[order].transpose(1, 0, 2))


def test_every_byte_of_presence_bits() -> None:
    """Tries all 256 bytes at every position up to the end of the buffer."""
    bits = np.arange(256, dtype=np.uint8)
    values = np.unpackbits(bits, bitorder="little").astype(np.uint16)
    values[values != 0] = np.arange(1, np.count_nonzero(values) + 1)
    for width in (8, 64, 512, 2048):
        cut = values.reshape(1, -1, width)
        for method in METHODS:
            np.testing.assert_array_equal(
                collated([StoredSet([stored_array_of(cut, Encoding.PACKED)], 1)], [0], cut, method)[:, 0], cut[0])


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_batches_do_not_depend_on_threads(threads: int) -> None:
    packed, changes = array(4, 16, 333, 0.3, 1), array(4, 16, 40, 0.3, 2)
    plain = np.random.default_rng(3).normal(size=(4, 7)).astype(np.float32)
    whole = StoredSet([stored_array_of(packed, Encoding.PACKED), stored_array_of(changes, Encoding.CHANGES),
                       array_of(plain, Encoding.PLAIN, 1, 28)], 4)
    collator, order = Collator(threads), [3, 1, 0, 2, 1] * 8
    expected = [packed[order].transpose(1, 0, 2), changes[order].transpose(1, 0, 2), plain[order]]

    def batch(_: int) -> None:
        outs = [np.zeros(e.shape, e.dtype) for e in expected]
        collator.collate([whole] * len(order), order, outs)
        for out, right in zip(outs, expected, strict=True):
            np.testing.assert_array_equal(out, right)

    with ThreadPoolExecutor(4) as pool:  # several callers share a collator
        list(pool.map(batch, range(20)))


def test_a_stored_set_keeps_its_bytes_alive() -> None:
    values = array(2, 3, 50, 0.5, 0)
    message = bytearray(7) + pack_f16(values)
    whole = StoredSet([StoredArray(bytes(message), 7, len(message) - 7, Encoding.PACKED, 3, 100)], 2)
    del message
    out = np.zeros((3, 1, 50), np.uint16)
    Collator().collate([whole], [1], [out])
    np.testing.assert_array_equal(out[:, 0], values[1])


def test_wrong_bytes_are_refused_with_the_array_index() -> None:
    values = array(2, 3, 50, 0.5, 0)
    good = stored_array_of(values, Encoding.PACKED)
    data = good.data
    beyond = bytes(data[:37]) + bytes([data[37] | 0xF0]) + bytes(data[38:]) + b"\1\0" * 4
    for bad in (b"", data[:20], data[:-1], data[:-2], data + b"\0\0", beyond):
        with pytest.raises(ValueError, match="array 1"):
            StoredSet([good, array_of(bad, *good[3:])], 2)
    with pytest.raises(ValueError, match="array 0"):
        StoredSet([array_of(values, Encoding.PLAIN, 3, 99)], 2)
    with pytest.raises(ValueError, match="array 0"):  # rows must be whole 16-bit values
        StoredSet([array_of(b"\0" * 9, Encoding.PACKED, 2, 9)], 2)
    for begin, size in ((1, len(data)), (len(data) + 1, 0), (0, len(data) + 1)):
        with pytest.raises(ValueError, match="too small for array 0"):
            StoredSet([good._replace(begin=begin, size=size)], 2)
    with pytest.raises((BufferError, TypeError, ValueError)):
        StoredSet([StoredArray(values[:, ::2], 0, 400, Encoding.PLAIN, 2, 100)], 2)


def test_wrong_sets_and_targets_are_refused() -> None:
    one, other = array(2, 3, 50, 0.5, 0), array(2, 3, 49, 0.5, 0)
    sets = [StoredSet([stored_array_of(values, Encoding.PACKED)], 2) for values in (one, other)]
    out = np.zeros((3, 2, 50), np.uint16)
    collator = Collator()
    with pytest.raises(ValueError, match="differ in the size of array 0"):
        collator.collate(sets, [0, 0], [out])
    with pytest.raises(IndexError, match="no such part"):
        collator.collate(sets[:1] * 2, [0, 2], [out])
    with pytest.raises(ValueError, match="wrong target size"):
        collator.collate(sets[:1], [0], [out])
    with pytest.raises(ValueError, match="arrays and targets"):
        collator.collate(sets[:1] * 2, [0, 0], [out, out])
    with pytest.raises(ValueError, match="sets and parts"):
        collator.collate(sets[:1] * 2, [0], [out])
    out.setflags(write=False)
    with pytest.raises((BufferError, ValueError)):
        collator.collate(sets[:1] * 2, [0, 0], [out])

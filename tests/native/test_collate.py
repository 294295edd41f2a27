"""Samples at rest become a batch: bit for bit what they were, whatever unpacks them and on however many threads."""

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

WAYS = range(4)


def array(parts: int, rows: int, width: int, share: float, seed: int) -> npt.NDArray[np.uint16]:
    """uint16 [parts, rows, width], each value the one of the row before with a chance of a half."""
    rng = np.random.default_rng(seed)
    shape = (parts, rows, width)
    values = np.where(rng.random(shape) < share, rng.integers(1, 2**16, shape), 0).astype(np.uint16)
    for row in range(1, rows):
        np.copyto(values[:, row], values[:, row - 1], where=rng.random((parts, width)) < 0.5)
    return values


def stored(data: Any, encoding: Encoding, rows: int, row_bytes: int) -> StoredArray:
    return StoredArray(data, 0, memoryview(data).nbytes, encoding, rows, row_bytes)


def at_rest(values: npt.NDArray[np.uint16], encoding: Encoding) -> StoredArray:
    if encoding is Encoding.CHANGES:
        values = values.copy()
        values[:, 1:] ^= values[:, :-1].copy()
    data: Any = values if encoding is Encoding.PLAIN else pack_f16(values)
    return stored(data, encoding, values.shape[1], 2 * values.shape[2])


def stacked(sets: Sequence[StoredSet], parts: Sequence[int], like: npt.NDArray[np.uint16], way: int
            ) -> npt.NDArray[np.uint16]:
    out = np.full((like.shape[1], len(sets), like.shape[2]), 0xBEEF, np.uint16)
    _native.Collator(1).collate([s.native for s in sets], parts, [out], way)
    return out


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 300), st.sampled_from([0.0, 0.03, 0.4, 1.0]),
       st.integers(0, 99))
def test_every_form_comes_back_bit_for_bit_whatever_the_processor_has(
        parts: int, rows: int, width: int, share: float, seed: int) -> None:
    values = array(parts, rows, width, share, seed)
    order = list(np.random.default_rng(seed).permutation(parts)) + [0]
    for encoding in Encoding:
        whole = StoredSet([at_rest(values, encoding)], parts)
        for way in WAYS:
            out = stacked([whole] * len(order), order, values, way)
            np.testing.assert_array_equal(out, values[order].transpose(1, 0, 2))


def test_bits_of_every_pattern_are_spread_alike() -> None:
    """Each byte of presence bits that there is, with 256 values and with the last of the bytes at a buffer's end."""
    bits = np.arange(256, dtype=np.uint8)
    values = np.unpackbits(bits, bitorder="little").astype(np.uint16)
    values[values != 0] = np.arange(1, np.count_nonzero(values) + 1)
    for width in (8, 64, 512, 2048):
        cut = values.reshape(1, -1, width)
        for way in WAYS:
            np.testing.assert_array_equal(
                stacked([StoredSet([at_rest(cut, Encoding.PACKED)], 1)], [0], cut, way)[:, 0], cut[0])


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_batch_is_the_same_on_any_number_of_threads(threads: int) -> None:
    packed, changes = array(4, 16, 333, 0.3, 1), array(4, 16, 40, 0.3, 2)
    plain = np.random.default_rng(3).normal(size=(4, 7)).astype(np.float32)
    whole = StoredSet([at_rest(packed, Encoding.PACKED), at_rest(changes, Encoding.CHANGES),
                    stored(plain, Encoding.PLAIN, 1, 28)], 4)
    collator, order = Collator(threads), [3, 1, 0, 2, 1] * 8
    expected = [packed[order].transpose(1, 0, 2), changes[order].transpose(1, 0, 2), plain[order]]

    def batch(_: int) -> None:
        outs = [np.zeros(e.shape, e.dtype) for e in expected]
        collator.collate([whole] * len(order), order, outs)
        for out, right in zip(outs, expected, strict=True):
            np.testing.assert_array_equal(out, right)

    with ThreadPoolExecutor(4) as pool:  # who looks into the buffer takes turns with who draws from it
        list(pool.map(batch, range(20)))


def test_what_rests_keeps_its_bytes() -> None:
    values = array(2, 3, 50, 0.5, 0)
    message = bytearray(7) + pack_f16(values)
    whole = StoredSet([StoredArray(bytes(message), 7, len(message) - 7, Encoding.PACKED, 3, 100)], 2)
    del message
    out = np.zeros((3, 1, 50), np.uint16)
    Collator().collate([whole], [1], [out])
    np.testing.assert_array_equal(out[:, 0], values[1])


def test_bytes_that_do_not_fit_are_refused_by_number() -> None:
    values = array(2, 3, 50, 0.5, 0)
    good = at_rest(values, Encoding.PACKED)
    data = good.data
    beyond = bytes(data[:37]) + bytes([data[37] | 0xF0]) + bytes(data[38:]) + b"\1\0" * 4
    for bad in (b"", data[:20], data[:-1], data[:-2], data + b"\0\0", beyond):
        with pytest.raises(ValueError, match="array 1"):
            StoredSet([good, stored(bad, *good[3:])], 2)
    with pytest.raises(ValueError, match="array 0"):
        StoredSet([stored(values, Encoding.PLAIN, 3, 99)], 2)
    with pytest.raises(ValueError, match="array 0"):  # an odd number of bytes is no row of 16-bit values
        StoredSet([stored(b"\0" * 9, Encoding.PACKED, 2, 9)], 2)
    for begin, size in ((1, len(data)), (len(data) + 1, 0), (0, len(data) + 1)):
        with pytest.raises(ValueError, match="too small for array 0"):
            StoredSet([good._replace(begin=begin, size=size)], 2)
    with pytest.raises((BufferError, TypeError, ValueError)):
        StoredSet([StoredArray(values[:, ::2], 0, 400, Encoding.PLAIN, 2, 100)], 2)


def test_sets_and_targets_that_do_not_fit_are_refused() -> None:
    one, other = array(2, 3, 50, 0.5, 0), array(2, 3, 49, 0.5, 0)
    sets = [StoredSet([at_rest(one, Encoding.PACKED)], 2), StoredSet([at_rest(other, Encoding.PACKED)], 2)]
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

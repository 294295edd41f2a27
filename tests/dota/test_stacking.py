"""Samples at rest become a batch: bit for bit what they were, whatever unpacks them and on however many threads."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dota.packing import pack_f16
from dota.stacking import Form, Stacker, Stored, StoredArray

WAYS = range(4)


def array(parts: int, rows: int, width: int, share: float, seed: int) -> npt.NDArray[np.uint16]:
    """uint16 [parts, rows, width], each value the one of the row before with a chance of a half."""
    rng = np.random.default_rng(seed)
    shape = (parts, rows, width)
    values = np.where(rng.random(shape) < share, rng.integers(1, 2**16, shape), 0).astype(np.uint16)
    for row in range(1, rows):
        np.copyto(values[:, row], values[:, row - 1], where=rng.random((parts, width)) < 0.5)
    return values


def stored(data: Any, form: Form, rows: int, row_bytes: int) -> StoredArray:
    return StoredArray(data, 0, memoryview(data).nbytes, form, rows, row_bytes)


def at_rest(values: npt.NDArray[np.uint16], form: Form) -> StoredArray:
    if form is Form.CHANGES:
        values = values.copy()
        values[:, 1:] ^= values[:, :-1].copy()
    data: Any = values if form is Form.PLAIN else pack_f16(values)
    return stored(data, form, values.shape[1], 2 * values.shape[2])


def stacked(core: ModuleType, sets: Sequence[Stored], parts: Sequence[int], like: npt.NDArray[np.uint16], way: int
            ) -> npt.NDArray[np.uint16]:
    out = np.full((like.shape[1], len(sets), like.shape[2]), 0xBEEF, np.uint16)
    core.Stacker(1).stack([s.native for s in sets], parts, [out], way)
    return out


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 300), st.sampled_from([0.0, 0.03, 0.4, 1.0]),
       st.integers(0, 99))
def test_every_form_comes_back_bit_for_bit_whatever_the_processor_has(
        core: ModuleType, parts: int, rows: int, width: int, share: float, seed: int) -> None:
    values = array(parts, rows, width, share, seed)
    order = list(np.random.default_rng(seed).permutation(parts)) + [0]
    for form in Form:
        whole = Stored([at_rest(values, form)], parts)
        for way in WAYS:
            out = stacked(core, [whole] * len(order), order, values, way)
            np.testing.assert_array_equal(out, values[order].transpose(1, 0, 2))


def test_bits_of_every_pattern_are_spread_alike(core: ModuleType) -> None:
    """Each byte of presence bits that there is, with 256 values and with the last of the bytes at a buffer's end."""
    bits = np.arange(256, dtype=np.uint8)
    values = np.unpackbits(bits, bitorder="little").astype(np.uint16)
    values[values != 0] = np.arange(1, np.count_nonzero(values) + 1)
    for width in (8, 64, 512, 2048):
        cut = values.reshape(1, -1, width)
        for way in WAYS:
            np.testing.assert_array_equal(
                stacked(core, [Stored([at_rest(cut, Form.PACKED)], 1)], [0], cut, way)[:, 0], cut[0])


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_batch_is_the_same_on_any_number_of_threads(threads: int) -> None:
    packed, changes = array(4, 16, 333, 0.3, 1), array(4, 16, 40, 0.3, 2)
    plain = np.random.default_rng(3).normal(size=(4, 7)).astype(np.float32)
    whole = Stored([at_rest(packed, Form.PACKED), at_rest(changes, Form.CHANGES),
                    stored(plain, Form.PLAIN, 1, 28)], 4)
    stacker, order = Stacker(threads), [3, 1, 0, 2, 1] * 8
    expected = [packed[order].transpose(1, 0, 2), changes[order].transpose(1, 0, 2), plain[order]]

    def batch(_: int) -> None:
        outs = [np.zeros(e.shape, e.dtype) for e in expected]
        stacker.stack([whole] * len(order), order, outs)
        for out, right in zip(outs, expected, strict=True):
            np.testing.assert_array_equal(out, right)

    with ThreadPoolExecutor(4) as pool:  # who looks into the buffer takes turns with who draws from it
        list(pool.map(batch, range(20)))


def test_what_rests_keeps_its_bytes() -> None:
    values = array(2, 3, 50, 0.5, 0)
    message = bytearray(7) + pack_f16(values)
    whole = Stored([StoredArray(bytes(message), 7, len(message) - 7, Form.PACKED, 3, 100)], 2)
    del message
    out = np.zeros((3, 1, 50), np.uint16)
    Stacker().stack([whole], [1], [out])
    np.testing.assert_array_equal(out[:, 0], values[1])


def test_bytes_that_do_not_fit_are_refused_by_number() -> None:
    values = array(2, 3, 50, 0.5, 0)
    good = at_rest(values, Form.PACKED)
    data = good.data
    beyond = bytes(data[:37]) + bytes([data[37] | 0xF0]) + bytes(data[38:]) + b"\1\0" * 4
    for bad in (b"", data[:20], data[:-1], data[:-2], data + b"\0\0", beyond):
        with pytest.raises(ValueError, match="do not fit together in array 1"):
            Stored([good, stored(bad, *good[3:])], 2)
    with pytest.raises(ValueError, match="array 0"):
        Stored([stored(values, Form.PLAIN, 3, 99)], 2)
    with pytest.raises(ValueError, match="array 0"):  # an odd number of bytes is no row of 16-bit values
        Stored([stored(b"\0" * 9, Form.PACKED, 2, 9)], 2)
    for begin, size in ((1, len(data)), (len(data) + 1, 0), (0, len(data) + 1)):
        with pytest.raises(ValueError, match="do not hold array 0"):
            Stored([good._replace(begin=begin, size=size)], 2)
    with pytest.raises((BufferError, TypeError, ValueError)):
        Stored([StoredArray(values[:, ::2], 0, 400, Form.PLAIN, 2, 100)], 2)


def test_sets_and_targets_that_do_not_fit_are_refused() -> None:
    one, other = array(2, 3, 50, 0.5, 0), array(2, 3, 49, 0.5, 0)
    sets = [Stored([at_rest(one, Form.PACKED)], 2), Stored([at_rest(other, Form.PACKED)], 2)]
    out = np.zeros((3, 2, 50), np.uint16)
    stacker = Stacker()
    with pytest.raises(ValueError, match="differ in the size of array 0"):
        stacker.stack(sets, [0, 0], [out])
    with pytest.raises(IndexError, match="a part"):
        stacker.stack(sets[:1] * 2, [0, 2], [out])
    with pytest.raises(ValueError, match="another size"):
        stacker.stack(sets[:1], [0], [out])
    with pytest.raises(ValueError, match="one target"):
        stacker.stack(sets[:1] * 2, [0, 0], [out, out])
    with pytest.raises(ValueError, match="as many parts"):
        stacker.stack(sets[:1] * 2, [0], [out])
    out.setflags(write=False)
    with pytest.raises((BufferError, ValueError)):
        stacker.stack(sets[:1] * 2, [0, 0], [out])

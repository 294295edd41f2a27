"""Bytes of packed arrays, by numpy and by the installed codec."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dota import packing
from five.clients.wire import SPARSE
from rapid import codec
from tests.clients.tensor_sets import encode

OWN = (codec.pack_sparse, codec.unpack_sparse, codec.pack_changes)


def test_codec_with_other_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match="differ from the wire format"):
        codec.register(lambda values: values.tobytes(), *OWN[1:])
    with pytest.raises(ValueError, match="does not read"):
        codec.register(OWN[0], lambda data, count: np.zeros(count, np.float16), OWN[2])
    with pytest.raises(ValueError, match="bytes of changes differ"):
        codec.register(*OWN[:2], lambda array, period: codec.pack_changes(array, period + 1))
    calls = []

    def pack(values: np.ndarray) -> bytes:
        calls.append(values.size)
        return codec.pack_sparse(values)

    try:
        codec.register(pack, *OWN[1:])
        encode("x", np.zeros((2, 3), np.float16), SPARSE)
        assert calls[-1] == 6
    finally:
        codec.register(*OWN)


def test_core_codec_writes_the_same_bytes() -> None:
    try:
        codec.register(packing.pack_f16, packing.unpacked_f16, packing.pack_changes)
    finally:
        codec.register(*OWN)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 9), st.integers(0, 150), st.integers(1, 10), st.integers(0, 99))
def test_core_and_numpy_changes_are_equal(rows: int, width: int, period: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    array = np.where(rng.random((rows, width)) < 0.4, rng.integers(1, 2**16, (rows, width)), 0).astype(np.uint16)
    array[1:][rng.random((rows - 1, width)) < 0.6] = 7
    data = codec.pack_changes(array, period)
    assert packing.pack_changes(array, period) == data
    assert packing.join_changes([packing.pack_f16(row) for row in array], width, period) == data
    words = codec.unpack_sparse(data, array.size).view(np.uint16).reshape(rows, width)
    codec.restore(words, period)
    np.testing.assert_array_equal(words, array)


def test_changes_of_byte_arrays_use_16_bit_words() -> None:
    array = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5)
    assert packing.pack_changes(array, 2) == codec.pack_changes(array, 2) == codec.pack_changes(
        array.reshape(3, -1).view(np.uint16), 2)
    for pack in (packing.pack_changes, codec.pack_changes):
        with pytest.raises(ValueError, match=r"rows of \[3, 5\] uint8 are no.* whole number of 16-bit words"):
            pack(np.ascontiguousarray(array[:, :3]), 2)


def test_invalid_packed_rows_are_refused() -> None:
    good = packing.pack_f16(np.ones(20, np.float16))
    for bad in (b"", good[:-1], good + b"\0"):
        with pytest.raises(ValueError, match="packed array of 20 values"):
            packing.join_changes([good, bad], 20, 2)

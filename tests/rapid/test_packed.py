"""Arrays that stay packed: cut by slices, checked without being unpacked."""

from collections.abc import Sequence

import numpy as np
import pytest

from rapid import wire
from rapid.packed import PackedArray, PackedRows
from tests.rapid.tensor_sets import encode_set


def sparse(*shape: int, share: float = 0.3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * (rng.random(shape) < share)).astype(np.float16)


@pytest.mark.parametrize("shape", [(16, 8), (32, 3, 5), (64,), (16, 1000), (8, 24)])
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_parts_are_those_of_the_array(shape: tuple[int, ...], parts: int) -> None:
    array = sparse(*shape)
    found = wire.pack(array).split(parts)
    assert found is not None and len(found) == parts
    for part, expected in zip(found, np.split(array, parts), strict=True):
        assert part.shape == expected.shape and part.dtype == np.float16
        assert part.data == wire.pack_sparse(expected)
        assert np.array_equal(wire.unpack(PackedArray(part.shape, part.data)), expected)


def test_a_border_within_a_byte_is_not_cut_and_rows_that_do_not_split_are_refused() -> None:
    assert wire.pack(sparse(4, 3)).split(2) is None
    with pytest.raises(ValueError, match="5 rows cannot be split into 2"):
        wire.pack(sparse(5, 8)).split(2)


@pytest.mark.parametrize("count", [1, 7, 8, 63, 64, 65, 1000])
def test_what_is_no_packed_form_is_refused_as_unpacking_it_is(count: int) -> None:
    array = sparse(count, share=0.5)
    data = wire.pack_sparse(array)
    assert PackedArray((count,), data).nbytes == len(data)
    broken = [data[:-1], data + b"\0", b"", bytes([data[0] ^ 1]) + data[1:]]
    if count % 8:
        mask = -(-count // 8)
        broken.append(data[:mask - 1] + bytes([data[mask - 1] | 0x80]) + data[mask:] + b"\0\0")
    for bad in broken:
        with pytest.raises(ValueError):
            wire.unpack_sparse(bad, count)
        with pytest.raises(ValueError, match=r"bytes|bits"):
            PackedArray((count,), bad)


@pytest.mark.parametrize("zstd", [False, True])
def test_a_set_stays_packed_where_it_came_packed(zstd: bool) -> None:
    arrays = {"shared": sparse(16, 40), "mask": np.ones((16, 2), np.float32), "resets": np.zeros(16, np.bool_)}
    message = encode_set(arrays, "abc", ("shared",), zstd)
    found = wire.decode_packed_set(message, "abc")
    assert isinstance(found["shared"], PackedArray) and isinstance(found["mask"], np.ndarray)
    assert np.array_equal(wire.unpack(found["shared"]), arrays["shared"])
    wire.require(found, {"shared": ((40,), np.float16), "mask": ((2,), np.float32), "resets": ((), np.bool_)}, 16)
    with pytest.raises(ValueError, match=r"'shared': float16 \[16, 40\], expected float16 \[16, 41\]"):
        wire.require({"shared": found["shared"]}, {"shared": ((41,), np.float16)}, 16)
    with pytest.raises(ValueError, match="needs 1280 bytes, the limit is 1279"):
        wire.decode_packed_set(message, "abc", max_bytes=1279)  # as it would be unpacked
    message.tensors[0].data = message.tensors[0].data[:-1]
    with pytest.raises(ValueError, match="'shared'"):
        wire.decode_packed_set(message, "abc")


def join(rows: Sequence[bytes], values: int) -> bytes:
    return wire.pack_sparse(np.concatenate([wire.unpack_sparse(row, values) for row in rows]))


def rows_of(array: np.ndarray, lead: int) -> PackedRows:
    """Packed rows of an array, whose first ``lead`` dimensions count them."""
    flat = array.reshape(-1, *array.shape[lead:])
    rows = np.array([wire.pack_sparse(row) for row in flat], np.object_).reshape(array.shape[:lead])
    return PackedRows(rows, array.shape[lead:], join)


def test_rows_travel_as_the_array_that_they_make() -> None:
    array = sparse(6, 3, 7)
    rows = rows_of(array, 1)
    assert rows.shape == array.shape and rows.dtype == array.dtype and len(rows) == 6
    for which in (np.arange(6), np.array([5, 0, 0]), np.array([2])):
        assert rows[which].joined().data == wire.pack(array[which]).data
        for zstd in (False, True):
            assert (encode_set({"a": rows[which]}, "l", ("a",), zstd).SerializeToString()
                    == encode_set({"a": array[which]}, "l", ("a",), zstd).SerializeToString())
    pairs = rows_of(array.reshape(3, 2, 3, 7), 2)
    assert pairs.shape == (3, 2, 3, 7) and pairs.joined().data == wire.pack(array).data
    with pytest.raises(ValueError, match="'a' is packed"):
        encode_set({"a": rows}, "l")


def test_present_values_of_rows_are_known_by_their_bits() -> None:
    array = sparse(5, 43, seed=3)
    columns = np.array([0, 7, 8, 42, 9])
    assert (rows_of(array, 1).present(columns) == (array.view(np.uint16)[:, columns] != 0)).all()  # minus zero is

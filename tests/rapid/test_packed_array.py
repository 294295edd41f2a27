"""Packed arrays: validated without unpacking, joined from rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from five.clients import wire
from five.protos.v1.experience_pb2 import PushRequest
from five.protos.v1.tensors_pb2 import Tensor, TensorSet
from rapid import codec
from rapid.packed_array import PackedArray, PackedRows, RowJoiner
from tests.clients.tensor_sets import encode_set


def sparse(*shape: int, share: float = 0.3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * (rng.random(shape) < share)).astype(np.float16)


@pytest.mark.parametrize("count", [1, 7, 8, 63, 64, 65, 1000])
def test_invalid_packed_bytes_are_refused(count: int) -> None:
    array = sparse(count, share=0.5)
    data = codec.pack_sparse(array)
    assert PackedArray((count,), data).nbytes == len(data)
    broken = [data[:-1], data + b"\0", b"", bytes([data[0] ^ 1]) + data[1:]]
    if count % 8:
        mask = -(-count // 8)
        broken.append(data[:mask - 1] + bytes([data[mask - 1] | 0x80]) + data[mask:] + b"\0\0")
    for bad in broken:
        with pytest.raises(ValueError):
            codec.unpack_sparse(bad, count)
        with pytest.raises(ValueError, match=r"bytes|bits"):
            PackedArray((count,), bad)


@pytest.mark.parametrize("zstd", [False, True])
def test_decoding_keeps_sparse_arrays_packed(zstd: bool) -> None:
    arrays = {"shared": sparse(16, 40), "mask": np.ones((16, 2), np.float32), "resets": np.zeros(16, np.bool_)}
    message = encode_set(arrays, "abc", ("shared",), zstd)
    found = wire.decode_packed_set(message, "abc")
    assert isinstance(found["shared"], PackedArray) and isinstance(found["mask"], np.ndarray)
    assert np.array_equal(wire.unpack(found["shared"]), arrays["shared"])
    wire.require_layout(found, {"shared": ((40,), np.float16), "mask": ((2,), np.float32), "resets": ((), np.bool_)},
                        16)
    with pytest.raises(ValueError, match=r"'shared': float16 \[16, 40\], expected float16 \[16, 41\]"):
        wire.require_layout({"shared": found["shared"]}, {"shared": ((41,), np.float16)}, 16)
    with pytest.raises(ValueError, match="needs 1280 bytes, the limit is 1279"):
        wire.decode_packed_set(message, "abc", max_bytes=1279)  # the unpacked size
    message.tensors[0].data = message.tensors[0].data[:-1]
    with pytest.raises(ValueError, match="'shared'"):
        wire.decode_packed_set(message, "abc")


@pytest.mark.parametrize("zstd", [False, True])
@pytest.mark.parametrize("dtype", [np.float16, np.uint8, np.uint16, np.float32])
def test_decoding_keeps_changes_packed_on_request(dtype: type, zstd: bool) -> None:
    rng = np.random.default_rng(1)
    array = (rng.integers(0, 9, (12, 3, 10)) * (rng.random((12, 3, 10)) < 0.3)).astype(dtype)
    array[1::2] = array[::2]
    data = wire.serialize_with_set(PushRequest(), "tensors", {"x": array, "mask": np.ones((3, 1), np.float32)}, "abc",
                                   zstd=zstd, changes=("x", "other"), period=4)
    message = PushRequest.FromString(data).tensors
    for decode in (wire.decode_set, wire.decode_packed_set):
        found = decode(message, "abc")["x"]
        assert isinstance(found, np.ndarray) and found.dtype == dtype and np.array_equal(found, array)
    kept = wire.decode_stored_set(message, "abc")["x"]
    assert isinstance(kept, PackedArray) and (kept.period, kept.shape, kept.dtype) == (4, array.shape, dtype)
    assert np.array_equal(wire.unpack(kept), array)
    whole = wire.pack(array.view(np.uint8).view(np.float16).reshape(12, -1))
    assert kept.nbytes < whole.nbytes


@pytest.mark.parametrize(("changed", "words"), [
    ({"period": 0}, "period 0 is invalid for encoding 5"),
    ({"encoding": wire.SPARSE}, "period 2 is invalid for encoding 2"),
    ({"dtype": "bool", "shape": [4, 20]}, "cannot be sent as changes"),
    ({"shape": []}, "cannot be sent as changes"),
    ({"dtype": "uint8", "shape": [4, 5]}, r"rows of \[5\] uint8 are not a whole number of 16-bit words"),
    ({"shape": [4, 11]}, "'x': .* bytes"),
])
def test_invalid_changes_are_refused_by_name(changed: dict[str, Any], words: str) -> None:
    array = sparse(4, 10)
    tensor = {"name": "x", "dtype": "float16", "shape": [4, 10], "encoding": wire.CHANGES, "period": 2,
              "data": codec.pack_changes(array, 2)}
    good = TensorSet(tensors=[Tensor(**tensor)])
    assert np.array_equal(wire.decode_set(good, "")["x"], array)
    with pytest.raises(ValueError, match=words):
        wire.decode_stored_set(TensorSet(tensors=[Tensor(**(tensor | changed))]), "")


def join(rows: Sequence[bytes], values: int) -> bytes:
    return codec.pack_sparse(np.concatenate([codec.unpack_sparse(row, values) for row in rows]))


def join_changes(rows: Sequence[bytes], values: int, period: int) -> bytes:
    return codec.pack_changes(np.stack([codec.unpack_sparse(row, values) for row in rows]), period)


def rows_of(array: np.ndarray, lead: int) -> PackedRows:
    """Return packed rows of an array whose first ``lead`` dimensions count them."""
    flat = array.reshape(-1, *array.shape[lead:])
    rows = np.array([codec.pack_sparse(row) for row in flat], np.object_).reshape(array.shape[:lead])
    return PackedRows(rows, array.shape[lead:], RowJoiner(join, join_changes))


def test_packed_rows_encode_like_their_array() -> None:
    array = sparse(6, 3, 7)
    rows = rows_of(array, 1)
    assert rows.shape == array.shape and rows.dtype == array.dtype and len(rows) == 6
    for which in (np.arange(6), np.array([5, 0, 0]), np.array([2])):
        assert rows[which].joined().data == wire.pack(array[which]).data
        for zstd in (False, True):
            assert (encode_set({"a": rows[which]}, "l", ("a",), zstd).SerializeToString()
                    == encode_set({"a": array[which]}, "l", ("a",), zstd).SerializeToString())
        for period in (1, 2, 4):
            changes = rows[which].changes(period)
            assert changes.period == period and np.array_equal(wire.unpack(changes), array[which])
    pairs = rows_of(array.reshape(3, 2, 3, 7), 2)
    assert pairs.shape == (3, 2, 3, 7) and pairs.joined().data == wire.pack(array).data
    with pytest.raises(ValueError, match="'a' is packed"):
        encode_set({"a": rows}, "l")


def test_presence_of_row_values() -> None:
    array = sparse(5, 43, seed=3)
    columns = np.array([0, 7, 8, 42, 9])
    assert (rows_of(array, 1).present(columns) == (array.view(np.uint16)[:, columns] != 0)).all()  # also -0

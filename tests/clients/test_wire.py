"""Tensors on the wire: lossless round trips, and no malformed arrays."""

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from five.clients import wire
from five.clients.wire import RAW, SPARSE, SPARSE_ZSTD, ZSTD, Tensor, TensorSet
from five.protos.v1.inference_pb2 import ActRequest
from rapid.rpc.errors import LayoutMismatch
from tests.clients.tensor_sets import encode, encode_set


def mostly_zero(shape: tuple[int, ...]) -> np.ndarray:
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float16)
    values[np.random.default_rng(1).random(shape) < 0.8] = 0
    return values


@pytest.mark.parametrize("name", list(wire.DTYPES))
@pytest.mark.parametrize("encoding", [RAW, ZSTD])
def test_dtype_round_trip(name: str, encoding: int) -> None:
    array = np.random.default_rng(0).integers(0, 2, (3, 1, 5)).astype(name)
    back = wire.decode(encode("x", array, encoding))
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("encoding", [SPARSE, SPARSE_ZSTD])
@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (8,), (9,), (4, 33), (2, 0, 3)])
def test_sparse_round_trip(encoding: int, shape: tuple[int, ...]) -> None:
    array = mostly_zero(shape)
    np.testing.assert_array_equal(wire.decode(encode("x", array, encoding)), array)


def test_sparse_keeps_bits_of_special_values() -> None:
    array = np.array([0.0, -0.0, np.nan, np.inf, 6e-8, 0.0], np.float16)
    back = wire.decode(encode("x", array, SPARSE))
    np.testing.assert_array_equal(back.view(np.uint16), array.view(np.uint16))


def test_sparse_bytes_follow_the_format() -> None:
    array = np.zeros(10, np.float16)
    array[1], array[9] = 1.0, -2.0
    assert encode("x", array, SPARSE).data == bytes([0b10, 0b10]) + array[[1, 9]].tobytes()


def test_non_contiguous_view_is_written_row_major() -> None:
    array = np.arange(12, dtype=np.int16).reshape(3, 4).T[::2]
    np.testing.assert_array_equal(wire.decode(encode("x", array)), array)


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=64), shape=st.lists(st.integers(0, 2**32 - 1), max_size=4),
       dtype=st.sampled_from([*wire.DTYPES, "object", "float64", ""]), encoding=st.integers(0, 6))
def test_arbitrary_messages_are_decoded_or_refused(data: bytes, shape: list[int], dtype: str, encoding: int) -> None:
    tensor = Tensor(name="x", dtype=dtype, shape=shape, data=data)
    tensor.encoding = encoding
    try:
        array = wire.decode(tensor, max_bytes=1 << 20)
    except ValueError as error:
        assert "'x'" in str(error)
    else:
        assert array.shape == tuple(shape) and array.dtype == np.dtype(dtype)


@pytest.mark.parametrize(("change", "says"), [
    (dict(dtype="object"), "unknown dtype 'object'"),
    (dict(dtype="float64"), "unknown dtype"),
    (dict(shape=[5]), "needs 20"),
    (dict(shape=[4, 2**31, 2**31]), "the limit is"),
    (dict(shape=[1] * 9), "9 dimensions"),
    (dict(encoding=SPARSE), "sparse encodings require float16"),
    (dict(encoding=0), "unknown encoding 0"),
    (dict(encoding=ZSTD), "not a zstd frame"),
    (dict(data=b"\0" * 17), "17 bytes"),
])
def test_error_names_the_tensor(change: dict, says: str) -> None:
    tensor = encode("weights", np.zeros(4, np.float32))
    for field, value in change.items():
        if field == "shape":
            tensor.shape[:] = value
        else:
            setattr(tensor, field, value)
    with pytest.raises(ValueError, match=says) as caught:
        wire.decode(tensor)
    assert "'weights'" in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"\xff", b"\x01", b"\x01\0\0\0", b"\x20\0\0"])
def test_invalid_sparse_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="'x'"):
        wire.decode(Tensor(name="x", dtype="float16", shape=[5], encoding=SPARSE, data=data))


def test_decompression_bomb_is_refused() -> None:
    bomb = zstandard.ZstdCompressor(level=19).compress(bytes(1 << 28))
    assert len(bomb) < 1 << 16
    tensor = Tensor(name="x", dtype="uint8", shape=[100], encoding=ZSTD, data=bomb)
    with pytest.raises(ValueError, match="announces 268435456 bytes"):
        wire.decode(tensor)


def test_bool_must_be_0_or_1() -> None:
    with pytest.raises(ValueError, match="must be 0 or 1"):
        wire.decode(Tensor(name="x", dtype="bool", shape=[2], encoding=RAW, data=b"\x01\x02"))


def test_unsupported_dtype_is_refused_when_encoding() -> None:
    with pytest.raises(ValueError, match="float64 cannot be sent"):
        encode("x", np.zeros(3))
    with pytest.raises(ValueError, match="require float16"):
        encode("x", np.zeros(3, np.float32), SPARSE)


def test_set_round_trip_and_encodings() -> None:
    arrays = {"a": mostly_zero((4, 100)), "b": np.arange(4, dtype=np.int64)}
    for zstd in (False, True):
        message = encode_set(arrays, "abc", sparse=("a",), zstd=zstd)
        assert [t.encoding for t in message.tensors] == ([SPARSE_ZSTD, ZSTD] if zstd else [SPARSE, RAW])
        back = wire.decode_set(TensorSet.FromString(message.SerializeToString()), "abc")
        assert list(back) == ["a", "b"]
        for name in arrays:
            np.testing.assert_array_equal(back[name], arrays[name])


def test_layout_mismatch_names_both_layouts() -> None:
    message = encode_set({"a": np.zeros(1, np.int8)}, "0123456789abcdef")
    with pytest.raises(LayoutMismatch, match="0123456789abcdef.*fedcba9876543210"):
        wire.decode_set(message, "fedcba9876543210")
    assert wire.decode_set(message, None)


def test_set_size_is_bounded_and_names_are_unique() -> None:
    message = encode_set({"a": np.zeros(600, np.uint8), "b": np.zeros(600, np.uint8)}, "x")
    assert wire.decode_set(message, "x", max_bytes=1200)
    with pytest.raises(ValueError, match="'b'.*the limit is 400"):
        wire.decode_set(message, "x", max_bytes=1000)
    message.tensors[1].name = "a"
    with pytest.raises(ValueError, match="'a' occurs twice"):
        wire.decode_set(message, "x")


def test_require_layout_names_the_first_difference() -> None:
    specs = {"a": ((3,), np.float16), "b": ((), np.int64)}
    good = {"a": np.zeros((2, 3), np.float16), "b": np.zeros(2, np.int64)}
    wire.require_layout(good, specs, 2)
    with pytest.raises(ValueError, match="'b' is missing"):
        wire.require_layout({"a": good["a"]}, specs, 2)
    with pytest.raises(ValueError, match="'c' is not part"):
        wire.require_layout({**good, "c": good["b"]}, specs, 2)
    with pytest.raises(ValueError, match=r"'a': float16 \[2, 3\], expected float16 \[5, 3\]"):
        wire.require_layout(good, specs, 5)
    with pytest.raises(ValueError, match="'b': int32"):
        wire.require_layout({**good, "b": np.zeros(2, np.int32)}, specs, 2)


def test_bytes_field_must_have_its_size() -> None:
    np.testing.assert_array_equal(wire.decode_bytes("ids", np.arange(3).tobytes(), np.int64, (3,)), np.arange(3))
    with pytest.raises(ValueError, match=r"ids: 23 bytes where int64 \[3\] needs 24"):
        wire.decode_bytes("ids", b"\0" * 23, np.int64, (3,))


def test_fill_returns_the_encoded_bytes() -> None:
    target = TensorSet()
    taken = wire.fill_tensor_set(target, {"a": np.ones(600, np.float32), "b": np.ones(8, np.float16)}, "x",
                                 sparse=("b",))
    assert taken == 2400 + 1 + 16
    assert taken == sum(len(tensor.data) for tensor in target.tensors)


@pytest.mark.parametrize("zstd", [False, True])
def test_serialized_set_equals_a_filled_message(zstd: bool) -> None:
    # Sizes around the limits of one, two and three length bytes.
    arrays = {"sparse": mostly_zero((4, 33)), "strided": np.arange(300, dtype=np.int32)[::3],
              "none": np.zeros((0, 3), np.float32), "one": np.array(7, np.int64), "flag": np.array([True, False]),
              "long": np.random.default_rng(2).integers(0, 256, 20_000, np.uint8)}
    message = ActRequest(request_id=3, sessions=b"12345678", epoch=5)
    data = wire.serialize_with_set(message, "observations", arrays, "layout", ("sparse",), zstd)
    wire.fill_tensor_set(message.observations, arrays, "layout", ("sparse",), zstd)
    assert ActRequest.FromString(data) == message


def test_serialized_set_keeps_other_fields() -> None:
    message = ActRequest()
    wire.fill_tensor_set(message.states, {"h": np.ones(3, np.float32)}, "layout")
    back = ActRequest.FromString(wire.serialize_with_set(message, "observations", {"x": np.ones(2, np.float16)},
                                                         "layout"))
    np.testing.assert_array_equal(wire.decode_set(back.states, "layout")["h"], np.ones(3))
    np.testing.assert_array_equal(wire.decode_set(back.observations, "layout")["x"], np.ones(2))


@pytest.mark.parametrize("array, sparse", [(np.zeros(2), ()), (np.zeros(2, ">f2"), ()), (np.zeros(2, np.int8), ("x",))])
def test_serialize_refuses_unsupported_arrays(array: np.ndarray, sparse: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="tensor 'x'"):
        wire.serialize_with_set(ActRequest(), "observations", {"x": array}, "layout", sparse)

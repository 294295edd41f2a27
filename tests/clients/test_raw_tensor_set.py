"""Copy-free parsing agrees with protobuf and refuses everything else."""

from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from five.clients import wire
from five.clients.raw_tensor_set import TensorSetReader
from five.protos.v1 import experience_pb2, tensors_pb2
from tests.clients.tensor_sets import encode_set

PushRequest = experience_pb2.PushRequest


def reader() -> TensorSetReader[Any]:
    return TensorSetReader(PushRequest, "tensors")


def arrays(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"shared": (rng.normal(size=(6, 40)) * (rng.random((6, 40)) < 0.3)).astype(np.float16),
            "ids": rng.integers(0, 9, (6, 3)).astype(np.uint16), "mask": np.ones((6, 2), np.float32),
            "empty": np.zeros((0, 4), np.int16), "once": np.array(True)}


def request(seed: int = 0, **changes: Any) -> Any:
    return PushRequest(**{"segment_id": "a", "run": "trial", "samples": 3, "reward_sum": -1.5, "newest_version": 7,
                          "tensors": encode_set(arrays(seed), "abc", ("shared",))} | changes)


def read(from_: TensorSetReader[Any], data: bytes) -> tuple[Any, Any]:
    message, sets = from_.split(data)
    return message, from_.tensors(sets)


def as_protobuf(found: Any) -> Any:
    return tensors_pb2.TensorSet(layout_hash=found.layout_hash, tensors=[
        tensors_pb2.Tensor(name=t.name, dtype=t.dtype, shape=t.shape, encoding=t.encoding, period=t.period,
                           data=bytes(t.data))
        for t in found.tensors])


def test_reader_agrees_with_protobuf_without_copies() -> None:
    into = reader()
    for seed in range(3):  # the second and third use the first one's cached headers
        sent = request(seed)
        data = sent.SerializeToString()
        message, found = read(into, data)
        assert as_protobuf(found) == sent.tensors
        sent.ClearField("tensors")
        assert message == sent
        for tensor in found.tensors:
            assert tensor.data.obj is data or not tensor.data
        back = wire.decode_packed_set(found, "abc")
        np.testing.assert_array_equal(wire.unpack(back["shared"]), arrays(seed)["shared"])
        for name in ("ids", "mask", "empty", "once"):
            np.testing.assert_array_equal(back[name], arrays(seed)[name])


def test_client_bytes_are_readable() -> None:
    data = wire.serialize_with_set(PushRequest(segment_id="a"), "tensors", arrays(), "abc", ("shared",))
    message, found = read(reader(), data)
    assert message.segment_id == "a" and as_protobuf(found) == encode_set(arrays(), "abc", ("shared",))


def test_changed_tensors_are_read_correctly() -> None:
    into = reader()
    sets = [encode_set(arrays(), "abc", ("shared",)), encode_set({"ids": arrays()["ids"]}, "abc"),
            encode_set({"shared": arrays()["shared"][:2], "idsx": arrays()["ids"]}, "x"), tensors_pb2.TensorSet()]
    for tensors in [*sets, *sets]:
        assert as_protobuf(read(into, request(tensors=tensors).SerializeToString())[1]) == tensors


def test_field_order_and_split_sets_are_supported() -> None:
    first, second = encode_set({"ids": arrays()["ids"]}, "a"), encode_set({"mask": arrays()["mask"]}, "b")
    pieces = [PushRequest(tensors=first), PushRequest(segment_id="z", epoch=3), PushRequest(tensors=second)]
    data = b"".join(piece.SerializeToString() for piece in pieces)
    message, found = read(reader(), data)
    whole = PushRequest.FromString(data)
    assert (message.segment_id, message.epoch) == ("z", 3)
    assert as_protobuf(found) == whole.tensors


def test_tensor_with_data_first_is_read() -> None:
    tensor = encode_set({"ids": arrays()["ids"]}, "a").tensors[0]
    data = tensors_pb2.Tensor(data=tensor.data).SerializeToString()
    tensor.ClearField("data")
    swapped = data + tensor.SerializeToString()
    inner = b"\x12" + bytes([len(swapped)]) + swapped
    whole = b"\x2a" + bytes([len(inner)]) + inner
    into = reader()
    for _ in range(2):
        assert as_protobuf(read(into, whole)[1]) == PushRequest.FromString(whole).tensors


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4))
def test_damaged_messages_match_protobuf_or_are_refused(seed: int, damages: int) -> None:
    rng = np.random.default_rng(seed)
    into = reader()
    good = request(tensors=encode_set({"ids": np.ones((2, 3), np.uint16), "mask": np.ones((2, 2), np.float32)}, "abc")
                   ).SerializeToString()
    read(into, good)
    bad = bytearray(good)
    for _ in range(damages):
        if rng.random() < 0.3:
            del bad[int(rng.integers(len(bad) + 1)):]
        if bad:
            bad[int(rng.integers(len(bad)))] = int(rng.integers(256))
    try:
        message, found = read(into, bytes(bad))
    except ValueError:
        return
    try:
        whole = PushRequest.FromString(bytes(bad))
    except DecodeError:
        return  # unknown fields are skipped without validation
    for one in (whole, message):
        one.DiscardUnknownFields()
    assert as_protobuf(found) == whole.tensors
    whole.ClearField("tensors")
    assert message.SerializeToString() == whole.SerializeToString()


@pytest.mark.parametrize("data", [b"\x2a", b"\x2a\x05ab", b"\x2b", b"\x00\x00", b"\xff" * 11, b"\x0a\x02\xff\xfe",
                                  b"\x2a\x02\x12\x05", b"\x2a\x03\x0a\x01\xff", b"\x2a\x04\x12\x02\x0a\x05"])
def test_invalid_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="message"):
        read(reader(), data)

"""Compatibility of tensor files with the safetensors library."""

import json

import numpy as np
import pytest
import safetensors.numpy

from rapid import tensorfile
from rapid.bfloat16 import from_bfloat16, to_bfloat16

ARRAYS = {
    "b": np.arange(5, dtype=np.int8), "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "n": np.array(3, np.int64), "empty": np.zeros((0, 4), np.float16), "flag": np.array([True, False]),
    "ids": np.arange(3, dtype=np.uint16),
}


def file_of(arrays: dict, meta: dict, bfloat16: tuple[str, ...] = ()) -> bytes:
    return b"".join(bytes(p) for p in tensorfile.file_pieces(arrays, meta, bfloat16))


def test_file_round_trip() -> None:
    arrays, index = tensorfile.parse(file_of(ARRAYS, {"version": 3, "nested": {"x": [1, 2]}}))
    assert index.meta == {"version": 3, "nested": {"x": [1, 2]}}
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_files_are_compatible_with_safetensors() -> None:
    theirs = safetensors.numpy.load(file_of(ARRAYS, {}))
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(theirs[name], array)
    ours, _ = tensorfile.parse(safetensors.numpy.save(ARRAYS))
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(ours[name], array)


def test_arrays_that_are_not_contiguous() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4).T
    back, _ = tensorfile.parse(file_of({"x": array}, {}))
    np.testing.assert_array_equal(back["x"], array)


def test_cut_covers_every_byte_once_without_copies() -> None:
    index = tensorfile.index_of(ARRAYS, {})
    pieces = tensorfile.pieces_of(index, ARRAYS)
    whole = b"".join(bytes(p) for p in pieces)
    for size in (1, 3, 7, 64, 10_000):
        runs = tensorfile.split_chunks(pieces, size)
        assert b"".join(bytes(p) for run in runs for p in run) == whole
        assert all(sum(map(len, run)) == size for run in runs[:-1])
    big = np.zeros(1000, np.float32)
    run = tensorfile.split_chunks(tensorfile.pieces_of(tensorfile.index_of({"x": big}, {}), {"x": big}), 512)[1]
    big[128] = 1.0
    assert bytes(run[0][:4]) == np.float32(1).tobytes()


def test_bfloat16_is_tagged() -> None:
    bits = to_bfloat16(np.linspace(-1, 1, 6, dtype=np.float32))
    data = file_of({"x": bits, "plain": bits}, {}, ("x",))
    header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    assert header["x"]["dtype"] == "BF16" and header["plain"]["dtype"] == "U16"
    arrays, index = tensorfile.parse(data)
    assert index.bfloat16 == ("x",)
    np.testing.assert_array_equal(arrays["x"], bits)


def test_bfloat16_rounds_to_nearest_even_as_torch_does() -> None:
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(0).integers(0, 2**32, 50_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    values = np.concatenate([values, np.array([0, -0.0, np.inf, -np.inf, 3.4e38, 1e-45], np.float32)])
    ours = to_bfloat16(values)
    theirs = torch.from_numpy(values).to(torch.bfloat16)
    finite = ~np.isnan(values)
    np.testing.assert_array_equal(ours[finite], theirs.view(torch.int16).numpy().view(np.uint16)[finite])
    assert np.isnan(from_bfloat16(ours[~finite])).all()
    np.testing.assert_array_equal(from_bfloat16(ours[finite]), theirs.float().numpy()[finite])


@pytest.mark.parametrize("damage", [
    lambda d: b"", lambda d: d[:7], lambda d: d[:-1], lambda d: d + b"\0", lambda d: b"\xff" * 8 + d[8:],
    lambda d: d[:8] + b"[" + d[9:], lambda d: d.replace(b'"F32"', b'"F99"'),
    lambda d: d.replace(b"[2,3]", b"[2,4]"), lambda d: d.replace(b"[2,3]", b"[-2,"),
])
def test_damaged_file_is_refused(damage) -> None:
    data = file_of({"w": ARRAYS["w"]}, {"a": 1})
    with pytest.raises(ValueError):
        tensorfile.parse(damage(data))


def test_overlapping_arrays_are_refused() -> None:
    table = {"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
             "b": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]}}
    with pytest.raises(ValueError, match="'b'"):
        tensorfile.parse_header(json.dumps(table).encode(), 6)


def test_unsupported_arrays_are_named() -> None:
    with pytest.raises(ValueError, match="'x': dtype complex64"):
        tensorfile.index_of({"x": np.zeros(2, np.complex64)}, {})
    with pytest.raises(ValueError, match="'x' is bfloat16 carried as uint16, not float32"):
        tensorfile.index_of({"x": np.zeros(2, np.float32)}, {}, ("x",))
    with pytest.raises(ValueError, match="unknown tensors: y"):
        tensorfile.index_of({}, {}, ("y",))

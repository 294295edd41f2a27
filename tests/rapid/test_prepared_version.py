"""Preparation of a version: what identifies it, how it is cut into chunks, and its record."""

import json
import time
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pytest

from rapid.bfloat16 import to_bfloat16
from rapid.blobs import Ref
from rapid.config import StoreConfig
from rapid.store.prepared_version import PreparedVersion, checksum, prepare_version

CONFIG = StoreConfig(chunk_mebibytes=1 / 1024)  # 1 KiB
HALF = StoreConfig(publish_dtype="bfloat16")
ARRAYS = {"w": np.arange(600, dtype=np.float32).reshape(20, 30), "b": np.arange(7, dtype=np.float32)}


def prepared(tensors: Mapping[str, Any] = ARRAYS, meta: Mapping[str, Any] | None = None,
             bfloat16: Collection[str] = (), config: StoreConfig = CONFIG, version: int = 3) -> PreparedVersion:
    return prepare_version(version, (tensors, meta or {}, bfloat16), config)


@pytest.mark.parametrize("version", [0, 1, 10**9])
def test_versions_count_from_0(version: int) -> None:
    assert prepared(version=version).version == version
    for negative in (-1, -2):
        with pytest.raises(ValueError, match=f"version {negative}: versions count from 0"):
            prepared(version=negative)


def test_digest_identifies_the_contents_alone() -> None:
    digest = prepared(meta={"a": 1, "b": 2}).digest
    assert len(digest) == 32
    assert digest == prepared(dict(reversed(ARRAYS.items())), {"b": 2, "a": 1}, version=9).digest
    bits = {"w": to_bfloat16(ARRAYS["w"]), "b": ARRAYS["b"]}
    changed = {**ARRAYS, "w": ARRAYS["w"].copy()}
    changed["w"][19, 29] += 1
    others = [prepared(), prepared(meta={"a": 2, "b": 2}), prepared(changed, {"a": 1, "b": 2}),
              prepared({**ARRAYS, "w": ARRAYS["w"].reshape(30, 20)}, {"a": 1, "b": 2}),
              prepared({"v": ARRAYS["w"], "b": ARRAYS["b"]}, {"a": 1, "b": 2}),
              prepared(bits, {"a": 1, "b": 2}), prepared(bits, {"a": 1, "b": 2}, ["w"])]
    assert len({digest, *(other.digest for other in others)}) == 8


def test_data_is_cut_into_chunks_with_checksums() -> None:
    found = prepared()
    data = [b"".join(run) for run in found.runs]
    assert [len(chunk) for chunk in data] == [1024, 1024, 380] and found.size == 2428
    assert b"".join(data) == ARRAYS["b"].tobytes() + ARRAYS["w"].tobytes()
    assert found.sums == [checksum([memoryview(chunk)]) for chunk in data]
    assert len(set(found.sums)) == 3 and all(len(text) == 16 for text in found.sums)
    empty = prepared({})
    assert (empty.size, empty.runs, empty.sums) == (0, [], [])


def test_checksum_depends_on_the_bytes_alone() -> None:
    """Not on the pieces in which they are given."""
    assert checksum([memoryview(b"abc")]) == checksum([memoryview(b"a"), memoryview(b""), memoryview(b"bc")])
    assert checksum([memoryview(b"abc")]) != checksum([memoryview(b"acb")])
    assert checksum([]) == checksum([memoryview(b"")])


def test_float32_is_published_unchanged() -> None:
    found = prepared(config=StoreConfig(publish_dtype="float32"), bfloat16=())
    assert found.contents == (ARRAYS, {}, ()) and found.contents[0]["w"].dtype == np.float32


def test_only_float32_matrices_become_bfloat16() -> None:
    values = np.linspace(-1, 1, 24, dtype=np.float32)
    matrix = values.reshape(4, 6)
    tensors: dict[str, Any] = {
        "vector": values, "scalar": np.array(0.1, np.float32), "matrix": matrix, "cube": values.reshape(2, 3, 4),
        "double": matrix.astype(np.float64), "half": matrix.astype(np.float16), "ids": matrix.astype(np.int32),
        "carried": to_bfloat16(matrix)}
    found, _, carried = prepared(tensors, bfloat16=["carried"], config=HALF).contents
    assert set(carried) == {"carried", "matrix", "cube"}
    for name, array in tensors.items():
        expected = to_bfloat16(array) if name in ("matrix", "cube") else array
        assert found[name].dtype == expected.dtype and found[name].shape == array.shape, name
        np.testing.assert_array_equal(found[name], expected, err_msg=name)


@pytest.mark.parametrize(("meta", "warming"), [({}, None), ({"warming": True}, True), ({"warming": False}, None)])
@pytest.mark.parametrize("blob", [None, Ref("a" * 64, 9)])
def test_record_has_size_time_warming_and_address(meta: dict[str, Any], warming: bool | None, blob: Ref | None) -> None:
    before = time.time()
    found = prepared(meta=meta)
    row = json.loads(found.record(blob) if blob else found.record())
    assert before <= row.pop("created_at") <= time.time()
    address = {"blob": "a" * 64, "blob_bytes": 9} if blob else {}
    mark = {} if warming is None else {"warming": True}
    assert row == {"digest": found.digest, "bytes": 2428, **address, **mark}

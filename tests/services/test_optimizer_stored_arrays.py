"""Stored arrays are decoded bit for bit as plain numpy stacking gives them."""

from typing import Any

import numpy as np
import pytest

from five.agent.learning.buffer import SampleBuffer
from five.agent.learning.samples import Arrays
from five.clients import wire
from five.clients.raw_tensor_set import TensorHeader
from five.services.optimizer.stored_arrays import SampleCollator, StoredArrays, message_format
from tests.agent.plain_samples import add_sample, collate_arrays, split_segment
from tests.clients.tensor_sets import encode_set
from tests.services.optimizer_cases import BUFFER, UNROLL, decoded_sample, segment

SPARSE = ("shared", "private")


def came(arrays: Arrays, sparse: tuple[str, ...] = SPARSE, zstd: bool = False) -> Any:
    return wire.decode_packed_set(encode_set(arrays, "l", sparse, zstd), "l")


def same(found: Any, expected: Any) -> None:
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()  # no rounding; minus zero is kept


@pytest.mark.parametrize("zstd", [False, True])
@pytest.mark.parametrize("sparse", [(), SPARSE])
def test_samples_are_decoded_exactly(sparse: tuple[str, ...], zstd: bool) -> None:
    arrays = segment(3)
    assert arrays["shared"][0].size * UNROLL % 8  # two samples share a byte of the bit mask
    arrays["shared"][1, 5] = -0.0
    whole = StoredArrays.from_arrays(came(arrays, sparse, zstd), 3)
    for i, expected in enumerate(split_segment(arrays, 3)):
        back = decoded_sample(whole, i)
        assert back.keys() == expected.keys()
        for name, array in expected.items():
            same(back[name], array)
    assert 0 < whole.nbytes < sum(array.nbytes for array in arrays.values()) // 3
    same(whole.versions, arrays["versions"].reshape(3, UNROLL))


@pytest.mark.parametrize("threads", [1, 3])
def test_batch_equals_stacked_plain_samples(threads: int) -> None:
    segments = [segment(2, seed=i) for i in range(8)]
    buffers = [SampleBuffer(BUFFER, collate_arrays, seed=5), SampleBuffer(BUFFER, SampleCollator(threads), seed=5)]
    for i, arrays in enumerate(segments):
        # Rollouts may differ in encodings and in the order of arrays.
        sent = dict(reversed(arrays.items())) if i % 2 else arrays
        stored = StoredArrays.from_arrays(came(sent, SPARSE if i % 3 else ()), 2)
        assert buffers[1].add(stored, stored.versions, 0, stored.nbytes) == [0, 1]
        for plain, versions in zip(split_segment(arrays, 2), stored.versions, strict=True):
            assert add_sample(buffers[0], plain, versions.tolist(), 0)
    for _ in range(3):
        one, other = (buffer.sample(6, 0) for buffer in buffers)
        assert one is not None and other is not None and one.arrays.keys() == other.arrays.keys()
        for name, array in one.arrays.items():
            same(other.arrays[name], array)
    seen, there = (buffer.peek(4, seed=1) for buffer in buffers)
    assert seen is not None and there is not None
    for name, array in seen.items():
        same(there[name], array)


def test_collation_reuses_a_batchs_arrays() -> None:
    made: list[tuple[int, ...]] = []

    def allocate(shape: tuple[int, ...], dtype: Any) -> Any:
        made.append(shape)
        return np.full(shape, 99, dtype)

    stored = StoredArrays.from_arrays(segment(2), 2)
    batch: Arrays = {"other": np.zeros(3)}
    collate = SampleCollator()
    collate(batch, [stored, stored], [0, 1], allocate)
    first = dict(batch)
    assert "other" not in batch and len(made) == len(batch)
    collate(batch, [stored, stored], [1, 0], allocate)
    assert len(made) == len(batch) and all(batch[name] is array for name, array in first.items())
    collate(batch, [stored], [0], allocate)
    assert len(made) == 2 * len(batch)


def test_array_not_divisible_into_samples_is_refused() -> None:
    arrays = segment(2)
    for name, broken in (("mask", np.ones((7, 1), np.float32)), ("state/h", np.zeros((3, 1, 8), np.float32)),
                         ("win_label", np.float32(1))):
        with pytest.raises(ValueError, match=f"'{name}' of shape .* cannot be split into 2 samples"):
            StoredArrays.from_arrays(arrays | {name: np.asarray(broken)}, 2)


def test_samples_of_different_shapes_are_refused() -> None:
    arrays = segment(1)
    without = {name: array for name, array in arrays.items() if name != "returns"}
    one, *others = [StoredArrays.from_arrays(changed, 1)
                    for changed in (arrays, arrays | {"mask": np.ones((UNROLL, 2), np.float32)}, without)]
    for other, words in zip(others, ("'mask' is float32", r"only some have \['returns'\]"), strict=True):
        for sources in ([one, other], [other, one], [one, one, other]):
            with pytest.raises(ValueError, match=f"samples of one batch differ: .*{words}"):
                SampleCollator()({}, sources, [0] * len(sources), np.empty)


@pytest.mark.parametrize("changes", [
    {"shared": wire.ZSTD}, {"mask": wire.ZSTD}, {"mask": wire.ZSTD, "shared": wire.RAW}, {"shared": wire.RAW}])
def test_format_is_known_only_of_messages_stored_as_they_arrive(changes: dict[str, int]) -> None:
    """Compressed tensors are decoded first, and plain float16 is packed first."""
    arrays = segment(2)
    stored = StoredArrays.from_arrays(came(arrays), 2)
    heads = [TensorHeader(name, array.dtype.name, array.shape, wire.SPARSE if name in SPARSE else wire.RAW, 0)
             for name, array in reversed(arrays.items())]
    found = message_format(heads, stored)
    assert found is not None and [heads[at].name for at in found.order] == sorted(arrays)
    assert [heads[at].name for at in found.bools] == [n for n, a in reversed(arrays.items()) if a.dtype == np.bool_]
    assert (heads[found.versions].name, heads[found.mask].name, found.samples) == ("versions", "mask", 2)
    assert message_format([head._replace(encoding=changes.get(head.name, head.encoding)) for head in heads],
                          stored) is None

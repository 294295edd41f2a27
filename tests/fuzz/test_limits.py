"""Memory of decoders for small inputs that announce large contents."""

import json
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from dota.replay import Replay
from five.clients import wire
from five.protos.v1 import experience_pb2, inference_pb2, tensors_pb2
from tests.fuzz import game_file_targets, service_targets
from tests.fuzz.mutators import mutate_json
from tests.fuzz.targets import all_targets, join_messages
from tests.services import counting, optimizer_cases

MEBIBYTE = 1 << 20
ZEROS = 400 * MEBIBYTE


def zstd_zeros(size: int) -> bytes:
    """Return a few kilobytes that decompress to zeros."""
    return zstandard.ZstdCompressor().compress(bytes(size))


def peak(work: Callable[[], object]) -> int:
    """Return the bytes that ``work``, which refuses its input, allocates at most."""
    tracemalloc.start()
    try:
        with pytest.raises((ValueError, service_targets.Refused)):
            work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bomb(name: str, changes: bool) -> tensors_pb2.Tensor:
    """Return a small tensor whose data decompress to hundreds of mebibytes."""
    shape, size = ([ZEROS // 2, 1], ZEROS) if not changes else ([ZEROS, 8], ZEROS)
    return tensors_pb2.Tensor(name=name, dtype="float16", shape=shape, data=zstd_zeros(size),
                              encoding=wire.CHANGES_ZSTD if changes else wire.ZSTD, period=4 if changes else 0)


@pytest.mark.parametrize("size", [1, 100_000])
def test_request_for_actions_does_not_expand_beyond_its_layout(size: int) -> None:
    message = inference_pb2.ActRequest(
        sessions=np.arange(size).tobytes(), policies=np.full(size, -1, np.int64).tobytes(), flags=bytes(size), epoch=1)
    message.observations.layout_hash = counting.LAYOUT.hash
    message.observations.tensors.append(bomb("shared", False))
    request = join_messages([message.SerializeToString()])
    assert len(request) < 2 * MEBIBYTE
    service_targets.inference()
    assert peak(lambda: service_targets.ask_inference(request)) < 8 * MEBIBYTE


@pytest.mark.parametrize("changes", [False, True])
def test_segment_does_not_expand_beyond_its_layout(changes: bool) -> None:
    message = experience_pb2.PushRequest(segment_id="a", run=service_targets.RUN, samples=2, epoch=1)
    message.tensors.layout_hash = optimizer_cases.LAYOUT.hash
    message.tensors.tensors.append(bomb("shared", changes))
    assert message.ByteSize() < MEBIBYTE
    request = join_messages([message.SerializeToString()])
    assert peak(lambda: service_targets.push_segments(request)) < 8 * MEBIBYTE


def test_compressed_frame_that_announces_no_size_is_refused() -> None:
    """The announced size cannot be forged beyond the limit, nor left out."""
    for data in (zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1000)),
                 zstd_zeros(1000) + zstd_zeros(1000), b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 8 + bytes(8)):
        tensor = tensors_pb2.Tensor(name="a", dtype="uint8", shape=[1000], encoding=wire.ZSTD, data=data)
        assert peak(lambda tensor=tensor: wire.decode(tensor)) < MEBIBYTE  # type: ignore[misc]


def test_replay_does_not_expand_beyond_hours_of_play(tmp_path: Path) -> None:
    head, _, _ = game_file_targets.replays()[0].partition(b"\n")
    steps = 1 << 18
    (tmp_path / "a.replay").write_bytes(json.dumps({**json.loads(head), "steps": steps}).encode() + b"\n"
                                        + zlib.compress(bytes(steps * 160)))
    assert peak(lambda: Replay.load(tmp_path / "a.replay")) < 8 * MEBIBYTE


def test_shapes_whose_product_overflows_are_refused() -> None:
    for shape in ([2**32 - 1] * 8, [0, 2**32 - 1, 2**32 - 1, 2**32 - 1], [1] * 9, [2**31, 2**32 - 1]):
        for encoding in (wire.RAW, wire.ZSTD, wire.SPARSE):
            tensor = tensors_pb2.Tensor(name="a", dtype="float16", shape=shape, encoding=encoding)
            with pytest.raises(ValueError, match=r"."):
                wire.decode(tensor)


def test_deep_nesting_is_refused() -> None:
    """Text nested a thousand deep exhausts the stack of a recursive parser."""
    data = b"[" * 1500 + b"]" * 1500
    accepted = {name for name, target in all_targets().items()
                if target.mutate is mutate_json and target.accepts(data)}
    # The first two leave any bytes to the application, the others replace or leave out what they cannot read.
    assert accepted == {"idempotency-body", "request-body", "service-event", "lease"}


def other_forms(tree: Any) -> Iterator[Any]:
    """Yield values of other forms than ``tree``: each part missing, infinite, negative, null, a text or a list."""
    yield from ({}, [], 5, "text", None)
    for key in tree if isinstance(tree, dict) else ():
        yield {name: value for name, value in tree.items() if name != key}
        for other in (float("inf"), -1, 10**30, None, "\ud800", [], [[]], {}):
            yield {**tree, key: other}


def test_values_of_other_forms_are_accepted_or_refused() -> None:
    """Each of these was once an unexpected exception of some reader of rows."""
    tried = 0
    for target in all_targets().values():
        if target.mutate is mutate_json and target.name != "head-version":  # which is no JSON
            for name, data in target.seeds.items():
                if name.startswith("valid-"):
                    for tree in other_forms(json.loads(data)):
                        target.accepts(json.dumps(tree).encode())
                        tried += 1
    assert tried > 1000

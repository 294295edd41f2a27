"""Prefetched batches equal directly sampled ones, with their staleness at the time of use."""

from dataclasses import replace
from typing import Any

import numpy as np

from five.agent.learning.batch_transfer import DeviceBatch
from five.agent.learning.buffer import DropReason
from five.agent.learning.samples import Arrays
from five.services.optimizer.prefetch import BatchPrefetcher
from tests.services.optimizer_cases import LEARNING, intake, stored_segment
from tests.waiting import eventually

SAMPLES = LEARNING.batch_samples


class RecordingTransfer:
    """Records calls instead of transferring batches."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def transfer(self, batch: Arrays) -> DeviceBatch:
        self.calls.append("transfer")
        return DeviceBatch({}, len(self.calls))

    def wait_for_transfers(self) -> None:
        self.calls.append("wait")


def test_prefetched_batches_equal_direct_sampling() -> None:
    ahead, in_place = intake(), intake()
    for i in range(6):
        ahead.admit(stored_segment(str(i)))
        in_place.admit(stored_segment(str(i)))
    ways = RecordingTransfer()
    batches, taken = BatchPrefetcher(ahead, SAMPLES, ways), 0
    while (batch := batches.next()) is not None:
        host, _ = batch
        batches.prefetch()
        expected = in_place.sample(SAMPLES)
        assert expected is not None and (host.uses == expected.uses).all()
        for name, array in expected.arrays.items():
            assert np.array_equal(host.arrays[name], array), name
        taken += 1
    assert in_place.sample(SAMPLES) is None
    # Arrays are reused only after their transfer.
    assert ways.calls[:2 * taken] == ["wait", "transfer"] * taken and "transfer" not in ways.calls[2 * taken:]
    assert taken >= 2 and ahead.pacer.consumed == in_place.pacer.consumed == taken * SAMPLES


def test_staleness_refers_to_the_present_version() -> None:
    source = intake()
    for i in range(4):
        source.admit(stored_segment(str(i)))
    batches = BatchPrefetcher(source, SAMPLES, RecordingTransfer())
    source.version = 1
    batches.prefetch()
    batches.discard()
    batches.prefetch()
    eventually(lambda: source.pacer.consumed == 2 * SAMPLES)
    source.version = 3
    batch = batches.next()
    assert batch is not None and set(batch[0].staleness.flat) == {3}


def test_one_batch_is_prefetched_however_often_it_is_requested() -> None:
    """A second one would be lost, although pacing has counted it."""
    source = intake()
    for i in range(6):
        source.admit(stored_segment(str(i)))
    transfer = RecordingTransfer()
    batches = BatchPrefetcher(source, SAMPLES, transfer)
    for _ in range(3):
        batches.prefetch()
    assert batches.next() is not None
    assert source.pacer.consumed == SAMPLES and transfer.calls == ["wait", "transfer"]
    batches.discard()  # nothing is prefetched any more
    assert source.pacer.consumed == SAMPLES


def test_padding_stays_padding_when_versions_pass() -> None:
    source = intake()
    for i in range(4):
        source.admit(stored_segment(str(i)))
    batches = BatchPrefetcher(source, SAMPLES, RecordingTransfer())
    sample = source.sample

    def padded(samples: int) -> Any:
        batch = sample(samples)
        assert batch is not None
        staleness = batch.staleness.copy()
        staleness[-1] = -1
        return replace(batch, staleness=staleness)

    source.sample = padded  # type: ignore[method-assign]
    batches.prefetch()
    eventually(lambda: source.pacer.consumed == SAMPLES)
    source.version = 3
    found = batches.next()
    assert found is not None and found[0].staleness.dtype == np.int32
    assert set(found[0].staleness[-1].flat) == {-1} and set(found[0].staleness[:-1].flat) == {3}


def test_discard_drops_the_prefetched_batch() -> None:
    source = intake()
    for i in range(4):
        source.admit(stored_segment(str(i)))
    batches = BatchPrefetcher(source, SAMPLES, RecordingTransfer())
    batches.prefetch()
    batches.discard()
    source.end_epoch()
    assert batches.next() is None
    assert source.buffer.statistics().dropped[DropReason.EPOCH] == 8

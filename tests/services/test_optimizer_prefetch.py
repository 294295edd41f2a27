"""Prefetched batches equal directly sampled ones, with their staleness at the time of use."""

import numpy as np

from five.agent.learning.batch_transfer import DeviceBatch
from five.agent.learning.buffer import DropReason
from five.agent.learning.samples import Arrays
from five.services.optimizer.prefetch import BatchPrefetcher
from tests.services.optimizer_cases import LEARNING, intake, stored_segment

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
    batches.prefetch()
    batches.discard()
    batches.prefetch()
    while source.pacer.consumed < 2 * SAMPLES:
        pass
    source.version = 2
    batch = batches.next()
    assert batch is not None and set(batch[0].staleness.flat) == {2}


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

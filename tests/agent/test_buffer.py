import threading

import numpy as np
import pytest

from five.agent.config import BufferConfig
from five.agent.learning.buffer import DropReason, SampleBuffer, batch_array
from five.agent.learning.pacing import Pacer
from tests.agent.plain_samples import add_sample, collate_arrays

T, H = 4, 2


def sample(number, version=0, mask=1.0):
    return {
        "x": np.full((T, 3), number, np.float16), "actions": np.full((T, H, 6), number % 100, np.int16),
        "mask": np.full((T, H), mask, np.float32), "versions": np.full(T, version, np.int32),
        "state/h": np.full((H, 5), number, np.float32)}


def buffer(seed=0, **changes):
    settings = dict(capacity_samples=8, capacity_bytes=1 << 20, minimum_samples=2, max_age_versions=4)
    return SampleBuffer(BufferConfig(**{**settings, **changes}), collate_arrays, seed=seed)


def fill(b, numbers, version=0):
    for n in numbers:
        assert add_sample(b, sample(n, version), [version] * T, version)


def test_batch_is_time_first_except_states():
    b = buffer()
    fill(b, range(8))
    drawn = b.sample(3, 0)
    assert drawn.arrays["x"].shape == (T, 3, 3)
    assert drawn.arrays["actions"].shape == (T, 3, H, 6)
    assert drawn.arrays["state/h"].shape == (3, H, 5)
    assert drawn.arrays["x"].dtype == np.float16
    numbers = drawn.arrays["x"][0, :, 0]
    for i, n in enumerate(numbers):  # each column is one sample
        assert (drawn.arrays["x"][:, i] == n).all()
        assert (drawn.arrays["state/h"][i] == n).all()
        assert (drawn.arrays["actions"][:, i] == n).all()


def test_uniform_sampling_without_repeats_in_a_batch():
    b = buffer()
    fill(b, range(8))
    counts = np.zeros(8)
    for _ in range(2000):
        numbers = b.sample(4, 0).arrays["x"][0, :, 0].astype(int)
        assert len(set(numbers)) == 4
        counts[numbers] += 1
    assert counts.sum() == 8000
    assert abs(counts - 1000).max() < 120  # about 5 standard deviations


def test_least_used_first_with_random_ties():
    b = buffer(sampling="least_used")
    fill(b, range(8))
    first = b.sample(4, 0).arrays["x"][0, :, 0].astype(int)
    second = b.sample(4, 0).arrays["x"][0, :, 0].astype(int)
    assert sorted([*first, *second]) == list(range(8))
    fill(b, [8, 9])  # replace the two oldest; six remain that were used once
    third = b.sample(4, 0)
    numbers = third.arrays["x"][0, :, 0].astype(int).tolist()
    assert {8, 9} < set(numbers) and sorted(third.uses) == [1, 1, 2, 2]
    others = set()
    for seed in range(20):
        b = buffer(sampling="least_used", seed=seed)
        fill(b, range(8))
        others.add(tuple(sorted(b.sample(4, 0).arrays["x"][0, :, 0].astype(int))))
    assert len(others) > 10


def test_oldest_first_is_a_queue_of_minimum_length():
    b = buffer(sampling="oldest", capacity_samples=40, minimum_samples=32, max_age_versions=100, reuse_window_batches=2,
               admission_batches=1)
    pacer = Pacer(b.config, 4)
    waited = []
    for number in range(400):
        fill(b, [number])
        pacer.on_received(1)
        if pacer.may_step(len(b)):
            drawn = b.sample(4, 0)
            pacer.on_consumed(4)
            numbers = drawn.arrays["x"][0, :, 0].astype(int).tolist()
            assert numbers == list(range(4 * len(waited), 4 * len(waited) + 4)) and (drawn.uses == 1).all()
            waited.append(number - numbers[0])
    # A sample waits for the minimum of later samples, less the batches that pacing allows in advance.
    assert len(waited) == 95 and set(waited[3:]) == {32 - 2 * 4 - 1}


def test_least_used_leaves_nothing_unused_at_reuse_one():
    unused = {}
    for draw in ("uniform", "least_used"):
        b = buffer(sampling=draw, capacity_samples=32)
        for round_ in range(100):
            fill(b, range(4 * round_, 4 * round_ + 4))
            b.sample(4, 0)
        unused[draw] = b.statistics().dropped[DropReason.UNUSED]
    assert unused["least_used"] == 0
    assert 80 < unused["uniform"] < 200  # about 1/e of the 368 that left


def test_uses_are_counted():
    b = buffer(capacity_samples=2)
    fill(b, [1, 2])
    assert b.sample(2, 0).uses.tolist() == [1, 1]
    assert b.sample(2, 0).uses.tolist() == [2, 2]
    fill(b, [3, 4])
    s = b.statistics()
    assert (s.received, s.consumed, s.samples) == (4, 4, 2)
    assert s.dropped[DropReason.USED] == 2


def test_unused_samples_are_counted_separately():
    b = buffer(capacity_samples=4)
    fill(b, range(6))
    assert b.statistics().dropped[DropReason.UNUSED] == 2
    assert sorted(b.sample(4, 0).arrays["x"][0, :, 0]) == [2, 3, 4, 5]


def test_ring_is_bounded_in_bytes():
    size = sum(a.nbytes for a in sample(0).values())
    b = buffer(capacity_bytes=3 * size + 1)
    fill(b, range(5))
    assert len(b) == 3
    assert b.statistics().nbytes == 3 * size
    assert sorted(b.sample(3, 0).arrays["x"][0, :, 0]) == [2, 3, 4]


def test_sample_larger_than_the_buffer_is_rejected():
    b = buffer(capacity_bytes=10)
    assert not add_sample(b, sample(0), [0] * T, 0)
    assert b.statistics().dropped[DropReason.TOO_LARGE] == 1
    assert len(b) == 0


def test_expired_samples_leave_and_are_counted():
    b = buffer()
    fill(b, [0, 1], version=0)
    fill(b, [2, 3], version=3)
    assert b.sample(4, 4) is not None
    drawn = b.sample(2, 5)
    assert sorted(drawn.arrays["x"][0, :, 0]) == [2, 3]
    assert b.statistics().dropped[DropReason.TOO_OLD] == 2
    assert not add_sample(b, sample(9), [0] * T, 5)
    assert b.statistics().dropped[DropReason.TOO_OLD] == 3
    assert b.statistics().received == 5
    fill(b, range(10, 16), version=5)  # the ring still works after it was rebuilt
    assert len(b) == 8


def test_age_is_that_of_the_newest_step():
    b = buffer()
    assert add_sample(b, sample(0), [0, 0, 0, 6], 10)
    assert not add_sample(b, sample(0), [0, 0, 0, 5], 10)


def test_staleness_is_per_step():
    b = buffer()
    for _ in range(2):
        add_sample(b, sample(0), [5, 5, 6, 6], 6)
    assert b.sample(2, 7).staleness.tolist() == [[2, 2], [2, 2], [1, 1], [1, 1]]


def test_masked_steps_have_no_staleness():
    b = buffer()
    for _ in range(2):
        padded = sample(0)
        padded["mask"][2:] = 0
        add_sample(b, padded, [6] * T, 6)
    assert b.sample(2, 7).staleness[:, 0].tolist() == [1, 1, -1, -1]


def test_nothing_is_sampled_below_the_minimum():
    b = buffer(minimum_samples=5)
    fill(b, range(4))
    assert b.sample(2, 0) is None
    fill(b, [4])
    assert b.sample(2, 0) is not None
    assert b.sample(6, 0) is None


def test_batch_arrays_alternate_and_are_reused():
    b = buffer()
    fill(b, range(8))
    first = b.sample(4, 0).arrays
    kept = first["x"].copy()
    second = b.sample(4, 0).arrays
    np.testing.assert_array_equal(first["x"], kept)
    third = b.sample(4, 0).arrays
    assert third["x"] is first["x"]
    assert second["x"] is not first["x"]


@pytest.mark.parametrize("sizes", [(5, 3), (3, 5)])
def test_batch_of_another_size_gets_arrays_of_that_size(sizes):
    b = buffer()
    fill(b, range(8))
    for size in (sizes[0], sizes[0], sizes[1], sizes[1]):
        arrays = b.sample(size, 0).arrays
        assert arrays["x"].shape == (T, size, 3) and arrays["state/h"].shape == (size, H, 5)
        assert len(set(arrays["x"][0, :, 0])) == size


def test_batch_array_of_another_dtype_is_replaced():
    batch = {}
    first = batch_array(batch, "x", (T, 3), np.dtype(np.float16), 2, np.zeros)
    assert batch_array(batch, "x", (T, 3), np.dtype(np.float16), 2, np.zeros) is first
    assert batch_array(batch, "x", (T, 3), np.dtype(np.float32), 2, np.zeros).dtype == np.float32
    assert batch["x"].shape == (T, 2, 3)


def test_every_entry_of_a_batch_is_written():
    """New arrays are filled with a magic value that must not remain."""
    made = []

    def allocate(shape, dtype):
        made.append(np.full(shape, 99, dtype))
        return made[-1]

    b = SampleBuffer(BufferConfig(capacity_samples=8, minimum_samples=2), collate_arrays, allocate=allocate)
    fill(b, range(8))
    drawn = b.sample(5, 0)
    for name in ("x", "actions", "state/h"):
        assert not (drawn.arrays[name] == 99).any()
    assert len(made) == len(drawn.arrays)


def test_too_small_byte_capacity_is_an_error():
    size = sum(a.nbytes for a in sample(0).values())
    b = buffer(capacity_bytes=3 * size + 1)
    fill(b, range(5))
    with pytest.raises(ValueError, match=r"holds 3 samples.*needs 4: raise buffer.capacity_bytes"):
        b.sample(4, 0)
    assert b.sample(3, 0) is not None


def test_resumed_buffer_samples_the_same_sequence():
    one, two = buffer(seed=1), buffer(seed=2)
    fill(one, range(8))
    fill(two, range(8))
    one.sample(4, 0)
    two.load_state_dict(one.state_dict())
    np.testing.assert_array_equal(one.sample(4, 0).arrays["x"], two.sample(4, 0).arrays["x"])


def test_threads_add_while_one_samples():
    b = buffer(capacity_samples=64, minimum_samples=8)
    errors = []

    def feed(start):
        try:
            for n in range(start, start + 300):
                add_sample(b, sample(n), [0] * T, 0)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=feed, args=(1000 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    drawn = 0
    while any(t.is_alive() for t in threads) or not drawn:
        batch = b.sample(8, 0)
        if batch is not None:
            drawn += 1
            x = batch.arrays["x"]
            assert (x == x[:1, :, :1]).all()
    for thread in threads:
        thread.join()
    s = b.statistics()
    assert not errors
    assert s.received == 1200
    assert s.samples + sum(s.dropped.values()) == 1200
    assert s.nbytes == sum(a.nbytes for a in sample(0).values()) * s.samples


def test_clear_drops_and_counts_all_samples():
    b = buffer()
    fill(b, range(3))
    b.sample(2, 0)
    assert b.clear(DropReason.EPOCH) == 3
    s = b.statistics()
    assert (s.dropped[DropReason.EPOCH], s.samples, s.nbytes, len(b)) == (3, 0, 0, 0)
    assert sum(s.dropped.values()) == 3 and b.sample(2, 0) is None and b.peek(1) is None
    fill(b, range(20, 30))  # it fills as if it were new
    assert sorted(b.sample(8, 0).arrays["x"][0, :, 0]) == list(range(22, 30))
    assert b.statistics().dropped[DropReason.UNUSED] == 2


def test_ring_of_expired_samples_keeps_its_capacity():
    b = buffer(capacity_samples=4)
    fill(b, [0, 1], version=0)
    fill(b, [2], version=5)
    assert b.drop_expired(5) == 1 and b.drop_expired(5) == 1
    assert b.statistics().dropped[DropReason.TOO_OLD] == 2
    fill(b, range(3, 8), version=5)
    assert len(b) == 4 and sorted(b.sample(4, 5).arrays["x"][0, :, 0]) == [4, 5, 6, 7]
    assert b.drop_expired(9) == 4 and b.drop_expired(10) == 0


def test_sample_that_was_current_expires_after_a_jump_of_versions():
    b = buffer()
    fill(b, [0, 1], version=5)
    assert b.drop_expired(5) == 2  # checked at version 5
    fill(b, [2, 3], version=3)  # a learner that was reset to version 3
    assert b.ages(8).tolist() == [3, 3, 5, 5]
    assert b.drop_expired(8) == 2


def test_peek_copies_without_counting_a_use():
    b = buffer(seed=3)
    assert b.peek(2) is None
    fill(b, range(4))
    seen = b.peek(3)
    assert seen["x"].shape == (T, 3, 3) and b.statistics().consumed == 0
    assert len(set(seen["x"][0, :, 0])) == 3
    assert b.peek(9)["x"].shape[1] == 4
    np.testing.assert_array_equal(b.peek(3)["x"], seen["x"])
    assert any((b.peek(3, seed)["x"] != seen["x"]).any() for seed in range(1, 6))
    again = buffer(seed=3)
    fill(again, range(4))
    np.testing.assert_array_equal(b.sample(2, 0).arrays["x"], again.sample(2, 0).arrays["x"])
    assert (b.sample(4, 0).uses <= 2).all()


def test_bytes_at_the_capacity_fit():
    size = sum(a.nbytes for a in sample(0).values())
    b = buffer(capacity_bytes=3 * size)
    fill(b, range(3))
    assert len(b) == 3 and b.statistics().dropped[DropReason.UNUSED] == 0
    exact = buffer(capacity_bytes=size, minimum_samples=1)
    fill(exact, [1])
    assert exact.sample(1, 0) is not None
    with pytest.raises(ValueError, match=r"holds 1 samples"):
        fill(exact, [2])
        exact.sample(2, 0)


def test_full_ring_is_no_error_of_the_byte_capacity():
    b = buffer(capacity_samples=4)
    fill(b, range(9))
    assert b.sample(5, 0) is None


def test_ages_are_those_of_the_newest_steps():
    b = buffer()
    assert b.ages(3).tolist() == []
    add_sample(b, sample(1), [0, 0, 1, 1], 1)
    add_sample(b, sample(2), [2] * T, 2)
    assert b.ages(3).tolist() == [2, 1]


def test_add_returns_the_samples_that_are_not_too_old():
    b = buffer()
    versions = np.repeat(np.array([[0], [3], [2], [7]], np.int32), T, axis=1)
    assert b.add(sample(1), versions, 7, 100) == [1, 3]
    assert len(b) == 2 and b.statistics().dropped[DropReason.TOO_OLD] == 2


def test_age_from_arrival_ignores_the_acting_version():
    """max_age_versions is 4: an outcome sample of version 0 that arrives at version 20 expires after version 24."""
    b = buffer()
    arrays = sample(1)
    assert b.add(arrays, np.zeros((1, T), np.int32), 20, 100, age_from_arrival=True) == [0]
    assert b.add(arrays, np.zeros((1, T), np.int32), 20, 100) == []
    assert [b.drop_expired(version) for version in (24, 25)] == [1, 0]
    assert b.statistics().dropped[DropReason.TOO_OLD] == 2

"""Recordings of samples for checks: the same in every call, from an earlier one after a restart, a bounded number."""

from pathlib import Path

import numpy as np
import pytest

from five.services.optimizer import sample_recordings
from five.services.optimizer.intake import Intake
from five.services.optimizer.sample_recordings import SampleRecordings
from rapid.blobs import BlobStore
from rapid.store.operation_blobs import recording_name
from tests.services.optimizer_cases import LAYOUT, UNROLL, intake, stored_segment


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path))


def filled(segments: int = 8) -> Intake:
    made = intake()
    for i in range(segments):
        assert made.admit(stored_segment(str(i), seed=i))[0] == "accepted"
    return made


def recordings(blobs: BlobStore, of: Intake, layout: str = LAYOUT.hash, samples: int = 6) -> SampleRecordings:
    return SampleRecordings(of.buffer, blobs, "trial", layout, samples)


def test_operation_gets_the_same_samples_in_every_call(blobs: BlobStore) -> None:
    buffer = filled()
    made = recordings(blobs, buffer)
    first, ref = made.take("check-20260101-000000-aa")
    assert made.samples == 6 and blobs.refs("trial") == [recording_name("trial", "check-20260101-000000-aa")]
    for i in range(8, 12):
        buffer.admit(stored_segment(str(i), seed=i))
    again, same = recordings(blobs, buffer).take("check-20260101-000000-aa")  # also after a restart
    assert same == ref
    np.testing.assert_array_equal(np.asarray(again.actions), np.asarray(first.actions))
    assert np.asarray(first.actions).shape[:2] == (UNROLL, 6)


def test_restarted_optimizer_uses_the_newest_recording(blobs: BlobStore) -> None:
    buffer = filled()
    made = recordings(blobs, buffer)
    refs = {}
    for operation in ("surgery-20260103-000000-aa", "check-20260101-000000-bb", "check-20260102-000000-cc"):
        buffer.admit(stored_segment(operation, seed=len(refs) + 50))
        refs[operation] = made.take(operation)[1]
    empty = recordings(blobs, intake())
    _, found = empty.take("check-20260104-000000-dd")
    assert found == refs["surgery-20260103-000000-aa"] and empty.samples == 6
    assert len(blobs.refs("trial")) == 3  # it is not stored again


def test_recording_of_another_layout_is_not_used(blobs: BlobStore) -> None:
    recordings(blobs, filled(), layout="older").take("check-20260101-000000-aa")
    with pytest.raises(RuntimeError, match="no samples to check the plan on, and there is no earlier recording"):
        recordings(blobs, intake()).take("check-20260102-000000-bb")
    made = recordings(blobs, filled())
    _, ref = made.take("check-20260101-000000-aa")  # the operation's own is replaced
    assert recordings(blobs, intake()).take("check-20260101-000000-aa")[1] == ref


def test_newest_recording_of_this_layout_is_used(blobs: BlobStore) -> None:
    _, ref = recordings(blobs, filled()).take("check-20260101-000000-aa")
    recordings(blobs, filled(), layout="older").take("check-20260102-000000-bb")
    empty = recordings(blobs, intake())
    assert empty.samples == 0
    assert empty.take("check-20260103-000000-cc")[1] == ref


def test_oldest_recordings_are_removed(blobs: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_recordings, "MAX_RECORDINGS", 2)
    made = recordings(blobs, filled())
    operations = [f"{kind}-2026010{day}-000000-aa" for day, kind in enumerate(("check", "surgery", "check", "revert"))]
    for operation in operations:
        made.take(operation)
    assert blobs.refs("trial") == sorted(recording_name("trial", operation) for operation in operations[-2:])
    made.take("check-20250101-000000-aa")  # older than the others, but in use now
    assert recording_name("trial", "check-20250101-000000-aa") in blobs.refs("trial")

"""Recordings in the blob store: damaged or incomplete ones are skipped, and foreign facts are not shown."""

from pathlib import Path
from typing import Any

import pytest

from five.services.controller.games import recordings
from five.services.controller.games.recordings import RecordingReader
from rapid.blobs import BlobMissing, BlobStore

RUN = "trial"


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path))


@pytest.fixture
def reader(blobs: BlobStore) -> RecordingReader:
    return RecordingReader(lambda: blobs, RUN)


def put(blobs: BlobStore, name: str, facts: bytes | None = b"{}", view: bytes = b"recording") -> None:
    blobs.put(view, f"{RUN}/replays/{name}.view")
    if facts is not None:
        blobs.put(facts, f"{RUN}/replays/{name}.json")


def test_controller_without_a_blob_store_has_no_recordings() -> None:
    reader = RecordingReader(lambda: None, RUN)
    assert reader.all() == []
    with pytest.raises(BlobMissing, match=r"blobs\.url"):
        reader.read("version-1")


def test_recordings_are_sorted_by_time(blobs: BlobStore, reader: RecordingReader) -> None:
    for name, facts in (("a", b'{"at": 2}'), ("b", b'{"at": 3.5}'), ("c", b'{"at": "now"}'), ("d", b'{"at": -1}'),
                        ("e", b'{"at": null}')):
        put(blobs, name, facts)
    assert [entry["name"] for entry in reader.all()] == ["b", "a", "c", "e", "d"]
    assert reader.all()[0] == {"name": "b", "bytes": 9, "facts": {"at": 3.5}}
    assert reader.read("b") == b"recording"


def test_recordings_of_other_runs_are_not_listed(blobs: BlobStore, reader: RecordingReader) -> None:
    put(blobs, "version-1", view=b"ours")
    for name in ("trial-2/replays/version-1", "trial-2/replays/version-2", "replays/version-3"):
        blobs.put(b"another run's", f"{name}.view")
        blobs.put(b"{}", f"{name}.json")
    assert [entry["name"] for entry in reader.all()] == ["version-1"]
    assert reader.read("version-1") == b"ours"
    with pytest.raises(BlobMissing):
        reader.read("version-2")


@pytest.mark.parametrize("facts", [
    None, b"", b"{", b"[1]", b"1", b'{"at": NaN}', b'{"at": Infinity}', b'{"a": "\\ud800"}', b"[" * 10_000, b"\xff",
    b'{"a": "' + b"x" * (16 << 10) + b'"}'])
def test_unusable_facts_are_none(blobs: BlobStore, reader: RecordingReader, facts: bytes | None) -> None:
    put(blobs, "a", facts)
    for _ in range(2):  # the second from the cache
        assert reader.all() == [{"name": "a", "bytes": 9, "facts": {}}]


def test_facts_with_a_damaged_name_are_none(blobs: BlobStore, reader: RecordingReader, tmp_path: Path) -> None:
    put(blobs, "a")
    (tmp_path / "refs/trial/replays/a.json").write_text("{")
    assert reader.all() == [{"name": "a", "bytes": 9, "facts": {}}]


def test_facts_have_at_most_sixteen_kibibytes(blobs: BlobStore, reader: RecordingReader) -> None:
    text = "x" * ((16 << 10) - len('{"a": ""}'))
    put(blobs, "a", f'{{"a": "{text}"}}'.encode())
    assert reader.all()[0]["facts"] == {"a": text}


def test_replaced_facts_are_read_again(blobs: BlobStore, reader: RecordingReader) -> None:
    for winner in (1, 2):
        put(blobs, "a", b'{"winner": %d}' % winner)
        assert reader.all()[0]["facts"] == {"winner": winner}


def test_unchanged_facts_are_read_once(blobs: BlobStore, reader: RecordingReader, monkeypatch: pytest.MonkeyPatch
                                       ) -> None:
    for name in ("a", "b"):
        put(blobs, name, f'{{"of": "{name}"}}'.encode())
    reads: list[Any] = []
    get_prefix = blobs.get_prefix
    monkeypatch.setattr(blobs, "get_prefix", lambda ref, size: (reads.append(ref), get_prefix(ref, size))[1])
    for _ in range(3):
        assert [entry["facts"]["of"] for entry in reader.all()] == ["a", "b"]
    assert len(reads) == 2


def test_files_that_are_no_recordings_are_not_listed(blobs: BlobStore, reader: RecordingReader, tmp_path: Path) -> None:
    for name in ("a", "m", "z"):
        put(blobs, name)
    blobs.put(b"text", "trial/replays/b.txt")
    blobs.put(b"facts without a recording", "trial/replays/c.json")
    (tmp_path / "refs/trial/replays/d.view").write_text("{")
    (tmp_path / "refs/trial/replays/e.view").write_text('{"digest": "../../../etc/passwd", "size": 9}')
    assert [entry["name"] for entry in reader.all()] == ["a", "m", "z"]


def test_a_recording_removed_meanwhile_is_not_listed(blobs: BlobStore, reader: RecordingReader,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "z"):
        put(blobs, name)
    names = ["trial/replays/../y.view", *blobs.refs("trial/replays/")]  # a bucket's keys may have dots
    monkeypatch.setattr(blobs, "refs", lambda prefix: names)
    blobs.remove_ref("trial/replays/a.view")
    assert [entry["name"] for entry in reader.all()] == ["z"]


@pytest.mark.parametrize(("limit", "found"), [(9, True), (8, False)])
def test_a_recording_above_the_limit_is_not_read(blobs: BlobStore, reader: RecordingReader, limit: int, found: bool,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "MAX_RECORDING", limit)
    put(blobs, "a")
    if found:
        assert reader.read("a") == b"recording"
    else:
        with pytest.raises(BlobMissing, match="9 bytes"):
            reader.read("a")
    with pytest.raises(BlobMissing):
        reader.read("b")

"""Blobs: immutable contents, movable names, detected damage."""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rapid.blob_files import LocalFiles
from rapid.blobs import BlobMissing, BlobStore, Ref
from rapid.store.errors import Corrupt


@pytest.fixture(params=["folder", "bucket"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    folder = request.param == "folder"
    return BlobStore(str(tmp_path / "blobs") if folder else request.getfixturevalue("bucket"))


def test_contents_are_read_by_name_and_digest(blobs: BlobStore, tmp_path: Path) -> None:
    ref = blobs.put(b"hello", "greetings/first")
    assert blobs.get("greetings/first") == b"hello" == blobs.get(ref)
    assert ref.size == 5 and blobs.ref("greetings/first") == ref
    assert blobs.put([b"he", memoryview(b"llo")]) == ref
    file = tmp_path / "file"
    file.write_bytes(b"hello")
    assert blobs.put(file) == ref
    assert blobs.put(b"").size == 0
    array = blobs.get_array(ref)
    assert array.dtype == np.uint8 and array.flags.writeable


def test_moving_a_name_keeps_the_contents(blobs: BlobStore) -> None:
    first = blobs.put(b"one", "latest")
    blobs.put(b"one", "versions/0001")
    second = blobs.put(b"two", "latest")
    assert blobs.get("latest") == b"two" and blobs.get(first) == b"one" == blobs.get("versions/0001")
    assert blobs.refs() == ["latest", "versions/0001"] and blobs.refs("versions") == ["versions/0001"]
    assert blobs.refs("none") == []
    assert blobs.get(second) == b"two"


def test_contents_are_removed_with_their_last_name(blobs: BlobStore) -> None:
    shared = blobs.put(b"shared", "a/1")
    blobs.put(b"shared", "b")
    blobs.remove_ref("a/1")
    assert blobs.get(shared) == b"shared" and blobs.refs() == ["b"]
    moved = blobs.put(b"more", "b")
    with pytest.raises(BlobMissing, match=shared.digest):
        blobs.get(shared)
    blobs.remove_ref("b")
    blobs.remove_ref("b")
    for gone in ("b", moved):
        with pytest.raises(BlobMissing):
            blobs.get(gone)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/"])
def test_names_cannot_leave_the_store(blobs: BlobStore, name: str) -> None:
    if name not in ("", "a/"):  # all names; a folder
        with pytest.raises(ValueError, match="blob name"):
            blobs.refs(name)
    with pytest.raises(ValueError, match="blob name"):
        blobs.put(b"x", name)
    with pytest.raises(ValueError, match="blob name"):
        blobs.get(name)


BAD = ("../../../etc/passwd", "..", "", "A" * 64, "0" * 63, "0" * 63 + "g", "0" * 64 + "\n")


@pytest.mark.parametrize("digest", BAD)
def test_digest_cannot_leave_the_store(blobs: BlobStore, digest: str) -> None:
    for use in (blobs.get, blobs.get_array, lambda ref: blobs.get_prefix(ref, 8), lambda ref: blobs.set_ref("a", ref)):
        with pytest.raises(ValueError, match="must be 64 hex digits"):
            use(Ref(digest, 3))
        with pytest.raises(Corrupt, match="must be 64 hex digits"):
            Ref.parse(digest, 3)
    for size in (-1, 1 << 41):
        with pytest.raises(ValueError, match="must not be negative, or above"):
            blobs.get(Ref("0" * 64, size))
    assert blobs.refs() == []


@pytest.mark.parametrize(("digest", "size"), [
    (None, 3), (["0" * 64], 3), ("0" * 64, -1), ("0" * 64, 1 << 41), ("0" * 64, "3"), ("0" * 64, 3.5),
    ("0" * 64, None), ("0" * 64, True), ("0" * 64, float("inf"))])
def test_damaged_stored_references_are_refused(digest: object, size: object) -> None:
    with pytest.raises(Corrupt, match="a stored reference to a blob is damaged"):
        Ref.parse(digest, size)
    assert Ref.parse("0" * 64, 5e9) == Ref("0" * 64, 5_000_000_000)


@pytest.mark.parametrize("at", ["objects", "objects/{digest:.2}", "objects/{digest:.2}/{digest}"])
def test_planted_links_do_not_leave_the_store(tmp_path: Path, at: str) -> None:
    """A reference to another component's file, whose contents are not verified when only its beginning is read."""
    blobs = BlobStore(str(tmp_path / "blobs"))
    ref = blobs.put(b"{}", "name")
    planted = tmp_path / "blobs" / at.format(digest=ref.digest)
    planted.rename(tmp_path / "outside")
    planted.symlink_to(tmp_path / "outside")
    for use in (lambda: blobs.get_prefix(ref, 2), lambda: blobs.get(ref), lambda: blobs.put(b"{}")):
        with pytest.raises(Corrupt, match="symbolic link"):
            use()


def test_planted_folder_link_is_not_listed_or_written(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path / "blobs"))
    blobs.put(b"x", "name")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("mine")
    (tmp_path / "blobs/refs/replays").symlink_to(tmp_path / "outside")
    for use in (lambda: blobs.refs("replays/"), lambda: blobs.ref("replays/secret"),
                lambda: blobs.put(b"x", "replays/secret")):
        with pytest.raises(Corrupt, match="symbolic link"):
            use()
    assert blobs.refs() == ["name"] and (tmp_path / "outside" / "secret").read_text() == "mine"


def test_planted_pipe_does_not_block(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path))
    blobs.put(b"x", "name")
    (tmp_path / "refs/name").unlink()
    os.mkfifo(tmp_path / "refs/name")
    with pytest.raises(Corrupt, match="not a regular file"):
        blobs.ref("name")


def test_damaged_name_removes_nothing(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path / "blobs"))
    blobs.put(b"x", "name")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    damaged = ('{"digest": "../../victim", "size": 4}', '{"digest": "00"}', "[]", "{", '{"digest": "a", "size": "b"}')
    for text in damaged:
        (tmp_path / "blobs/refs/name").write_text(text)
        for use in (blobs.get, blobs.remove_ref, lambda name: blobs.put(b"y", name)):
            with pytest.raises(Corrupt, match="name 'name' is damaged"):
                use("name")
    assert victim.read_text() == "mine"


def test_damaged_contents_are_detected(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path))
    for damage in (b"hellO", b"hell", b"hello!"):
        ref = blobs.put(b"hello")
        (tmp_path / "objects" / ref.digest[:2] / ref.digest).write_bytes(damage)
        with pytest.raises(Corrupt, match=ref.digest):
            blobs.get(ref)
    (tmp_path / "objects" / ref.digest[:2] / ref.digest).write_bytes(b"hell")
    blobs.put(b"hello")  # the next put repairs a wrong size
    assert blobs.get(ref) == b"hello"
    with pytest.raises(BlobMissing):
        blobs.get(Ref("0" * 64, 3))


def test_failed_write_leaves_no_files(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path))
    blobs.put(b"old", "name")

    class Breaking:
        def __init__(self) -> None:
            self.passes = 0

        def __iter__(self):
            self.passes += 1
            yield b"half"
            if self.passes == 2:
                raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        blobs.put(Breaking(), "name")  # type: ignore[arg-type]
    assert blobs.get("name") == b"old"
    assert sorted(p.name for p in (tmp_path / "objects").rglob("*") if p.is_file()) == [blobs.ref("name").digest]


@pytest.mark.parametrize("survived", [0, 1, 2])
def test_crash_between_writes_leaves_no_name_without_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                              survived: int) -> None:
    """Contents, use and name are written in this order, so neither the crash nor a later removal loses contents."""
    blobs, write, calls = BlobStore(str(tmp_path)), LocalFiles.write, []

    def crashing(self: LocalFiles, key: str, pieces: Any) -> None:
        if len(calls) == survived:
            raise KeyboardInterrupt
        calls.append(key)
        write(self, key, pieces)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "write", crashing)
        with pytest.raises(KeyboardInterrupt):
            blobs.put(b"contents", "name")
    assert [blobs.get(name) for name in blobs.refs()] == []
    blobs.put(b"contents", "name")
    with monkeypatch.context() as patch:
        calls.clear()
        patch.setattr(LocalFiles, "write", crashing)
        with pytest.raises(KeyboardInterrupt):
            blobs.put(b"contents", "another") if survived < 2 else blobs.put(b"more", "name")
    blobs.put(b"contents", "third")
    blobs.remove_ref("third")
    assert {name: blobs.get(name) for name in blobs.refs()} == {"name": b"contents"}


def test_unreadable_folder_is_not_an_empty_store(tmp_path: Path) -> None:
    (tmp_path / "refs").write_text("a file in the folder's place")
    with pytest.raises(NotADirectoryError):
        BlobStore(str(tmp_path)).refs()


def test_invalid_url_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="empty"):
        BlobStore("")
    with pytest.raises(ValueError, match=r"blobs.url nothing://x: .*s3://BUCKET/PREFIX"):
        BlobStore("nothing://x")
    with pytest.raises(ValueError, match="the bucket is missing"):
        BlobStore("s3:///prefix")
    for url in ("file://data/blobs", "file://"):
        with pytest.raises(ValueError, match=f"blobs.url {url}: .*file:///FOLDER"):
            BlobStore(url)
    assert BlobStore(f"file://{tmp_path}").put(b"x", "name") == BlobStore(str(tmp_path)).ref("name")


@pytest.mark.parametrize("url", ["s3://me:hunter2@bucket/x", "s3://bucket/x?secret=hunter2",
                                 "nothing://me:hunter2@x/y?sig=hunter2"])
def test_credentials_in_a_url_are_refused_and_hidden(url: str) -> None:
    with pytest.raises(ValueError) as caught:
        BlobStore(url)
    assert "hunter2" not in str(caught.value) and "***" in str(caught.value)


def test_writes_are_synced_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is synced before it gets its name, and the name before the next step depends on it."""
    done: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        done.append(f"sync {'folder' if os.path.isdir(path) else 'file'} of {path.split(str(tmp_path))[1][:6]}")
        fsync(descriptor)

    def renamed(self: Path, target: Path) -> Path:
        done.append(f"name {str(target).split(str(tmp_path))[1][:6]}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    BlobStore(str(tmp_path)).put(b"a checkpoint", "run/checkpoints/1")
    steps = [[f"sync file of {where}", f"name {where}", f"sync folder of {where}"]
             for where in ("/objec", "/uses/", "/refs/")]
    assert done == [*steps[0], *steps[1], *steps[2]]


def test_unfinished_contents_of_dead_writers_are_removed(blobs: BlobStore, tmp_path: Path) -> None:
    """Each may have the size of a checkpoint. A younger one may be of a writer that is still at work."""
    assert blobs.remove_partial() == 0, "an empty store"
    ref = blobs.put(b"whole", "name")
    folder = tmp_path / "blobs" / "objects" / ref.digest[:2]
    if not folder.is_dir():  # a bucket
        assert blobs.remove_partial() == 0
        return
    old, fresh = (folder / f".{ref.digest}.{name}.partial" for name in ("00000000", "11111111"))
    hidden = folder / ".nfs0001"
    for path, age in ((old, 90_000), (fresh, 80_000), (hidden, 90_000), (folder / ref.digest, 90_000)):
        path.touch()
        os.utime(path, (time.time() - age,) * 2)
    assert [blobs.remove_partial() for _ in range(2)] == [1, 0]
    assert sorted(folder.iterdir()) == sorted((fresh, hidden, folder / ref.digest))
    assert blobs.get("name") == b"whole"

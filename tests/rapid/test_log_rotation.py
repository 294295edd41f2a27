"""Rotation of a log that is being written."""

from pathlib import Path

import pytest

from rapid.log_rotation import LOG_BYTES, rotate


def test_large_log_is_rotated_below_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    assert not rotate(path, 10)
    with path.open("ab", buffering=0) as writer:
        for number in range(5):
            writer.write(b"%d" % number * 8)
            assert not rotate(path, 10)
            writer.write(b"tail")
            assert rotate(path, 10) and path.read_bytes() == b""
        writer.write(b"new")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {
        "a.log": b"new", "a.log.1": b"44444444tail", "a.log.2": b"33333333tail"}


def test_end_of_a_larger_log_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"a log of an earlier release")
    assert rotate(tmp_path / "a.log", 5)
    assert (tmp_path / "a.log.1").read_bytes() == b"er release"


def test_failed_copy_keeps_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    (tmp_path / "a.log").write_bytes(b"12345")
    (tmp_path / "a.log.1").write_bytes(b"older")
    monkeypatch.setattr("rapid.log_rotation.shutil.copyfileobj", full)
    with pytest.raises(OSError, match="No space left"):
        rotate(tmp_path / "a.log", 5)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"a.log": b"12345", "a.log.1": b"older"}
    assert LOG_BYTES == 32 << 20

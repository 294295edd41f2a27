import errno
import os
from pathlib import Path

import pytest

from rapid.atomic_file import replace_text, replacing


def test_previous_file_remains_after_an_error(tmp_path: Path) -> None:
    replace_text(tmp_path / "a", "previous")
    with pytest.raises(OSError, match="full"), replacing(tmp_path / "a") as file:
        file.write(b"half")
        raise OSError("the disk is full")
    assert (tmp_path / "a").read_text() == "previous" and os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("refusal", [None, errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP])
def test_exclusive_file_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: int | None) -> None:
    """Also on file systems without hard links."""
    def link(*arguments: object) -> None:
        raise OSError(refusal, "no hard links")

    if refusal is not None:
        monkeypatch.setattr(os, "link", link)
    with replacing(tmp_path / "a", exclusive=True) as file:
        file.write(b"first")
    with pytest.raises(FileExistsError), replacing(tmp_path / "a", exclusive=True) as file:
        file.write(b"second")
    assert (tmp_path / "a").read_text() == "first" and os.listdir(tmp_path) == ["a"]


def test_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / "a").symlink_to("elsewhere")
    replace_text(tmp_path / "a", "text", 0o600, sync=True)
    assert (tmp_path / "elsewhere").read_text() == "mine"
    assert not (tmp_path / "a").is_symlink() and (tmp_path / "a").stat().st_mode & 0o777 == 0o600

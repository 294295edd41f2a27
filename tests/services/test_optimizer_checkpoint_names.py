"""Names of checkpoint files: read back, in order of version and writer, and signed for exactly one file."""

import pytest

from five.services.optimizer.checkpoint_names import CheckpointName
from rapid.blobs import Ref

KEY, REF = b"key of the run", Ref("a" * 64, 1000)
SIGNATURE = "0123456789abcdef" * 2


@pytest.mark.parametrize(("name", "text"), [
    (CheckpointName(7), "000000000007"),
    (CheckpointName(7, 2, 31), "000000000007.000002.00000031"),
    (CheckpointName(7, 2, 31, SIGNATURE), f"000000000007.000002.00000031.{SIGNATURE}"),
    (CheckpointName(10 ** 12, 10 ** 6, 10 ** 8), "1000000000000.1000000.100000000")])
def test_name_is_read_back(name: CheckpointName, text: str) -> None:
    assert name.text() == text and CheckpointName.parse(text) == name


def test_name_without_a_writer_comes_before_every_writer() -> None:
    """Earlier releases wrote such names; a later writer's file of the version replaces it."""
    unsigned = CheckpointName.parse("000000000007")
    assert unsigned is not None and unsigned.writer == CheckpointName(7).writer == (0, 0)
    names = [CheckpointName(7), CheckpointName(7, 1, 2), CheckpointName(7, 1, 3), CheckpointName(7, 2, 1),
             CheckpointName(8)]
    assert sorted(reversed(names)) == names


@pytest.mark.parametrize("text", [
    "", "7", "00000000000", "0" * 19, "000000000007.", "000000000007.000002", "000000000007.00002.00000031",
    "000000000007.000002.0000031", f"000000000007.{SIGNATURE}", f"000000000007.000002.00000031.{SIGNATURE[:-1]}",
    f"000000000007.000002.00000031.{SIGNATURE.upper()}", "000000000007.000002.00000031.bak", "a00000000007",
    "000000000007\n", "\u0660" * 12])
def test_other_text_is_no_name(text: str) -> None:
    assert CheckpointName.parse(text) is None


def test_signature_is_valid_for_one_file_and_key() -> None:
    name = CheckpointName(7, 2, 31).signed(KEY, REF)
    assert name[:3] == (7, 2, 31) and name.is_signed(KEY, REF)
    assert CheckpointName.parse(name.text()) == name
    assert name.signed(KEY, REF) == name, "the present signature is not signed again"
    for other in (name._replace(version=8), name._replace(epoch=3), name._replace(fence=30),
                  name._replace(signature=SIGNATURE), name._replace(signature=""), CheckpointName(7, 2, 31)):
        assert not other.is_signed(KEY, REF), other
    assert not name.is_signed(b"another key", REF)
    assert not name.is_signed(KEY, REF._replace(size=1001))
    assert not name.is_signed(KEY, REF._replace(digest="b" * 64))

"""Names of an operation's blobs."""

import pytest

from rapid.store.operation_blobs import (
    operation_checkpoint,
    operation_folder,
    preserved_checkpoint,
    preserved_folder,
    preserved_version,
    recording_name,
)


def test_blobs_of_an_operation_are_in_its_folder() -> None:
    assert operation_checkpoint("r", "op-1").startswith(operation_folder("r", "op-1"))
    assert not operation_checkpoint("r", "op-10").startswith(operation_folder("r", "op-1"))
    names = {make("r", "op-1") for make in (operation_checkpoint, operation_folder, recording_name)}
    assert len(names) == 3 and all(name.startswith("r/") for name in names)


@pytest.mark.parametrize("version", [0, 7, 99_999_999_999, 999_999_999_999])
def test_version_of_a_preserved_checkpoint(version: int) -> None:
    name = preserved_checkpoint("run.1", version, "surgery.000000000003")
    assert name.startswith(preserved_folder("run.1"))
    assert preserved_version(name) == version
    assert preserved_version(name.removeprefix(preserved_folder("run.1"))) == version


def test_preserved_checkpoints_are_ordered_by_version() -> None:
    versions = [9, 10, 123_456, 1]
    names = sorted(preserved_checkpoint("r", version, "op") for version in versions)
    assert [preserved_version(name) for name in names] == sorted(versions)


@pytest.mark.parametrize("name", [
    "", "r/kept/", "r/kept/12345678901.op", "r/kept/1234567890123.op", "r/kept/-00000000012.op",
    "r/kept/00000000001x.op", "r/kept/abcdefghijkl.op", "r/kept/00000000001².op", "r/kept/٠٠٠٠٠٠٠٠٠٠٠١.op",
    "000000000012/kept", "r/kept/op.000000000012", "r/checkpoints/latest"])
def test_other_names_have_no_version(name: str) -> None:
    assert preserved_version(name) == -1

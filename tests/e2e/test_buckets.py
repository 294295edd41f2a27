"""Two installations of one run name with one bucket of a real S3 server."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rapid.blobs import BlobStore
from tests.e2e.running import LEARNING_ONLY, Run
from tests.rapid.s3_server import S3Server

URL = "s3://checkpoints/of/everybody"


@pytest.fixture
def installations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Run]]:
    with S3Server() as server:
        server.create_bucket("checkpoints")
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        runs = []
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            runs.append(Run(tmp_path / name))
        yield runs
        for run in runs:
            run.destroy()


def output(run: Run) -> str:
    return (run.place / "train.log").read_text()


@pytest.mark.runs
@pytest.mark.timeout(900)
def test_second_installation_continues_only_by_adoption(installations: list[Run]) -> None:
    first, second = installations
    first.start_new(f"blobs.url={URL}", *LEARNING_ONLY)
    first.wait_version(2)
    assert first.end() == 0, first.logs()
    blobs = BlobStore(URL)
    newest = int(blobs.refs("tiny/checkpoints")[-1].rpartition("/")[2].partition(".")[0])
    assert newest >= 2 and not list((first.folder.path / "blobs").rglob("*.*"))

    second.start_new(f"blobs.url={URL}", *LEARNING_ONLY)
    assert second.process is not None and second.process.wait(300) == 2
    found = re.search(r"blobs\.adopt=(run-[0-9a-f]{16})", output(second))
    assert found is not None, output(second)
    assert len(blobs.refs("tiny/checkpoints")) > 0

    second.start("--resume", "tiny", "--accept-changes", "--set", f"blobs.adopt={found[1]}")
    assert second.wait_version(newest + 1) > newest
    assert second.end() == 0, second.logs()

    first.start("--resume", "tiny")
    assert first.process is not None and first.process.wait(300) == 2
    assert "blobs.adopt=run-" in output(first)

"""Ownership of the blobs below a name that several runs share."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from rapid.blobs import BlobStore
from rapid.embedded_redis import EmbeddedRedis, RunningRedis
from rapid.store import backup
from rapid.store.blob_owner import BlobsOwned, claim_blobs
from rapid.store.errors import Corrupt
from rapid.store.keys import Keys
from rapid.store.state import RunState, Status
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
SERVICE = """
from rapid import service
from rapid.config import BlobConfig, LifecycleConfig, StoreConfig
from tests.rapid.test_service import Config
import sys

def load(path, overrides):
    return Config(store=StoreConfig(state_url=sys.argv[3], params_url=sys.argv[3]),
                  blobs=BlobConfig(url=sys.argv[4], adopt=sys.argv[5]))

with service.start("tested", load, sys.argv[1:3], claims_blobs=True) as s:
    print("open", flush=True)
"""


@pytest.fixture(params=["folder", "bucket"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "blobs") if request.param == "folder" else request.getfixturevalue("bucket"))


@pytest.fixture
def first(database: redis.Redis) -> RunState:
    state = RunState(database, "r")
    state.create({}, "the test")
    return state


@pytest.fixture
def second(tmp_path: Path) -> Iterator[RunState]:
    """A run of the same name in another Redis."""
    with EmbeddedRedis(tmp_path / "second", append_only=False).start() as server:
        client = redis.Redis.from_url(server.url)
        state = RunState(client, "r")
        state.create({}, "the test")
        yield state
        client.close()


def identity(state: RunState) -> str:
    found = state.identity()
    assert found is not None
    return found


def test_another_run_of_the_name_is_refused(blobs: BlobStore, first: RunState, second: RunState) -> None:
    assert identity(first) != identity(second)
    for _ in range(2):
        claim_blobs(blobs, "r", identity(first))
    with pytest.raises(BlobsOwned, match=f"blobs.adopt={identity(first)}"):
        claim_blobs(blobs, "r", identity(second))
    with pytest.raises(BlobsOwned):
        claim_blobs(blobs, "r", identity(second), adopt="run-0000000000000000")
    claim_blobs(blobs, "r", identity(first))
    claim_blobs(blobs, "another-name", identity(second))


@pytest.mark.parametrize("owner", ["run-1", "run-3"])
def test_only_the_named_owner_is_adopted(tmp_path: Path, owner: str) -> None:
    blobs = BlobStore(str(tmp_path / "blobs"))
    claim_blobs(blobs, "r", owner)
    for adopt in ("", "run-0", "run-2", "run-4"):
        with pytest.raises(BlobsOwned, match=f"another run of that name, {owner}; this run is run-2"):
            claim_blobs(blobs, "r", "run-2", adopt)
    claim_blobs(blobs, "r", owner, adopt="run-2")
    claim_blobs(blobs, "r", "run-2", adopt=owner)
    claim_blobs(blobs, "r", "run-2")


class OvertakenStore(BlobStore):
    """A store in which another process writes the owner record between a service's read and its own attempt."""

    faster = ""

    def create_owner(self, run: str, data: bytes) -> bool:
        claim_blobs(BlobStore(self.url), run, self.faster)
        return super().create_owner(run, data)


def test_first_of_two_claims_at_the_same_time_wins(tmp_path: Path) -> None:
    for faster in ("run-1", "run-2"):
        blobs = OvertakenStore(str(tmp_path / faster))
        blobs.faster = faster
        claim_blobs(blobs, "r", faster)  # another process of this run
        blobs = OvertakenStore(str(tmp_path / f"{faster}-refused"))
        blobs.faster = faster
        with pytest.raises(BlobsOwned, match=f"another run of that name, {faster}; this run is run-3"):
            claim_blobs(blobs, "r", "run-3")


def test_claim_during_another_write_is_tried_again(tmp_path: Path) -> None:
    class Conflicting(BlobStore):
        """An object store that answers 409 to a conditional write during another one."""

        conflicts = 1

        def create_owner(self, run: str, data: bytes) -> bool:
            self.conflicts -= 1
            return self.conflicts < 0 and super().create_owner(run, data)

    blobs = Conflicting(str(tmp_path / "blobs"))
    with pytest.raises(OSError, match="owners/r is being written by another process; try again"):
        claim_blobs(blobs, "r", "run-1")
    claim_blobs(blobs, "r", "run-1")
    claim_blobs(blobs, "r", "run-1")


def test_adoption_changes_the_owner(blobs: BlobStore, first: RunState, second: RunState) -> None:
    claim_blobs(blobs, "r", identity(first))
    for _ in range(2):  # the setting may stay
        claim_blobs(blobs, "r", identity(second), adopt=identity(first))
    claim_blobs(blobs, "r", identity(second))
    with pytest.raises(BlobsOwned, match=f"blobs.adopt={identity(second)}"):
        claim_blobs(blobs, "r", identity(first))


def test_blobs_of_an_earlier_release_get_an_owner(blobs: BlobStore, first: RunState, second: RunState) -> None:
    blobs.put(b"a checkpoint", "r/checkpoints/1")
    first.redis.hdel(Keys("r").documents, "id")
    assert first.identity() is None
    first.ensure_identity()
    given = identity(first)
    first.ensure_identity()
    assert identity(first) == given
    claim_blobs(blobs, "r", given)
    assert blobs.get("r/checkpoints/1") == b"a checkpoint" and blobs.refs() == ["r/checkpoints/1"]
    with pytest.raises(BlobsOwned):
        claim_blobs(blobs, "r", identity(second))


def test_damaged_record_is_refused(blobs: BlobStore, first: RunState) -> None:
    given = identity(first)
    texts = [b"", b"{", b"[]", b'{"run_id": "x"}', b'{"since": 1.0}']
    times = ('"x"', "null", "NaN", "1e17", "1e300")
    texts += [f'{{"run_id": "{given}", "since": {since}}}'.encode() for since in times]
    for text in texts:
        blobs.replace_owner("r", text)
        with pytest.raises(Corrupt, match="owners/r is damaged"):
            claim_blobs(blobs, "r", given, adopt="x")
        assert blobs.owner("r") == text


def test_backup_keeps_the_id(blobs: BlobStore, first: RunState, tmp_path: Path) -> None:
    file = io.BytesIO()
    claim_blobs(blobs, "r", identity(first))
    backup.save(first.redis, "r", file)
    with EmbeddedRedis(tmp_path / "other", append_only=False).start() as server:
        other = RunState(redis.Redis.from_url(server.url), "r")
        other.create({}, "an empty installation")
        backup.load(other.redis, file, "me", replace=True)
        assert identity(other) == identity(first)
        claim_blobs(blobs, "r", identity(other))


def test_backup_of_an_earlier_release_takes_the_replaced_id(first: RunState) -> None:
    file, given = io.BytesIO(), identity(first)
    first.redis.hdel(Keys("r").documents, "id")
    backup.save(first.redis, "r", file)
    first.ensure_identity()
    made = identity(first)
    assert made != given
    backup.load(first.redis, file, "me", replace=True)
    assert identity(first) == made
    first.redis.flushall()
    backup.load(first.redis, file, "me")
    assert identity(first) not in (given, made)


def test_service_opens_only_its_own_blobs(first: RunState, second: RunState, redis_server: RunningRedis,
                                          tmp_path: Path) -> None:
    first.transition(Status.RUNNING, "the test")
    blobs = BlobStore(str(tmp_path / "blobs"))
    claim_blobs(blobs, "r", identity(second))
    config = tmp_path / "config.json"
    config.write_text("{}")

    def start(url: str, adopt: str = "") -> "subprocess.Popen[str]":
        return subprocess.Popen([sys.executable, "-c", SERVICE, "--config", str(config), redis_server.url, url, adopt],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
                                env={**os.environ, "PYTHONPATH": "libs:."})

    out, err = (process := start(blobs.url)).communicate(timeout=60)
    assert process.returncode == 2 and out == "", err
    assert err.splitlines()[-1].startswith("tested: the blobs of 'r'") and identity(second) in err
    partial = tmp_path / "blobs" / "objects" / "00" / ".0.0.partial"
    partial.parent.mkdir(parents=True)
    partial.touch()
    os.utime(partial, (1.0, 1.0))
    out, err = start(blobs.url, identity(second)).communicate(timeout=60)
    assert out == "open\n" and not partial.exists(), err
    # A store that cannot be used is waited for.
    (tmp_path / "file").write_text("")
    process = start(str(tmp_path / "file" / "blobs"))
    try:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert eventually(lambda: "the blob store cannot be used" in next(lines))
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()

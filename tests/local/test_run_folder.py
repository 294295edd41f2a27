import json
import os
import sys
from pathlib import Path

import pytest

from five.local.passwords import Passwords
from five.local.run_folder import ClusterInfo, RunFolder, RunUnavailable, find_run, free_name
from five.local.run_origin import RunOrigin
from five.run.load import load, save
from rapid.rpc.access import Caller
from rapid.rpc.callers import callers_text


def made(root: Path, name: str) -> RunFolder:
    folder = RunFolder(root / name)
    folder.create()
    folder.config.write_text("name: x\n")
    return folder


def test_secrets_are_created_once_and_private(tmp_path: Path) -> None:
    with pytest.raises(RunUnavailable, match="`five train` creates it"):
        RunFolder(tmp_path / "a").cli_secret()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "token").write_text("of a release with one token for all\n")
    folder = made(tmp_path, "a")
    secrets = {caller: folder.caller_secret(caller).read_text().strip() for caller in Caller}
    assert len(set(secrets.values())) == len(Caller) and all(len(secret) > 30 for secret in secrets.values())
    callers = folder.callers.read_text()
    folder.create()
    assert folder.callers.read_text() == callers == callers_text({c: [secret] for c, secret in secrets.items()})
    assert folder.cli_secret().secret() == secrets[Caller.CLI]
    names = {path.name for path in folder.callers.parent.iterdir()}
    assert names == {"callers.json", *Caller} and not (folder.path / "token").exists()
    assert not [path for path in folder.callers.parent.iterdir() if path.stat().st_mode & 0o077]


def test_folder_is_private_also_after_an_earlier_release(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a"
    folder = RunFolder(path)
    for _ in range(2):
        folder.create()
        assert path.stat().st_mode & 0o777 == 0o700 and path.parent.stat().st_mode & 0o777 != 0o700
        path.chmod(0o755)
        passwords = Passwords(path)
        passwords.create()
        passwords.write_users("state", "a")
        loose = [file for file in path.rglob("*") if file.is_file() and file.stat().st_mode & 0o077]
        assert loose == []


def test_last_run_is_found_without_a_name(tmp_path: Path) -> None:
    first, second = made(tmp_path, "a"), made(tmp_path, "b")
    os.utime(first.config, (1, 1))
    assert find_run(None, tmp_path) == second
    assert find_run("a", tmp_path) == first
    fork = made(tmp_path, "b-wider")  # of a rehearsal: nobody means it who names none
    fork.fork_of.write_text("b\n")
    os.utime(second.config, (2, 2))
    assert find_run(None, tmp_path) == second and find_run("b-wider", tmp_path) == fork


def test_unknown_run_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(RunUnavailable, match="five train"):
        find_run(None, tmp_path)
    made(tmp_path, "a")
    with pytest.raises(RunUnavailable, match="known runs: a"):
        find_run("b", tmp_path)


def test_dead_cluster_is_not_running(tmp_path: Path) -> None:
    folder = made(tmp_path, "a")
    with pytest.raises(RunUnavailable, match="--resume a"):
        folder.cluster()
    folder.announce(ClusterInfo(os.getpid(), "http://x", "", "", ""))
    assert folder.cluster().pid == os.getpid()
    folder.announce(ClusterInfo(2**22 - 7, "http://x", "", "", ""))
    with pytest.raises(RunUnavailable, match="its process has died"):
        folder.cluster()
    (folder.path / "cluster.json").write_text("")  # the machine lost power
    with pytest.raises(RunUnavailable, match="--resume a"):
        folder.cluster()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_files_for_a_resume_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a machine that loses power in the run's first half minute leaves them empty."""
    synced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(Path(os.readlink(f"/proc/self/fd/{fd}"))))
    folder = RunFolder(tmp_path / "a")
    folder.create()
    save(load("laptop-1v1"), folder.config)
    RunOrigin("five train", "0123abc", 2).save(folder.origin)
    Passwords(folder.path).create()
    folder.announce(ClusterInfo(os.getpid(), "http://x", "", "", ""))
    names = {path.name.removeprefix(".").split(".")[0] for path in synced}
    assert {"config", "origin", "passwords", "cluster"} <= names


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("change", [{"started": "1"}, {"machine": "an earlier boot"}])
def test_reused_process_id_is_not_the_run(tmp_path: Path, change: dict[str, str]) -> None:
    folder = made(tmp_path, "a")
    folder.announce(ClusterInfo(os.getpid(), "http://x", "", "", ""))
    path = folder.path / "cluster.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(RunUnavailable, match="its process has died"):
        folder.cluster()


def test_new_run_gets_a_free_name(tmp_path: Path) -> None:
    assert free_name("a", tmp_path) == "a"
    made(tmp_path, "a")
    made(tmp_path, "a-2")
    assert free_name("a", tmp_path) == "a-3"
    (tmp_path / "a-3").symlink_to(tmp_path / "of a disk that is not mounted")
    assert free_name("a", tmp_path) == "a-4"

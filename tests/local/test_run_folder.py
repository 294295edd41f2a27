import os
from pathlib import Path

import pytest

from five.local.run_folder import ClusterInfo, RunFolder, RunUnavailable, find_run, free_name


def made(root: Path, name: str) -> RunFolder:
    folder = RunFolder(root / name)
    folder.create()
    folder.config.write_text("name: x\n")
    return folder


def test_token_is_created_once_and_private(tmp_path: Path) -> None:
    folder = made(tmp_path, "a")
    token = folder.token()
    folder.create()
    assert folder.token() == token and len(token) > 30
    assert (tmp_path / "a" / "token").stat().st_mode & 0o077 == 0


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


def test_new_run_gets_a_free_name(tmp_path: Path) -> None:
    assert free_name("a", tmp_path) == "a"
    made(tmp_path, "a")
    made(tmp_path, "a-2")
    assert free_name("a", tmp_path) == "a-3"

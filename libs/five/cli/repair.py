"""`five repair`: repair the damaged state of a run of this machine, or restore a backup in its place."""

import argparse
import io
import tempfile
from pathlib import Path

import redis

from five.local.run_folder import RunFolder, current_user, find_run
from five.local.run_lock import RunLock
from rapid import append_only_file
from rapid.append_only_file import MANIFEST, Unrepairable
from rapid.embedded_redis import EmbeddedRedis, server_binary
from rapid.store import backup
from rapid.store.errors import Corrupt
from rapid.store.head_version import HeadVersion
from rapid.store.keys import Keys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run and the backup."""
    parser.add_argument("run", help="name of the run, which is not running")
    parser.add_argument("--backup", type=Path, metavar="FILE", help="restore this backup of `five backup` instead, "
                        "also when nothing can be repaired")


def run(arguments: argparse.Namespace) -> int:
    """Run the command. Return the exit status. Raises RuntimeError, RunUnavailable with a message for the user."""
    folder = find_run(arguments.run)
    try:
        with RunLock(folder.path):
            return _repair(folder) if arguments.backup is None else _restore(folder, arguments.backup)
    except (Corrupt, OSError, ValueError, redis.RedisError) as error:
        raise RuntimeError(str(error)) from None


def _repair(folder: RunFolder) -> int:
    data = folder.embedded("state").folder
    problem = append_only_file.check(server_binary(), data)
    if not problem:
        print(f"the state of run {folder.name!r} is not damaged: `five train --resume {folder.name}` starts it")
        return 0
    print(f"damaged: {problem}")
    try:
        done = append_only_file.repair(server_binary(), data)
    except Unrepairable as error:
        raise RuntimeError(f"cannot be repaired: {error}; {_other_ways(folder)}") from None
    print(f"kept {done.after:,} of {done.before:,} bytes; what was written later is lost. The damaged files are in "
          f"{done.copy}")
    print(_describe(folder))
    return 0


def _describe(folder: RunFolder) -> str:
    """Start the server on the repaired file and return what it has of the run. Raises RuntimeError without a run."""
    keys = Keys(folder.name)
    with folder.embedded("state").start() as server:
        client = redis.Redis.from_url(server.url)
        exists, head = client.exists(keys.status), client.get(keys.head)
        client.close()
    if not exists:
        raise RuntimeError(f"nothing of run {folder.name!r} is left in the repaired file; {_other_ways(folder)}")
    newest = "no version" if head is None else f"version {HeadVersion.parse(head).version}"
    return (f"the state is of {newest}; learning continues from the newest checkpoint: "
            f"five train --resume {folder.name}")


def _restore(folder: RunFolder, file: Path) -> int:
    """Load the backup into a new server's files, and replace the present files by them."""
    data = folder.embedded("state").folder
    contents = file.read_bytes()
    found = backup.describe(io.BytesIO(contents))
    if found.run != folder.name:
        raise ValueError(f"{file} is a backup of run {found.run!r}, not of {folder.name!r}")
    data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".restored-", dir=data) as new:
        with EmbeddedRedis(Path(new), append_only=True).start() as server:
            client = redis.Redis.from_url(server.url)
            backup.load(client, io.BytesIO(contents), current_user())
            client.close()
        copy = append_only_file.set_aside(data) if (data / MANIFEST.parent).exists() else None
        (Path(new) / MANIFEST.parent).replace(data / MANIFEST.parent)
    print(f"run {found.run!r} restored, version {found.head}"
          f"{f'; the previous files are in {copy}' if copy else ''}: five train --resume {folder.name}")
    return 0


def _other_ways(folder: RunFolder) -> str:
    return (f"restore a backup: five repair {folder.name} --backup FILE. Without one move "
            f"{folder.embedded('state').folder} away: a new state then adopts the run's checkpoints (blobs.adopt)")

"""`five backup` and `five restore`: write a run's state to a file, or to its blob store, and restore it.

In a container, which has no other part of the command line: ``python -m five.cli.backup save|restore FILE``.
"""

import argparse
import getpass
import io
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import redis

from five.run.load import ConfigError, load, load_stored
from rapid.atomic_file import replacing
from rapid.blobs import BlobStore
from rapid.store import acl, backup
from rapid.store.connection import Login, connect, require_reachable
from rapid.store.errors import Corrupt, StoreUnreachable

MOUNTED = Path("/etc/five/run.yaml")  # configuration of a container
BLOBS = "blobs:"  # beginning of a FILE in the run's blob store
KEEP = 14  # backups that remain in the blob store
MAX_FILE_BYTES = 8 << 30  # of a backup in the blob store, which is read into memory


def add_arguments(parser: argparse.ArgumentParser, restoring: bool) -> None:
    """Add the file and the arguments that select the run."""
    parser.add_argument("file", help="backup file; - is standard input, blobs: the newest backup in the run's blob "
                        "store, blobs:NAME one of them" if restoring else "file to write; - is standard output, "
                        "blobs: the run's blob store, named by the time")
    parser.add_argument("--config", help=f"configuration of the run's services (default: {MOUNTED} if it exists, "
                        "otherwise the run of this machine)")
    parser.add_argument("--admin", action="store_true", help="connect as the Redis user admin, with the password on "
                        "the first line of standard input")
    parser.add_argument("--run", help="a running run of this machine; by default the last one")
    if not restoring:
        parser.add_argument("--keep", type=int, default=KEEP, metavar="N",
                            help=f"with blobs:, the number of backups that remain there ({KEEP})")
    if restoring:
        parser.add_argument("--replace", action="store_true", help="replace the run of that name, which is lost")


def run(arguments: argparse.Namespace, restoring: bool) -> int:
    """Run the command. Return the exit status. Raises RuntimeError with a message for the user."""
    try:
        if not restoring and arguments.keep < 1:
            raise ValueError(f"--keep {arguments.keep}: at least 1 is required")
        store = _open_store(arguments.config, arguments.run, _read_admin_login() if arguments.admin else None)
        if restoring:
            return _restore(store, _read(arguments.file, store.name, store.blobs), arguments.replace)
        if arguments.file.startswith(BLOBS):
            return _save_to_blobs(store.client, store.name, _blob_store(store.blobs), arguments.keep)
        return _save(store.client, store.name, arguments.file)
    except (backup.ServicesRunning, Corrupt, StoreUnreachable, LookupError, ValueError, OSError,
            redis.RedisError) as error:
        raise RuntimeError(str(error)) from None


def _read_admin_login() -> Login:
    """Return the admin's login from standard input, which is more private than a command line or an environment."""
    password = sys.stdin.buffer.readline().decode().strip()
    if not password:
        raise ValueError("--admin: the first line of standard input is empty; expected the password of user admin")
    return Login(acl.ADMIN, password)


class _Store(NamedTuple):
    """A run's state Redis, the run's name, the URL of its blobs ('': unknown), and how long its leases last."""

    client: redis.Redis
    name: str
    blobs: str
    lease_seconds: float


def _open_store(config: str | None, local: str | None, login: Login | None) -> _Store:
    """Connect to the state Redis of a run's configuration, or of a run of this machine."""
    if config is None and local is None and MOUNTED.exists():
        config = str(MOUNTED)
    if config is not None:
        loaded = load(config)
        url, blobs = loaded.store.state_url, loaded.blobs.url
    else:
        from five.local.run_folder import find_run

        folder = find_run(local)
        url, blobs = folder.cluster().state_url, ""
        loaded = load_stored(folder.path / "cluster.yaml")
        login = login or folder.login(acl.ADMIN, url)
    client = connect(url, loaded.store, "state", login)
    require_reachable(client, url, "state")
    return _Store(client, loaded.name, blobs, loaded.lifecycle.lease_seconds)


def _save(client: redis.Redis, name: str, file: str) -> int:
    if file == "-":
        made = backup.save(client, name, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        with replacing(Path(file), 0o600) as out:
            made = backup.save(client, name, out)
    print(f"run {made.run!r}, version {made.head}: {made.keys} keys, {made.bytes:,} bytes", file=sys.stderr)
    return 0


def _blob_store(url: str) -> BlobStore:
    if not url:
        raise ValueError(f"{BLOBS} needs --config with blobs.url; a run of this machine is backed up to a file")
    return BlobStore(url)


def _folder(name: str) -> str:
    return f"{name}/backups/"


def _save_to_blobs(client: redis.Redis, name: str, blobs: BlobStore, keep: int) -> int:
    """Write a backup named by the time, then remove those beyond ``keep``."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "state.zip"
        _save(client, name, str(file))
        blobs.put(file, f"{_folder(name)}{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.zip")
    for old in blobs.refs(_folder(name))[:-keep]:
        blobs.remove_ref(old)
    print(f"backups in {blobs.url}: {', '.join(_names(blobs, name))}", file=sys.stderr)
    return 0


def _names(blobs: BlobStore, name: str) -> list[str]:
    """Return the names of the run's backups, oldest first."""
    return [ref.removeprefix(_folder(name)) for ref in blobs.refs(_folder(name))]


def _read(file: str, name: str, url: str) -> bytes:
    """Return the bytes of a backup. Raises LookupError that lists the backups in the blob store."""
    if file == "-":
        return sys.stdin.buffer.read()
    if not file.startswith(BLOBS):
        return Path(file).read_bytes()
    blobs = _blob_store(url)
    names = _names(blobs, name)
    wanted = file.removeprefix(BLOBS) or (names[-1] if names else "")
    if wanted not in names:
        raise LookupError(f"{file}: run {name!r} has no such backup in {blobs.url}; there are: "
                          f"{', '.join(names) or 'none'}")
    ref = blobs.ref(_folder(name) + wanted)
    if ref.size > MAX_FILE_BYTES:
        raise ValueError(f"{file}: {ref.size} bytes, at most {MAX_FILE_BYTES} are allowed")
    return blobs.get(ref)


def _restore(store: _Store, data: bytes, replace: bool) -> int:
    saved = backup.describe(io.BytesIO(data)).run
    if saved != store.name:
        raise ValueError(f"the backup is of run {saved!r}, this is run {store.name!r}")
    found = backup.load(store.client, io.BytesIO(data), _user_name(), replace, store.lease_seconds)
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(found.at))
    print(f"run {found.run!r} restored to {when}, version {found.head}; it is stopped, resume it",
          file=sys.stderr)
    return 0


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user of a container may have no name
        return f"uid {os.getuid()}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``save FILE`` or ``restore FILE``. Return the exit status: 2 after an error, which is printed as one line."""
    parser = argparse.ArgumentParser(prog="python -m five.cli.backup", description="Back up and restore a run's state.")
    commands = parser.add_subparsers(dest="command", required=True)
    add_arguments(commands.add_parser("save", help="write the run's state to a file"), restoring=False)
    add_arguments(commands.add_parser("restore", help="restore a run, stopped"), restoring=True)
    arguments = parser.parse_args(argv)
    try:
        return run(arguments, arguments.command == "restore")
    except (ConfigError, RuntimeError) as error:
        print(f"{arguments.command}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

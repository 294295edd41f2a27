"""Folder of a local run.

``config.yaml`` is the whole configuration, ``cluster.json`` the addresses of the running processes. Readable by the
owner only: ``callers/`` (one secret for each caller of services, and ``callers.json`` with hashes for the servers),
``operator_token`` (of the `five` command for the REST API), ``tokens.json`` (hashes of the REST API's tokens) and
``passwords.json`` (of Redis). Also ``logs/``, ``redis/``, ``blobs/``, ``tensorboard/``, ``replays/``, ``draft/``,
``agent-games/``, ``report.html``, ``records.json``, ``record.json``, ``ladder.json``, ``ladder.jsonl``,
``evidence.json``, ``origin.json``, ``fork_of``, and ``lock`` and ``ladder.lock`` (`five.local.run_lock`).
"""

import getpass
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from five.local.passwords import Passwords
from five.services.controller.http import tokens
from rapid.atomic_file import replace_text
from rapid.embedded_redis import EmbeddedRedis
from rapid.process_identity import machine_id, started_at
from rapid.rpc.access import Caller
from rapid.rpc.caller_secret import CallerSecretFile, load_or_create_secret
from rapid.rpc.callers import callers_text
from rapid.store import acl
from rapid.store.connection import Login, Role

ROOT = Path("runs")


class RunUnavailable(LookupError):
    """A run that does not exist or is not running. The message says what to do."""


@dataclass(frozen=True)
class ClusterInfo:
    """A running local cluster: its supervisor's process and its addresses. ``environment_pages`` are the metrics pages
    of the environment servers, which no store lists."""

    pid: int
    rest: str
    state_url: str
    params_url: str
    evaluator: str
    environment_pages: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunFolder:
    """Paths below one run's folder."""

    path: Path

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.path.name

    @property
    def config(self) -> Path:
        """The resolved configuration."""
        return self.path / "config.yaml"

    @property
    def report(self) -> Path:
        """The report page."""
        return self.path / "report.html"

    @property
    def records(self) -> Path:
        """The report's data as JSON, readable while the run's stores are down."""
        return self.path / "records.json"

    @property
    def record(self) -> Path:
        """The run's record and its applied plans as JSON, readable while the run's stores are down."""
        return self.path / "record.json"

    @property
    def ladder(self) -> Path:
        """The evaluator's ratings as JSON, readable while the run's stores are down."""
        return self.path / "ladder.json"

    @property
    def evidence(self) -> Path:
        """Counts of hero pairs in training and calibration of the win head, as JSON (five.agent.draft.evidence)."""
        return self.path / "evidence.json"

    @property
    def fork_of(self) -> Path:
        """File with the name of the run from which a rehearsal's fork was made; only forks have it."""
        return self.path / "fork_of"

    @property
    def origin(self) -> Path:
        """The command, source and machine that started the run, as JSON (five.local.run_origin)."""
        return self.path / "origin.json"

    @property
    def draft(self) -> Path:
        """Folder of unfinished draft tables."""
        return self.path / "draft"

    @property
    def ladder_journal(self) -> Path:
        """Journal of the rating games that `five ladder` played, one JSON line a change."""
        return self.path / "ladder.jsonl"

    def create(self) -> None:
        """Create the folder and its secrets if they are missing, readable by this user only.

        Raises RunUnavailable for a folder of another user.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.path.stat().st_mode & 0o077:
            try:
                self.path.chmod(0o700)  # of releases before 0.2.0
            except PermissionError:
                raise RunUnavailable(f"{self.path} is readable by others and belongs to another user: give it mode "
                                     "0700, or choose another --name") from None
        for name in ("logs", "redis", "blobs", "tensorboard", "replays"):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        secrets = {caller: load_or_create_secret(self.caller_secret(caller)) for caller in Caller}
        replace_text(self.callers, callers_text({caller: [secret] for caller, secret in secrets.items()}), 0o600)
        (self.path / "token").unlink(missing_ok=True)  # of releases before 0.2.0, which shared one token
        own = load_or_create_secret(self.path / "operator_token")
        if not self.tokens.exists():
            entry = tokens.TokenEntry(name=current_user(), role="operator", sha256=tokens.token_hash(own))
            tokens.write(self.tokens, [entry])

    @property
    def tokens(self) -> Path:
        """Hashes of the REST API's tokens."""
        return self.path / "tokens.json"

    @property
    def callers(self) -> Path:
        """Hashes of the callers' tokens, for the servers of the run."""
        return self.path / "callers" / "callers.json"

    def caller_secret(self, caller: Caller) -> Path:
        """Return the file with a caller's secret."""
        return self.path / "callers" / caller

    def cli_secret(self) -> CallerSecretFile:
        """Return the secret of the `five` command. Raises RunUnavailable if the run was never started."""
        try:
            return CallerSecretFile(str(self.caller_secret(Caller.CLI)))
        except ValueError as error:
            raise RunUnavailable(f"{self.path}: {error}; `five train` creates it") from None

    def operator_token(self) -> str:
        """Return the command's token for the REST API. Raises RunUnavailable if the run was never started."""
        return self._read("operator_token")

    def _read(self, name: str) -> str:
        try:
            return next(iter((self.path / name).read_text(encoding="utf-8").split()), "")
        except FileNotFoundError:
            raise RunUnavailable(f"{self.path}: no such run; `five train` starts one") from None

    def embedded(self, role: Role, users: Path | None = None, login: Login | None = None) -> EmbeddedRedis:
        """Return the run's embedded Redis of a role; ``users`` and ``login`` are arguments of EmbeddedRedis."""
        return EmbeddedRedis(self.path / "redis" / role, role == "state", users, login)

    def login(self, user: str, url: str) -> Login | None:
        """Return a user of the embedded Redis; None if ``url`` is an external Redis. Raises RunUnavailable for an
        unknown user."""
        if url not in {self.embedded(role).url for role in acl.ROLES}:
            return None
        try:
            return Passwords(self.path).login(user)
        except LookupError as error:
            raise RunUnavailable(str(error)) from None

    def announce(self, cluster: ClusterInfo) -> None:
        """Write the addresses of the running cluster, and which process with its id it is, atomically."""
        process = {"machine": machine_id(), "started": started_at(cluster.pid)}
        replace_text(self.path / "cluster.json", json.dumps({**asdict(cluster), **process}), sync=True)

    def withdraw(self) -> None:
        """Remove the addresses of the cluster, which has ended."""
        (self.path / "cluster.json").unlink(missing_ok=True)

    def cluster(self) -> ClusterInfo:
        """Return the running cluster. Raises RunUnavailable if the run is not running."""
        again = f"`five train --resume {self.name}` starts it again"
        try:
            row = json.loads((self.path / "cluster.json").read_text(encoding="utf-8"))
            machine, started = row.pop("machine", ""), row.pop("started", "")
            found = ClusterInfo(**{**row, "environment_pages": tuple(row.get("environment_pages", ()))})
        except (FileNotFoundError, json.JSONDecodeError):  # empty: the machine lost power before it was on disk
            raise RunUnavailable(f"run {self.name!r} is not running; {again}") from None
        if not _is_alive(found.pid, machine, started):
            raise RunUnavailable(f"run {self.name!r} is not running, its process has died; {again}")
        return found


def find_run(name: str | None, root: Path = ROOT) -> RunFolder:
    """Return the run of that name; without a name the run started last, forks excluded. Raises RunUnavailable."""
    require_link_target(root)
    if name:
        folder = RunFolder(root / name)
        if not folder.config.exists():
            known = ", ".join(sorted(p.parent.name for p in root.glob("*/config.yaml"))) or "none"
            raise RunUnavailable(f"no run {name!r} in {root}/; known runs: {known}")
        return folder
    runs = (path for path in root.glob("*/config.yaml") if not RunFolder(path.parent).fork_of.exists())
    newest = max(runs, key=lambda p: p.stat().st_mtime, default=None)
    if newest is None:
        raise RunUnavailable(f"no run in {root}/ yet; `five train` starts one")
    return RunFolder(newest.parent)


def require_link_target(root: Path) -> None:
    """Raise RunUnavailable if ``root`` is a link to a missing folder, as on a disk that is not mounted."""
    if root.is_symlink() and not root.exists():
        raise RunUnavailable(f"{root} is a link to {root.readlink()}, which does not exist: mount its disk, or create "
                             "that folder")


def free_name(base: str, root: Path = ROOT) -> str:
    """Return ``base``, or ``base`` with the first free number."""
    name, number = base, 2
    while os.path.lexists(root / name):  # a link to a missing folder takes its name, too
        name, number = f"{base}-{number}", number + 1
    return name


def current_user() -> str:
    """Return the name of the command's own token in events: the user's name if it is a valid token name."""
    try:
        return tokens.TokenEntry(name=getpass.getuser(), role="operator", sha256="0" * 64).name
    except (OSError, KeyError, ValueError):
        return "owner"


def _is_alive(pid: int, machine: str, started: str) -> bool:
    """Return whether the process that was started then lives; its id may have been used again, as after a reboot."""
    if (machine and machine != machine_id()) or (started and started != started_at(pid)):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

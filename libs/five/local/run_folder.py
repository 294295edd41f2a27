"""A local run's folder: where everything of it lies.

``config.yaml`` the whole configuration, ``token`` what services call each other with, ``operator_token`` what the
`five` command calls the REST API with, ``tokens.json`` the hashes of that API's tokens, ``passwords.json`` the
passwords of Redis (all readable by their owner only), ``cluster.json`` the running processes' addresses, ``logs/``,
``redis/``, ``blobs/``, ``tensorboard/``, ``replays/``, ``report.html``, ``records.json``,
``record.json``, ``ladder.json``, ``ladder.jsonl``, ``evidence.json``, ``draft/``, ``fork_of``.
"""

import getpass
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from five.local.passwords import Passwords
from five.services.controller.http import tokens
from rapid.embedded_redis import EmbeddedRedis
from rapid.rpc.token import load_or_create_token
from rapid.store import acl
from rapid.store.connection import Login, Role

ROOT = Path("runs")


class RunUnavailable(LookupError):
    """A run that is not there, or is not running. The message says what to do."""


@dataclass(frozen=True)
class ClusterInfo:
    """A running local cluster: the supervisor's process, where REST and Redis answer. ``environment_pages`` are the
    pages of its environment servers, which no store lists."""

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
        """The run's name."""
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
        """What the report is made of, as JSON: it can be read when the run's stores are down."""
        return self.path / "records.json"

    @property
    def record(self) -> Path:
        """The run's record and its applied plans, as JSON: what its versions are when its stores are down."""
        return self.path / "record.json"

    @property
    def ladder(self) -> Path:
        """The run's ratings as its evaluator keeps them, as JSON, for when its stores are down."""
        return self.path / "ladder.json"

    @property
    def evidence(self) -> Path:
        """How often heroes met in training and how often the win head was right, as JSON: five.agent.draft.evidence."""
        return self.path / "evidence.json"

    @property
    def fork_of(self) -> Path:
        """The name of the run that it was forked from, for a rehearsal; there is no such file in any other run."""
        return self.path / "fork_of"

    @property
    def draft(self) -> Path:
        """Where tables of a draft lie that are not yet whole."""
        return self.path / "draft"

    @property
    def ladder_journal(self) -> Path:
        """What `five ladder` has played beside: a line of JSON for each change."""
        return self.path / "ladder.jsonl"

    def create(self) -> None:
        """Makes the folder and its tokens, if they are not there."""
        for name in ("logs", "redis", "blobs", "tensorboard", "replays"):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        load_or_create_token(self.path / "token")
        own = load_or_create_token(self.path / "operator_token")
        if not self.tokens.exists():
            tokens.write(self.tokens, [tokens.TokenEntry(name=current_user(), role="operator", sha256=tokens.token_hash(own))])

    @property
    def tokens(self) -> Path:
        """The hashes of the REST API's tokens."""
        return self.path / "tokens.json"

    def token(self) -> str:
        """What services call each other with; it opens no REST endpoint. Raises RunUnavailable when the run was never
        started."""
        return self._read("token")

    def operator_token(self) -> str:
        """What the REST API is called with. Raises RunUnavailable when the run was never started."""
        return self._read("operator_token")

    def _read(self, name: str) -> str:
        try:
            return next(iter((self.path / name).read_text().split()), "")
        except FileNotFoundError:
            raise RunUnavailable(f"{self.path}: there is no such run; `five train` starts one") from None

    def embedded(self, role: Role, users: Path | None = None, login: Login | None = None) -> EmbeddedRedis:
        """The run's own Redis of a role; ``users`` and ``login`` are EmbeddedRedis'."""
        return EmbeddedRedis(self.path / "redis" / role, role == "state", users, login)

    def login(self, user: str, url: str) -> Login | None:
        """A user of the run's own Redis; None for a Redis at ``url`` that is another's. Raises RunUnavailable when the run has
        no such user."""
        if url not in {self.embedded(role).url for role in acl.ROLES}:
            return None
        try:
            return Passwords(self.path).login(user)
        except LookupError as error:
            raise RunUnavailable(str(error)) from None

    def announce(self, cluster: ClusterInfo) -> None:
        """Writes down where the cluster answers, beside first and then renamed."""
        beside = self.path / ".cluster.json"
        beside.write_text(json.dumps(asdict(cluster)))
        beside.replace(self.path / "cluster.json")

    def withdraw(self) -> None:
        """The cluster has ended."""
        (self.path / "cluster.json").unlink(missing_ok=True)

    def cluster(self) -> ClusterInfo:
        """The running cluster. Raises RunUnavailable when there is none."""
        again = f"`five train --resume {self.name}` starts it again"
        try:
            row = json.loads((self.path / "cluster.json").read_text())
            found = ClusterInfo(**{**row, "environment_pages": tuple(row.get("environment_pages", ()))})
        except FileNotFoundError:
            raise RunUnavailable(f"run {self.name!r} is not running; {again}") from None
        if not _alive(found.pid):
            raise RunUnavailable(f"run {self.name!r} is not running: its process has died; {again}")
        return found


def find_run(name: str | None, root: Path = ROOT) -> RunFolder:
    """The run of that name; without one the run that was started last, and no rehearsal's fork. Raises RunUnavailable."""
    if name:
        folder = RunFolder(root / name)
        if not folder.config.exists():
            known = ", ".join(sorted(p.parent.name for p in root.glob("*/config.yaml"))) or "none"
            raise RunUnavailable(f"there is no run {name!r} in {root}/; there is: {known}")
        return folder
    runs = (path for path in root.glob("*/config.yaml") if not RunFolder(path.parent).fork_of.exists())
    newest = max(runs, key=lambda p: p.stat().st_mtime, default=None)
    if newest is None:
        raise RunUnavailable(f"there is no run in {root}/ yet; `five train` starts one")
    return RunFolder(newest.parent)


def free_name(base: str, root: Path = ROOT) -> str:
    """``base``, or with the first number after it that is not taken."""
    name, number = base, 2
    while (root / name).exists():
        name, number = f"{base}-{number}", number + 1
    return name


def current_user() -> str:
    """The name that events carry for the command's own token: the user's, where it can be one."""
    try:
        return tokens.TokenEntry(name=getpass.getuser(), role="operator", sha256="0" * 64).name
    except (OSError, KeyError, ValueError):
        return "owner"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

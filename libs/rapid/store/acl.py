"""Access control of a run's two Redis servers: one user per component, with the keys and commands that it needs.

``ENTRIES`` is the only declaration: every name of `Keys`, the kind of its value, and its readers and writers. The ACL
rules of the embedded server, of compose and of the chart are generated from it. A key that it lacks fails a test, and
services cannot use it.

A user may send the commands of its entries to all of its keys: one that may delete a key of one kind may delete every
key that it may write.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from rapid.store.connection import Role
from rapid.store.events import WRITERS
from rapid.store.keys import Keys

ROLES: tuple[Role, ...] = ("state", "params")
ADMIN = "admin"  # for people: backup, restore, rotation of passwords
PROBE = "probe"  # for health checks: server info, no keys
CONTROLLER, EVALUATOR, INFERENCE, OPPONENTS, OPTIMIZER, PLAY, ROLLOUT = SERVICES = (
    "controller", "evaluator", "inference", "opponents", "optimizer", "play", "rollout")
ANYBODY = frozenset(SERVICES)


class Kind(StrEnum):
    """Kind of a key's value, which determines its read and write commands."""

    VALUE = "value"  # a string
    EXPIRING = "expiring"  # a string that expires or is deleted
    FIELDS = "fields"  # a hash
    COUNTERS = "counters"  # a hash of numbers that only grow
    SORTED = "sorted"  # a sorted set
    STREAM = "stream"
    CHANNEL = "channel"


READS: Mapping[Kind, tuple[str, ...]] = {
    Kind.VALUE: ("get", "mget", "exists"),
    Kind.EXPIRING: ("get", "mget", "exists"),
    Kind.FIELDS: ("hget", "hmget", "hgetall", "hexists", "hlen"),
    Kind.COUNTERS: ("hget", "hgetall"),
    Kind.SORTED: ("zrange", "zrangebyscore", "zcard", "zscore"),
    Kind.STREAM: ("xrange", "xrevrange", "xread", "xlen", "exists"),
    Kind.CHANNEL: ("subscribe", "unsubscribe"),
}
WRITES: Mapping[Kind, tuple[str, ...]] = {
    Kind.VALUE: ("set",),
    Kind.EXPIRING: ("set", "del", "pexpire", "persist"),
    Kind.FIELDS: ("hset", "hdel"),
    Kind.COUNTERS: ("hincrby",),
    Kind.SORTED: ("zadd", "zrem", "zremrangebyrank", "zremrangebyscore"),
    Kind.STREAM: ("xadd",),
    Kind.CHANNEL: ("publish",),
}
CONNECTION = ("ping", "hello", "select")
# Redis checks each command in a transaction or a function as it does outside.
TRANSACTION = ("multi", "exec", "discard", "watch", "unwatch")
FUNCTION = ("fcall",)  # of the library that the controller loads; only the admin may run Lua of its own (EVAL)


@dataclass(frozen=True)
class AclEntry:
    """A name of `Keys`: its ``pattern`` below the run's prefix ('*' is the variable part), kind, readers and writers.

    Writers also read, unless ``write_only``.
    """

    name: str
    pattern: str
    kind: Kind
    writers: frozenset[str] = frozenset()
    readers: frozenset[str] = frozenset()
    role: Role = "state"
    write_only: bool = False

    def reads(self, user: str) -> bool:
        """Return whether the user may read it."""
        return user in self.readers or (user in self.writers and not self.write_only)

    def writes(self, user: str) -> bool:
        """Return whether the user may write it."""
        return user in self.writers


def _users(*users: str) -> frozenset[str]:
    return frozenset(users)


# Owners of tables and series by name.
TABLES: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {  # name: (writers, readers)
    "league": (_users(OPPONENTS), _users(CONTROLLER)),
    "ratings": (_users(EVALUATOR), _users(CONTROLLER, PLAY)),
    "people": (_users(PLAY), _users(CONTROLLER)),
    "guard": (_users(EVALUATOR), _users(CONTROLLER)),
    "match_games": (_users(EVALUATOR), _users()),
    "autoscaler": (_users(CONTROLLER), _users()),
    "operations": (_users(CONTROLLER), _users()),
    "orders": (_users(CONTROLLER, OPTIMIZER), _users()),
    "matches": (_users(CONTROLLER), _users()),
    "checks": (_users(CONTROLLER), _users()),
    "rehearsals": (_users(CONTROLLER), _users()),
    "plans": (_users(OPTIMIZER), _users(CONTROLLER, INFERENCE)),
}
SERIES: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "versions": (_users(OPTIMIZER), _users(CONTROLLER, ROLLOUT)),  # schedules may count hero-steps
    "games": (_users(ROLLOUT), _users(CONTROLLER)),
    "ratings": (_users(EVALUATOR), _users(CONTROLLER)),
    "matches": (_users(EVALUATOR), _users(CONTROLLER)),
    "schedules": (_users(CONTROLLER), _users()),
}


def _tables() -> Iterable[AclEntry]:
    for name, (writers, readers) in TABLES.items():
        yield AclEntry("table", f"table:{name}", Kind.FIELDS, writers, readers)
        yield AclEntry("table_log", f"log:{name}", Kind.STREAM, writers, readers)
        yield AclEntry("once", f"once:{name}", Kind.SORTED, writers, readers)
    for name, (writers, readers) in SERIES.items():
        yield AclEntry("series", f"series:{name}", Kind.STREAM, writers, readers)
        yield AclEntry("once_in", f"once-in:{name}", Kind.SORTED, writers)


VERSIONED = _users(OPTIMIZER, INFERENCE, OPPONENTS, EVALUATOR, PLAY)
# Users of `rapid.store.transaction`.
TRANSACTING = _users(CONTROLLER, *(user for writers, _ in TABLES.values() for user in writers))
ENTRIES: Sequence[AclEntry] = (
    AclEntry("head", "head", Kind.VALUE, _users(OPTIMIZER), VERSIONED | _users(CONTROLLER)),
    AclEntry("versions", "versions", Kind.FIELDS, _users(OPTIMIZER), VERSIONED | _users(CONTROLLER)),
    # An aborted operation unpins its versions.
    AclEntry("temporary", "versions:passing", Kind.SORTED, _users(OPTIMIZER, CONTROLLER)),
    AclEntry("pins", "versions:pins", Kind.FIELDS, _users(EVALUATOR, OPTIMIZER, CONTROLLER)),
    # A user may publish on every channel in its rules, so publishers of games do not have this one.
    AclEntry("heads_channel", "heads", Kind.CHANNEL, _users(OPTIMIZER), _users(INFERENCE, OPPONENTS, CONTROLLER)),
    # The optimizer's cut-over changes head, record and status in one step.
    AclEntry("status", "status", Kind.VALUE, _users(CONTROLLER, OPTIMIZER), ANYBODY),
    AclEntry("status_channel", "statuses", Kind.CHANNEL, _users(CONTROLLER, OPTIMIZER)),
    AclEntry("record", "record", Kind.VALUE, _users(CONTROLLER, OPTIMIZER), ANYBODY),
    AclEntry("lineage", "lineage", Kind.FIELDS, _users(CONTROLLER, OPTIMIZER), _users(OPPONENTS, EVALUATOR)),
    AclEntry("publisher", "publisher", Kind.VALUE, _users(OPTIMIZER), _users(CONTROLLER)),
    AclEntry("pause", "pause", Kind.VALUE, _users(CONTROLLER)),
    *(AclEntry("quiet", f"quiet:{service}:*", Kind.EXPIRING, _users(service, CONTROLLER)) for service in SERVICES),
    *(AclEntry("quiet_names", f"quiet-names:{service}", Kind.SORTED,
               _users(service, CONTROLLER)) for service in SERVICES),
    AclEntry("checkpoints", "checkpoints", Kind.FIELDS, _users(OPTIMIZER), _users(CONTROLLER)),
    AclEntry("checkpoint_key", "checkpoint-key", Kind.VALUE, _users(OPTIMIZER)),
    AclEntry("preserved", "checkpoints:preserved", Kind.FIELDS, _users(OPTIMIZER)),
    AclEntry("staged", "versions:staged", Kind.EXPIRING, _users(OPTIMIZER)),
    AclEntry("documents", "documents", Kind.FIELDS, _users(CONTROLLER), _users(OPTIMIZER, ROLLOUT)),
    AclEntry("anneal", "anneal", Kind.VALUE, _users(CONTROLLER), _users(ROLLOUT, EVALUATOR)),
    AclEntry("watched", "watched", Kind.EXPIRING, _users(CONTROLLER), _users(ROLLOUT, EVALUATOR)),
    AclEntry("live_channel", "live", Kind.CHANNEL, _users(ROLLOUT, EVALUATOR), _users(CONTROLLER), write_only=True),
    # The rehearsal runner acts as the controller of the run on its machine.
    AclEntry("rehearser", "rehearser", Kind.EXPIRING, _users(CONTROLLER)),
    AclEntry("rehearsing", "rehearsing", Kind.EXPIRING, _users(CONTROLLER)),
    AclEntry("counters", "counters", Kind.COUNTERS, _users(ROLLOUT, CONTROLLER)),
    AclEntry("events", "events", Kind.STREAM, _users(CONTROLLER)),
    # Events of other services until the controller has moved them into the log.
    *(AclEntry("events_of", f"events:{service}", Kind.STREAM, _users(service, CONTROLLER)) for service in WRITERS),
    AclEntry("events_removed", "events-removed", Kind.FIELDS, _users(CONTROLLER)),
    AclEntry("libraries", "libraries", Kind.SORTED, _users(CONTROLLER)),
    # A random token is the name, so no user can guess another's key.
    AclEntry("applied", "applied:*", Kind.EXPIRING, TRANSACTING),
    AclEntry("idempotency", "idempotency:*", Kind.EXPIRING, _users(CONTROLLER)),
    AclEntry("idempotency_index", "idempotency-index", Kind.SORTED, _users(CONTROLLER)),
    AclEntry("login", "login:*", Kind.EXPIRING, _users(CONTROLLER)),
    AclEntry("session", "session:*", Kind.EXPIRING, _users(CONTROLLER)),
    *_tables(),
    *(AclEntry("lease", f"lease:{service}:*", Kind.EXPIRING, _users(service),
               _users(CONTROLLER)) for service in SERVICES),
    *(AclEntry("leases", f"leases:{service}", Kind.SORTED, _users(service),
               _users(CONTROLLER)) for service in SERVICES),
    AclEntry("ordinals", "ordinals:rollout", Kind.SORTED, _users(ROLLOUT)),
    AclEntry("rendezvous", "rendezvous:*", Kind.EXPIRING, _users(OPTIMIZER)),
    AclEntry("stored_versions", "params:versions", Kind.SORTED, _users(OPTIMIZER), _users(INFERENCE, CONTROLLER),
             "params"),
    AclEntry("manifest", "params:*", Kind.EXPIRING, _users(OPTIMIZER), _users(INFERENCE, CONTROLLER), "params"),
    AclEntry("chunk", "params:*", Kind.EXPIRING, _users(OPTIMIZER), _users(INFERENCE), "params"),
)
# Further commands: functions, the server's clock for leases, and server info for the controller's status. The
# controller also loads the functions and moves events.
EXTRA: Mapping[tuple[str, Role], tuple[str, ...]] = {
    **{(service, "state"): (*FUNCTION, "time") for service in SERVICES},
    (CONTROLLER, "state"): (*FUNCTION, "function|delete", "function|load", "info", "memory|usage", "time", "xdel",
                            "xinfo|stream", "xtrim"),
    (CONTROLLER, "params"): ("info",),
}


def users(role: Role) -> tuple[str, ...]:
    """Return all users of that server: its services, the probe and the admin."""
    mine = {user for entry in ENTRIES if entry.role == role for user in entry.writers | entry.readers}
    mine |= {user for user, where in EXTRA if where == role}
    return (*(service for service in SERVICES if service in mine), PROBE, ADMIN)


def roles_of(user: str) -> tuple[Role, ...]:
    """Return the servers in which a component has a user; none for a component without Redis."""
    return tuple(role for role in ROLES if user in users(role))


def commands(user: str, role: Role) -> tuple[str, ...]:
    """Return the commands that a user may send, in order."""
    found = {*CONNECTION, *EXTRA.get((user, role), ())}
    for entry in ENTRIES:
        if entry.role == role and entry.reads(user):
            found.update(READS[entry.kind])
        if entry.role == role and entry.writes(user):
            found.update((*WRITES[entry.kind], *TRANSACTION))
    return tuple(sorted(found))


def rules(user: str, role: Role, run: str = "*") -> list[str]:
    """Return a user's ACL rules without passwords: the part after ``on #HASH`` in an ACL file.

    ``run`` limits them to that run's keys ('*': any run). Raises ValueError for an unknown user or an invalid run.
    """
    if user not in users(role):
        raise ValueError(f"{user!r} has no user in the {role} Redis; there are {', '.join(users(role))}")
    if user == ADMIN:
        return ["~*", "&*", "+@all"]
    if user == PROBE:
        return ["resetchannels", "-@all", "+hello", "+info", "+ping", "+select"]
    prefix = "five:*:" if run == "*" else Keys(run).prefix
    channels: set[str] = set()
    keys: dict[str, set[str]] = {}
    for entry in ENTRIES:
        access = ("R" if entry.reads(user) else "") + ("W" if entry.writes(user) else "")
        if entry.role != role or not access:
            continue
        if entry.kind is Kind.CHANNEL:
            channels.add(f"&{prefix}{entry.pattern}")
        else:
            keys.setdefault(prefix + entry.pattern, set()).update(access)
    patterns = [f"%{''.join(sorted(access))}~{key}" if len(access) == 1 else f"~{key}"
                for key, access in sorted(keys.items())]
    return ["resetchannels", *sorted(channels), "-@all", *(f"+{name}" for name in commands(user, role)), *patterns]


def hash_password(password: str) -> str:
    """Return a password's hash in the format of ACL files. Raise ValueError for an empty one."""
    if not password:
        raise ValueError("the password is empty")
    return "#" + sha256(password.encode()).hexdigest()


# Redis' default user is off and has no password. It keeps its rights, because Redis 7.0 replays an append-only file as
# this user and drops every transaction (MULTI/EXEC) that it may not run. A restart would lose the run.
DEFAULT_USER = "user default off resetpass ~* &* +@all"


def acl_file(role: Role, passwords: Mapping[str, Sequence[str]], run: str = "*") -> str:
    """Return the users of a server as the text of its ``aclfile``, with hashed passwords only.

    ``passwords`` are those of each user, any of which is accepted (two during a rotation). A user without a password is
    off, and so is Redis' own ``default``. Raises ValueError for passwords of an unknown user.
    """
    strangers = set(passwords) - set(users(role))
    if strangers:
        raise ValueError(f"the {role} Redis has no user {', '.join(sorted(strangers))}")
    lines = [DEFAULT_USER]
    for user in users(role):
        given = [hash_password(password) for password in passwords.get(user, ())]
        lines.append(" ".join(["user", user, "on" if given else "off", *given, *rules(user, role, run)]))
    return "".join(f"{line}\n" for line in lines)


def template(role: Role) -> str:
    """Return the users of a server as a template for tools without Python.

    ``@run@`` stands for the run's name, ``@USER@`` for ``on`` and the hashes of a user's passwords.
    """
    lines = [DEFAULT_USER]
    for user in users(role):
        rest = " ".join(rules(user, role, "RUN")).replace(f"{Keys('RUN').prefix}", "five:@run@:")
        lines.append(f"user {user} @{user}@ {rest}")
    return "".join(f"{line}\n" for line in lines)

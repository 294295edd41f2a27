"""ACL users on real Redis servers: each component can do its work and nothing else."""

import fnmatch
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from rapid.blobs import Ref
from rapid.store import acl, functions
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.connection import Login, connect, require_reachable
from rapid.store.errors import StoreRefused, VersionMissing
from rapid.store.fencing import PublisherLease
from rapid.store.keys import Keys
from rapid.store.leases import Leases
from rapid.store.replicated_table import ReplicatedTable
from rapid.store.series import Series
from rapid.store.state import Status
from tests.rapid.acl_servers import CONFIG, Servers

ROOT = Path(__file__).parents[2]
KEYS = Keys("r")
SAMPLES: dict[str, Any] = {"str": "x", "int": 1}


@pytest.fixture
def run(servers: Servers) -> Servers:
    """A run with two published versions."""
    for role in acl.ROLES:
        servers.client(acl.ADMIN, role).flushall()
    assert servers.state("controller").create({"name": "r"}, "controller")
    servers.state("controller").transition("running", "controller")
    for version in range(2):
        servers.store("optimizer").publish(version, {"w": np.full((9, 9), version, np.float32)}, {})
    servers.refusals()
    return servers


# Declarations.


def test_every_key_has_an_acl_entry() -> None:
    declared: dict[str, set[str]] = {}
    for entry in acl.ENTRIES:
        declared.setdefault(entry.name, set()).add(entry.pattern)
        assert entry.writers | entry.readers <= acl.ANYBODY and entry.writers, entry
        assert entry.role in acl.ROLES
    plain = {name: value for name, value in vars(KEYS).items() if name not in ("run", "prefix")}
    methods = dict(inspect.getmembers(KEYS, inspect.ismethod))
    methods.pop("__init__")
    missing = (plain.keys() | methods.keys()) - declared.keys()
    assert not missing, f"keys of nobody: say in acl.ENTRIES who writes and who reads {', '.join(sorted(missing))}"
    assert not declared.keys() - plain.keys() - methods.keys()
    for name, value in plain.items():
        assert declared[name] == {value.removeprefix(KEYS.prefix)}
    for name, method in methods.items():
        arguments = [SAMPLES[p.annotation if isinstance(p.annotation, str) else p.annotation.__name__]
                     for p in inspect.signature(method).parameters.values()]
        made = str(method(*arguments)).removeprefix(KEYS.prefix)
        # The variable part is '*' or a listed name.
        shapes = {re.sub(r"\b(" + "|".join({*acl.TABLES, *acl.SERIES, *acl.SERVICES}) + r")\b", "x", pattern)
                  for pattern in declared[name]}
        assert any(fnmatch.fnmatchcase(made, shape) for shape in shapes), f"{name} makes {made}, declared is {shapes}"


def test_every_table_and_series_has_an_acl_entry() -> None:
    tables, series = set(), set()
    for path in [*(ROOT / "libs").rglob("*.py"), *(ROOT / "services").rglob("*.py")]:
        text = path.read_text()
        tables |= set(re.findall(r"state\.table\(\"(\w+)\"", text))
        tables |= set(re.findall(r"^\w*TABLE = \"(\w+)\"", text, re.M))
        series |= set(re.findall(r"series\.(?:append|extend|last|read)\(\"(\w+)\"", text))
    assert tables, "nothing was found: the source is written in another way now"
    assert series >= {"versions", "ratings"}
    assert not tables - acl.TABLES.keys(), "tables of nobody: say in acl.TABLES who writes and who reads them"
    assert not series - acl.SERIES.keys(), "series of nobody: say in acl.SERIES who writes and who reads them"
    assert not acl.TABLES.keys() - tables, "remove these unused tables from acl.TABLES"


def test_only_admin_may_run_server_commands() -> None:
    dangerous = {"eval", "evalsha", "eval_ro", "evalsha_ro", "script|load", "config", "flushall", "flushdb", "keys",
                 "acl", "script", "script|flush", "shutdown", "debug", "save",
                 "replicaof", "slaveof", "monitor", "client", "migrate", "restore", "dump", "rename", "function",
                 "module", "swapdb", "unlink", "lastsave", "psubscribe", "object"}
    for role in acl.ROLES:
        for user in set(acl.users(role)) - {acl.ADMIN}:
            assert not dangerous & set(acl.commands(user, role)), user
            assert not [rule for rule in acl.rules(user, role) if rule.startswith("+@") or rule in ("~*", "&*")]


def test_users_of_each_server() -> None:
    assert acl.roles_of("dota_env") == ()
    assert acl.roles_of("rollout") == acl.roles_of("opponents") == acl.roles_of("evaluator") == ("state",)
    assert acl.roles_of("optimizer") == acl.roles_of("inference") == acl.roles_of("controller") == ("state", "params")
    with pytest.raises(ValueError, match="'dota_env' has no user in the state Redis; there are controller"):
        acl.rules("dota_env", "state")


def test_users_are_the_services_of_a_server_and_two_more() -> None:
    assert acl.users("state") == (*acl.SERVICES, "probe", "admin")
    assert acl.users("params") == ("controller", "inference", "optimizer", "probe", "admin")


@pytest.mark.parametrize(("writers", "readers", "write_only", "reads", "writes"), [
    ("x", "", False, True, True), ("x", "", True, False, True), ("", "x", False, True, False),
    ("", "x", True, True, False), ("x", "x", True, True, True), ("y", "y", False, False, False),
    ("y", "y", True, False, False)])
def test_writers_also_read_unless_they_only_write(writers: str, readers: str, write_only: bool, reads: bool,
                                                  writes: bool) -> None:
    entry = acl.AclEntry("n", "p", acl.Kind.CHANNEL, frozenset(writers), frozenset(readers), write_only=write_only)
    assert (entry.reads("x"), entry.writes("x")) == (reads, writes)
    assert entry.role == "state" and not acl.AclEntry("n", "p", acl.Kind.VALUE).write_only


@pytest.mark.parametrize("role", acl.ROLES)
def test_rules_of_any_run_differ_by_their_prefix_alone(role: Any) -> None:
    for user in acl.users(role):
        one, every = (" ".join(acl.rules(user, role, *run)) for run in (["r"], []))
        assert one.replace("five:r:", "five:*:") == every, user
        assert ("five:" in every) == (user in acl.SERVICES)


@pytest.mark.parametrize("role", acl.ROLES)
def test_template_is_the_file_with_places_for_run_and_passwords(role: Any) -> None:
    text = acl.template(role).replace("@run@", "r")
    for user in acl.users(role):
        text = text.replace(f"@{user}@", f"on {acl.hash_password(user)}")
    assert text == acl.acl_file(role, {user: [user] for user in acl.users(role)}, "r")


def test_acl_file_has_hashes_and_disables_users_without_password() -> None:
    text = acl.acl_file("state", {"rollout": ["old-one", "new-one"], "controller": ["sesame"]}, "r")
    lines = {line.split()[1]: line for line in text.splitlines()}
    assert not [word for word in ("old-one", "new-one", "sesame") if word in text]
    assert len(re.findall(r"#[0-9a-f]{64}\b", lines["rollout"])) == 2
    assert lines["default"] == "user default off resetpass ~* &* +@all"
    assert lines["optimizer"].startswith("user optimizer off resetchannels") and "nopass" not in text
    with pytest.raises(ValueError, match="the state Redis has no user dota_env"):
        acl.acl_file("state", {"dota_env": ["x"]})
    with pytest.raises(ValueError, match="the password is empty"):
        acl.acl_file("state", {"rollout": [""]})
    with pytest.raises(ValueError, match="run name"):
        acl.rules("rollout", "state", "r* ~*")


# Work of each component.


def lives(run: Servers, kind: str) -> None:
    """Do what every service does: wait for its stores and the run, and send its heartbeat."""
    for role in acl.roles_of(kind):
        require_reachable(run.client(kind, role), run.servers[role].url, "state")
    state = run.state(kind)
    assert state.snapshot().record is not None
    lease = state.lease(kind, "0", 5)
    lease.renew({"steps": 1})
    lease.renew({"steps": 1}, 1, 1, 3, True)
    assert [i.kind for i in Leases(run.client("controller"), "r").live(kind)] == [kind]
    lease.release()


def controls(run: Servers) -> None:
    state, store = run.state("controller"), run.store("controller")
    series = Series(state.redis, "r")
    state.set_config({"name": "r"}, "controller")
    state.set_document("schedules", {}, "a-person")
    assert state.config() and state.schedules() == {} and state.exists()
    state.transition("pausing", "a-person")
    assert state.idle_report().pause == 1
    state.transition("paused", "controller", epoch=1)
    before = state.record()
    assert before is not None
    state.set_record(before, before.changed(new_epoch=False, schema="s"), "controller", "record.set", {})
    state.table("autoscaler").set("rollout", {"replicas": 3})
    state.table("autoscaler").set("rollout", None)
    assert all(state.table(name).all() == {} for name in ("league", "ratings"))
    assert series.last("versions") is None and not list(series.read("games"))
    state.events.append("controller", "noted")
    assert [e.what for e in state.events.last(1)] == ["noted"] and state.events.read()
    assert store.head() == 1 and len(store.records()) == 2 and store.fetch_meta(1) == {} and store.pins() == {}
    store.pin(1, "an operation")
    store.unpin(1)  # which makes it temporary again
    assert state.services() == []
    for role in acl.ROLES:
        assert run.client("controller", role).info()["used_memory"] > 0


def learns(run: Servers) -> None:
    state, store = run.state("optimizer"), run.store("optimizer")
    lease = PublisherLease(state.redis, "r", "optimizer-0", 5.0)
    fencing_token = lease.acquire()
    for version in range(2, 7):  # keeps one, archives, and prunes temporary ones
        store.publish(version, {"w": np.full((9, 9), version, np.float32)}, {"x": 1}, fencing_token=fencing_token)
    lease.renew(fencing_token)
    assert store.head() == 6 and store.stored() == [6] and store.record(4).blob  # type: ignore[union-attr]
    store.archive(6)
    assert state.schedules() is None and state.table("orders").update(lambda rows: {"a": 1})
    index, ref = CheckpointIndex(state.redis, "r"), Ref("0" * 64, 3)
    assert index.signing_key(fencing_token) == index.signing_key(fencing_token)
    for version in (5, 6):
        index.commit(fencing_token, version, f"r/checkpoints/{version}", ref, {version - 1})
        index.preserve(fencing_token, f"r/kept/{version}", ref, {f"r/kept/{version - 1}"})
    assert list(index.all()) == [6] and index.preserved() == {"r/kept/6": ref}
    Series(state.redis, "r").append("versions", {"version": 6})
    state.events.append("optimizer-0", "optimizer.resumed")
    before, staged = state.record(), store.stage(7, {"w": np.ones((9, 9), np.float32)}, {})
    assert before is not None
    state.cut_over(fencing_token, staged, before, before.changed(new_epoch=True), Status.WARMING, "optimizer-0", {},
                   Status.RUNNING)
    assert store.head() == 7
    lease.release()


def serves(run: Servers) -> None:
    store = run.store("inference")
    assert store.head() == 1
    tensors, _ = store.fetch(1)
    assert (tensors["w"] == 1).all()
    assert store.wait_newer(0, 1) == 1  # subscribes to announcements
    with pytest.raises(VersionMissing, match="it has 1"):
        store.fetch(99)


def plays(run: Servers) -> None:
    state = run.state("rollout")
    assert state.count("rollout_starts") == 1
    assert state.schedules() is None
    Series(state.redis, "r").extend("games", [{"won": 1}])


def keeps_the_pool(run: Servers) -> None:
    state, store = run.state("opponents"), run.store("opponents")
    table = ReplicatedTable(state, "league", lambda rows, whole: None)
    assert table.update(lambda: {"version:0": [1]}, once="a-game", event=("opponents", "league.added", {}))
    assert not table.update(lambda: {"version:0": [2]}, once="a-game")
    table.refresh()
    assert store.records() and store.wait_newer(0, 1) == 1


def rates(run: Servers) -> None:
    state, store = run.state("evaluator"), run.store("evaluator")
    store.pin(0, "reference")
    assert state.table("ratings").update(lambda rows: {"state": {}}, once="one")
    state.table("ratings").set("rates", {})
    assert state.table("ratings").get("rates") == {}
    series = Series(state.redis, "r")
    series.append("ratings", {"mu": 25})
    assert series.last("ratings") is not None and store.head() == 1


def plays_with_people(run: Servers) -> None:
    state, store = run.state("play"), run.store("play")
    assert store.head() == 1 and list(store.newest_records()) and store.record(1) is not None
    state.table("ratings").get("rated:version-1")
    people = state.table("people")
    assert people.update(lambda rows: {"ada": {"mu": 25.0}}, once="game")
    assert not people.update(lambda rows: {"ada": {"mu": 26.0}}, once="game")


WORK: dict[str, Callable[[Servers], None]] = {
    "controller": controls, "optimizer": learns, "inference": serves, "rollout": plays, "opponents": keeps_the_pool,
    "evaluator": rates, "play": plays_with_people}


@pytest.mark.parametrize("kind", acl.SERVICES)
def test_component_works_under_its_own_user(run: Servers, kind: str) -> None:
    lives(run, kind)
    WORK[kind](run)
    assert run.refusals() == []


# Refusals.

V, P = KEYS.prefix, "params"
FORBIDDEN: list[tuple[str, str, tuple[Any, ...]]] = [
    ("rollout", "state", ("GET", KEYS.head)),
    ("rollout", "state", ("SET", KEYS.head, "9")),
    ("rollout", "state", ("HGETALL", KEYS.versions)),
    ("rollout", "state", ("XRANGE", KEYS.events, "-", "+")),
    ("rollout", "state", ("XADD", KEYS.events, "*", "who", "somebody")),
    ("rollout", "state", ("HSET", KEYS.documents, "schedules", "{}")),
    ("rollout", "state", ("SET", KEYS.lease("optimizer", "0"), "{}")),
    ("rollout", "state", ("XADD", KEYS.series("versions"), "*", "v", "{}")),
    ("rollout", "state", ("HGETALL", KEYS.table("league"))),
    ("play", "state", ("HGETALL", KEYS.table("league"))),
    ("play", "state", ("PUBLISH", KEYS.live_channel, "x")),
    ("rollout", "state", ("PUBLISH", KEYS.heads_channel, "9")),
    ("rollout", "state", ("SUBSCRIBE", KEYS.heads_channel)),
    ("rollout", "state", ("SCAN", "0")),
    ("evaluator", "state", ("SET", KEYS.lease("rollout", "0"), "{}")),
    ("evaluator", "state", ("PUBLISH", KEYS.heads_channel, "9")),
    ("rollout", "state", ("SUBSCRIBE", KEYS.live_channel)),
    ("evaluator", "state", ("HSET", KEYS.documents, "config", "{}")),
    ("opponents", "state", ("HSET", KEYS.table("ratings"), "x", "1")),
    ("opponents", "state", ("ZADD", KEYS.temporary, "1", "1")),
    ("inference", "state", ("HSET", KEYS.versions, "9", "{}")),
    ("inference", "state", ("XADD", KEYS.series("games"), "*", "v", "{}")),
    ("inference", "params", ("SET", KEYS.chunk(9, "d", 0), "x", "KEEPTTL", "GET")),
    ("controller", "params", ("FLUSHALL",)),
    ("optimizer", "state", ("HSET", KEYS.table("league"), "x", "1")),
    *((service, "state", ("GET", KEYS.checkpoint_key)) for service in acl.SERVICES if service != "optimizer"),
    *((service, "state", ("HSET", key, "1", "{}")) for key in (KEYS.checkpoints, KEYS.preserved)
      for service in acl.SERVICES if service != "optimizer"),
    ("optimizer", "state", ("XTRIM", KEYS.events_of("optimizer"), "MAXLEN", "0")),
    ("optimizer", "state", ("XRANGE", KEYS.events, "-", "+")),
    ("opponents", "state", ("XADD", KEYS.events_of("optimizer"), "*", "who", "optimizer")),
    ("evaluator", "state", ("XADD", KEYS.events_of("evaluator"), "*", "who", "operator")),
    ("optimizer", "state", ("XADD", KEYS.series("games"), "MAXLEN", "0", "*", "v", "{}")),
    ("evaluator", "state", ("XADD", KEYS.table_log("league"), "MAXLEN", "0", "*", "v", "{}")),
    ("optimizer", "params", ("CONFIG", "SET", "maxmemory", "1")),
    ("probe", "state", ("GET", KEYS.status)),
    # Publisher, pause, staged version and request hashes belong to their owners alone.
    ("rollout", "state", ("SET", KEYS.publisher, "{}")),
    ("rollout", "state", ("GET", KEYS.idempotency("x"))),
    ("rollout", "state", ("HGETALL", KEYS.table("operations"))),
    ("rollout", "state", ("SET", KEYS.quiet("optimizer", "0"), "{}")),
    ("rollout", "state", ("ZADD", KEYS.leases("optimizer"), "1", "0")),
    ("evaluator", "state", ("SET", KEYS.publisher, "{}")),
    ("evaluator", "state", ("HSET", KEYS.checkpoints, "9", "{}")),
    ("inference", "state", ("SET", KEYS.publisher, "{}")),
    ("inference", "state", ("HSET", KEYS.table("orders"), "x", "{}")),
    ("opponents", "state", ("SET", KEYS.staged, "{}")),
    ("optimizer", "state", ("SET", KEYS.anneal, "{}")),
    ("optimizer", "state", ("SET", KEYS.pause, "{}")),
    *((user, role, order) for role in acl.ROLES for user in acl.users(role) if user != acl.ADMIN for order in (
        ("KEYS", "*"), ("FLUSHALL",), ("CONFIG", "GET", "*"), ("ACL", "LIST"), ("SCRIPT", "FLUSH"), ("CLIENT", "LIST"),
        ("SHUTDOWN", "NOSAVE"), ("GET", "five:another:status"), ("SET", "five:another:head", "1"), ("MONITOR",))),
]
# Writes to keys that the user may read.
FORBIDDEN_WRITES: list[tuple[str, tuple[Any, ...]]] = [
    ("rollout", ("SET", KEYS.status, "{}")), ("rollout", ("DEL", KEYS.status)),
    ("rollout", ("SET", KEYS.record, "{}")), ("inference", ("SET", KEYS.record, "{}")),
    ("rollout", ("SET", KEYS.watched, "{}")),
    ("controller", ("SET", KEYS.publisher, "{}")), ("evaluator", ("SET", KEYS.anneal, "{}")),
    ("inference", ("SET", KEYS.head, "9")), ("evaluator", ("HSET", KEYS.versions, "9", "{}")),
    ("evaluator", ("SET", KEYS.head, "9")), ("opponents", ("HDEL", KEYS.versions, "0")),
    ("optimizer", ("HSET", KEYS.documents, "config", "{}")),
    ("controller", ("XTRIM", KEYS.series("games"), "MAXLEN", "0")),
    ("controller", ("SET", KEYS.lease("rollout", "0"), "{}")), ("controller", ("SET", KEYS.head, "9")),
    ("controller", ("HSET", KEYS.table("ratings"), "x", "1")),
]


def refused(client: redis.Redis, order: tuple[Any, ...]) -> None:
    try:
        answer = client.execute_command(*order)
    except redis.ResponseError as error:
        says = r"(?i)no permissions|NOPERM|Refused|user executing the script can't"
        assert re.search(says, str(error)), f"{order}: {error}"
    else:
        raise AssertionError(f"{order} was answered with {answer!r}")


def test_unneeded_commands_and_keys_are_refused(run: Servers) -> None:
    before = run.client(acl.ADMIN).dbsize(), run.client(acl.ADMIN).get(KEYS.head)
    for user, role, order in FORBIDDEN:
        refused(run.client(user, role), order)
    for user, order in FORBIDDEN_WRITES:
        refused(run.client(user), order)
    assert (run.client(acl.ADMIN).dbsize(), run.client(acl.ADMIN).get(KEYS.head)) == before


@pytest.mark.parametrize("user", acl.SERVICES)
def test_no_service_runs_lua_of_its_own(run: Servers, user: str) -> None:
    for command in (("EVAL", "return 1", 0), ("EVALSHA", "0" * 40, 0), ("EVAL_RO", "return 1", 0),
                    ("SCRIPT", "LOAD", "return 1"), ("FUNCTION", "FLUSH"), ("FUNCTION", "LIST")):
        refused(run.client(user), command)
    if user != acl.CONTROLLER:
        refused(run.client(user), ("FUNCTION", "LOAD", "REPLACE", functions.SOURCE))
        refused(run.client(user), ("FUNCTION", "DELETE", functions.LIBRARY))


@pytest.mark.parametrize("user", sorted(set(acl.SERVICES) - {acl.CONTROLLER}))
def test_only_the_controller_writes_the_event_log(run: Servers, user: str) -> None:
    before = run.state("controller").events.read()
    event = ("who", "operator", "what", "run.stopping", "details", "{}")
    refused(run.client(user), ("XADD", KEYS.events, "MAXLEN", "1", "*", *event))
    refused(run.client(user), ("DEL", KEYS.events))
    assert run.state("controller").events.read() == before != []


def test_login_needs_a_user_of_that_server(run: Servers) -> None:
    url = run.servers["state"].url
    with pytest.raises(redis.AuthenticationError):
        connect(url, CONFIG, retries=0).ping()
    with pytest.raises(StoreRefused, match="refuses user 'rollout' with the password") as caught:
        require_reachable(connect(url, CONFIG, "state", Login("rollout", "no-such-word")), url, "state")
    assert "no-such-word" not in str(caught.value) and "no-such-word" not in repr(Login("rollout", "no-such-word"))
    with pytest.raises(redis.AuthenticationError):
        connect(run.servers["params"].url, CONFIG, "params", Login("rollout", "rollout"), retries=0).ping()

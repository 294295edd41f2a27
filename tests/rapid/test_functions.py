"""Redis functions: loading, loss and coexistence of libraries, rights of the callers, and limits of each call."""

import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import redis

from rapid.config import StoreConfig
from rapid.embedded_redis import EmbeddedRedis
from rapid.store import acl, functions
from rapid.store.connection import Login, connect
from rapid.store.errors import FunctionsMissing
from rapid.store.fencing import FencingToken, fenced_write
from rapid.store.keys import Keys
from rapid.store.leases import Leases
from rapid.store.ordinals import Ordinals
from rapid.store.replicated_table import ReplicatedTable
from rapid.store.state import RunState
from tests.rapid.acl_servers import Servers

ROOT = Path(__file__).parents[2]
KEYS = Keys("r")
LIMITED = StoreConfig(timeout_seconds=0.3)


def loaded(client: Any) -> set[str]:
    return {library[1].decode() for library in client.function_list()}


@pytest.fixture
def run(servers: Servers) -> Iterator[Servers]:
    """A running run whose functions are loaded."""
    admin = servers.client(acl.ADMIN)
    admin.flushall()
    servers.state("controller").create({"name": "r"}, "controller")
    servers.state("controller").transition("running", "controller")
    functions.load(servers.client(acl.CONTROLLER))
    yield servers
    functions.load(servers.client(acl.CONTROLLER))


def service(run: Servers, user: str) -> RunState:
    """A service's state with a short timeout."""
    return RunState(connect(run.servers["state"].url, LIMITED, "state", Login(user, user)), "r", user)


# Loading.


def test_client_without_rules_loads_the_library(database: redis.Redis) -> None:
    admin: Any = database
    admin.function_flush()
    RunState(database, "r").lease("rollout", "0", 60).renew({"steps": 1})
    assert loaded(admin) == {functions.LIBRARY} and len(Leases(database, "r").live()) == 1
    functions.load(database)  # again


def test_missing_function_changes_nothing_and_names_the_reason(run: Servers) -> None:
    run.client(acl.ADMIN).function_flush()
    state, before = service(run, "rollout"), run.client(acl.ADMIN).dbsize()
    run.refusals()
    for _ in range(3):
        with pytest.raises(FunctionsMissing, match=r"lacks this release's functions \(five_[0-9a-f]{12}\); the contr"):
            state.lease("rollout", "0", 60).renew()
    assert run.client(acl.ADMIN).dbsize() == before
    opponents = service(run, "opponents")
    for table in (opponents.table("league"), ReplicatedTable(opponents, "league", lambda rows, whole: None)):
        with pytest.raises(FunctionsMissing):
            table.update(lambda *_: {"version:0": 1}, once="a", event=("opponents", "league.added", {}))
    with pytest.raises(FunctionsMissing):
        service(run, "optimizer").fenced_write(FencingToken("x", 1, None), [("SET", KEYS.head, "1:a")], "it")
    assert run.client(acl.ADMIN).dbsize() == before
    assert run.refusals() == []  # no attempt to load, which would be an entry of the server's ACL log


def test_service_goes_on_once_the_controller_loads(run: Servers) -> None:
    run.client(acl.ADMIN).function_flush()
    lease = run.state("rollout").lease("rollout", "0", 60)  # its timeout is 5 s
    thread = threading.Thread(target=lease.renew)
    thread.start()
    time.sleep(0.1)
    assert thread.is_alive()
    run.state("controller").lease("controller", "0", 60).renew()
    thread.join(30)
    assert [i.kind for i in run.state("controller").services()] == ["controller", "rollout"]


def test_startup_names_old_rules_and_an_old_server(run: Servers) -> None:
    admin: Any = run.client(acl.ADMIN)
    admin.execute_command("ACL", "SETUSER", "play", "-fcall")
    try:
        with pytest.raises(FunctionsMissing, match="has ACL rules of an earlier release: .*'fcall'"):
            functions.require(run.client("play"))
    finally:
        admin.execute_command("ACL", "SETUSER", "play", "+fcall")
    functions.require(run.client("play"))

    class Redis6(redis.Redis):
        """A server's answer to a command that it does not know."""

        def fcall(self, *arguments: Any) -> Any:
            return self.execute_command("FCALL6", *arguments)

    with pytest.raises(FunctionsMissing, match="must be version 7 or newer"):
        functions.require(Redis6.from_pool(run.client(acl.ADMIN).connection_pool))


def test_missing_functions_are_waited_for_with_growing_pauses(run: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """For as long as the client's timeout. A client without one does not wait."""
    run.client(acl.ADMIN).function_flush()
    now, pauses = [0.0], []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    url, login = run.servers["state"].url, Login("rollout", "rollout")
    client = connect(url, StoreConfig(timeout_seconds=5), "state", login)
    patient = redis.Redis.from_url(url, username="rollout", password="rollout", driver_info=None)
    assert client.ping() and patient.ping()  # connected with the true clock
    monkeypatch.setattr(functions.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(functions.time, "sleep", sleep)
    for one in (client, patient):
        with pytest.raises(FunctionsMissing):
            functions.call(one, "probe", [])
    assert pauses == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]) and now[0] < 5


def test_refused_load_is_tried_once(run: Servers) -> None:
    """Each attempt is an entry of the server's ACL log. A user that does not belong to the run may try."""
    admin: Any = run.client(acl.ADMIN)
    admin.execute_command("ACL", "SETUSER", "stranger", "on", ">x", "~*", "+fcall", "+ping", "resetchannels")
    try:
        admin.function_flush()
        client = connect(run.servers["state"].url, LIMITED, "state", Login("stranger", "x"))
        run.refusals()
        for _ in range(3):
            with pytest.raises(FunctionsMissing):
                functions.load(client)
        assert run.refusals() == [("stranger", "command", "function|load")]
    finally:
        admin.execute_command("ACL", "DELUSER", "stranger")


def test_other_errors_are_raised(database: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    database.set("text", "x")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        functions.call(database, "next_position", ["text"], "x")
    monkeypatch.setattr(functions, "SOURCE", "no library")
    with pytest.raises(redis.ResponseError, match="Missing library metadata"):
        functions.load(database)


def test_library_is_named_after_its_source() -> None:
    assert re.fullmatch("five_[0-9a-f]{12}", functions.LIBRARY)
    header, library, body = functions.SOURCE.split("\n", 2)
    assert header == f"#!lua name={functions.LIBRARY}" and functions.LIBRARY in library
    assert functions.LIBRARY == f"five_{sha256(body.encode()).hexdigest()[:12]}"


def test_two_releases_use_one_redis_and_old_libraries_are_deleted(database: redis.Redis) -> None:
    admin: Any = database
    admin.function_flush()
    others = [f"five_{i:012x}" for i in range(6)]
    for i, name in enumerate(others):
        admin.function_load(functions.SOURCE.replace(functions.LIBRARY, name))
        database.zadd(KEYS.libraries, {name: i})
    functions.load(database)
    assert {admin.fcall(f"{name}_probe", 0).decode() for name in (*others, functions.LIBRARY)} == loaded(admin)
    functions.delete_old_libraries(database, KEYS)
    kept = {*others[-3:], functions.LIBRARY}
    assert loaded(admin) == kept and {name.decode() for name in database.zrange(KEYS.libraries, 0, -1)} == kept
    functions.delete_old_libraries(database, KEYS)
    assert loaded(admin) == kept


def test_controller_may_delete_old_libraries(run: Servers) -> None:
    run.client(acl.ADMIN).zadd(KEYS.libraries, {f"five_{i}": i for i in range(9)})
    functions.delete_old_libraries(run.client("controller"), KEYS)
    assert run.client(acl.ADMIN).zcard(KEYS.libraries) == functions.KEPT_LIBRARIES


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_functions_survive_a_restart(servers: Servers, tmp_path: Path, end: str) -> None:
    server = replace(servers.servers["state"], folder=tmp_path / "kept", append_only=True)
    running = server.start()
    functions.load(connect(server.url, LIMITED, "state", Login("controller", "controller")))
    getattr(running, end)()
    with server.start():
        state = RunState(connect(server.url, LIMITED, "state", Login("rollout", "rollout")), "r")
        state.lease("rollout", "0", 9).renew()


def test_controller_loads_again_after_the_memory_is_lost(servers: Servers, tmp_path: Path) -> None:
    server: EmbeddedRedis = replace(servers.servers["state"], folder=tmp_path / "lost")

    def state(user: str) -> RunState:
        return RunState(connect(server.url, LIMITED, "state", Login(user, user)), "r", user)

    running = server.start()
    leases = [state(kind).lease(kind, "0", 60) for kind in ("controller", "rollout")]
    for lease in leases:
        lease.renew()
    running.kill()
    with server.start():
        with pytest.raises(FunctionsMissing):
            leases[1].renew()
        for lease in leases:
            lease.renew()


def test_functions_are_called_in_one_place_and_never_in_transactions() -> None:
    found = {}
    for path in [*(ROOT / "libs").rglob("*.py"), *(ROOT / "services").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        found[path.name] = re.findall(r"\.(?:fcall|eval|evalsha|register_script)\([^)]|functions\.call\(pipeline", text)
    assert {name for name, calls in found.items() if calls} == {"functions.py"}


# Rights: a function runs with those of its caller.


def refused(client: redis.Redis, function: str, keys: list[str], *arguments: str) -> None:
    with pytest.raises(redis.ResponseError, match="(?i)no permissions"):
        functions.call(client, function, keys, *arguments)


def test_function_cannot_touch_keys_that_its_caller_may_not(run: Servers) -> None:
    admin: Any = run.client(acl.ADMIN)
    admin.hset(KEYS.versions, "1", "{}")
    before = {name: admin.dump(name) for name in admin.keys("*")}
    record = json.dumps([["SET", KEYS.record, "{}"]])
    token = ("1", "", "x")
    for user in acl.SERVICES:
        client = run.client(user)
        if user != "optimizer":
            refused(client, "publish_version", [KEYS.versions, KEYS.head, KEYS.record, KEYS.publisher], "9", "d", "{}",
                    KEYS.heads_channel, "", "", "")
            refused(client, "record_blob", [KEYS.versions], "1", "d", "1")
            refused(client, "acquire_publisher", [KEYS.publisher, KEYS.record], "me", "[]", "5", "")
            refused(client, "release_publisher", [KEYS.publisher], "me")
            refused(client, "rendezvous", [KEYS.rendezvous("g")], "leave", "n", "t", "1", "1")
        if user not in ("optimizer", "controller"):
            refused(client, "fenced_write", [KEYS.record], *token, "[]", record, KEYS.record, KEYS.publisher, "9")
        if user != "controller":
            refused(client, "merge_events", [KEYS.events, KEYS.events_of("optimizer"), KEYS.events_removed], "x")
            refused(client, "note_overdue", [KEYS.pause, KEYS.events], "1", "who", "x")
        if user != "rollout":
            refused(client, "append_once", [KEYS.once_in("games"), KEYS.series("games")], "9", "9", "a", "{}")
            refused(client, "claim_ordinal", [KEYS.ordinals("rollout"), KEYS.leases("rollout")], "x")
            refused(client, "renew_lease", [KEYS.lease("rollout", "0"), KEYS.leases("rollout"),
                                            KEYS.quiet("rollout", "0"), KEYS.quiet_names("rollout")],
                    "0", "{}", "9", "", "9")
    after = {name: admin.dump(name) for name in admin.keys("*")}
    assert after == before


def test_keys_in_arguments_are_checked_too(run: Servers) -> None:
    """Redis checks every command of a function, whether its key is declared or not."""
    client, admin = run.client("rollout"), run.client(acl.ADMIN)
    own = [KEYS.lease("rollout", "0"), KEYS.leases("rollout"), KEYS.quiet("rollout", "0"), KEYS.quiet_names("rollout")]
    admin.set(KEYS.publisher, '{"holder": "optimizer"}')
    refused(client, "end_lease", own, "1", "0", KEYS.publisher, "0", "9")
    refused(client, "fenced_write", [], "1", "7", "x", "[]", "[]", KEYS.record, KEYS.publisher, "9")
    refused(client, "fenced_write", [], "1", "", "x", json.dumps([[KEYS.head, "1"]]), "[]", KEYS.record, "", "9")
    refused(client, "fenced_write", [], "1", "", "x", "[]", json.dumps([["PUBLISH", KEYS.heads_channel, "9"]]),
            KEYS.record, "", "9")
    client.set(own[0], "{}")
    client.zadd(own[1], {"1": 1})
    refused(client, "begin_pause", [own[0], own[0], own[0]], own[0], "{}", "{}", "{}", KEYS.status_channel, "x", "1",
            "1", KEYS.prefix, "9", "1", "optimizer")


# Limits: no call blocks the server for long, whatever a caller sends or has stored.


def limited(call: Any, match: str) -> None:
    with pytest.raises(redis.ResponseError, match=match):
        call()


def test_number_and_size_of_arguments_are_limited(database: redis.Redis) -> None:
    limited(lambda: functions.call(database, "claim_ordinal", ["a", "b"], "x", "y"), "more than 64 keys or 1 arguments")
    limited(lambda: functions.call(database, "claim_ordinal", ["a"] * 65, "x"), "more than 64 keys")
    limited(lambda: functions.call(database, "release_publisher", ["a"], "x" * (9 << 20)), "more than 8388608 bytes")
    limited(lambda: functions.call(database, "append_once", ["a", "b"], "9", "9", *(["x"] * 2002)), "or 2002 arguments")
    assert database.dbsize() == 0


def test_largest_call_and_document_are_accepted(database: redis.Redis) -> None:
    """Calls and documents at the limit are accepted; one key or byte more is refused."""
    def release(holder: str) -> Any:
        return functions.call(database, "release_publisher", ["a"], holder)

    assert functions.call(database, "next_position", ["a"] * 64, "x") == 1
    limited(lambda: functions.call(database, "next_position", ["a"] * 65, "x"), "more than 64 keys or 1 arguments")
    assert release("x" * ((8 << 20) - 1)) == 0  # and the byte of the key
    limited(lambda: release("x" * (8 << 20)), "more than 8388608 bytes")
    database.set("a", json.dumps({"holder": "x"}).ljust(1 << 20))
    assert release("y") == 0
    database.append("a", " ")
    limited(lambda: release("y"), "larger than 1048576 bytes")


@pytest.mark.parametrize("command", [
    ["FLUSHALL"], ["DEL", KEYS.status], ["SET", KEYS.status, "x", "PX", "1"], ["HSET", KEYS.documents, "a"],
    ["HSET", KEYS.documents, *("x" for _ in range(64))], ["SET", KEYS.status, ["x"]], ["ONCE", "a", "b"],
    ["ONCE", KEYS.status, "x", "DEL", KEYS.status], ["KEYS", "*"], [], "SET"])
def test_fenced_write_runs_only_writes_of_a_run(state: RunState, command: Any) -> None:
    client, keys = state.redis, [KEYS.status, KEYS.documents]
    before = {key: client.dump(key) for key in keys}
    for commands in ([command], [["HSET", KEYS.documents, "a", "1"], command]):
        with pytest.raises(redis.ResponseError):
            functions.call(client, "fenced_write", keys, "1", "", "x", "[]", json.dumps(commands), KEYS.record, "", "9")
    assert {key: client.dump(key) for key in keys} == before


def test_fenced_write_declares_its_keys_and_limits_its_commands(state: RunState) -> None:
    token = FencingToken("x", 1, None)
    fenced_write(state.redis, KEYS, token, [("HSET", KEYS.documents, "a", "1")] * 256, "it")
    limited(lambda: fenced_write(state.redis, KEYS, token, [("HSET", KEYS.documents, "a", "2")] * 257, "it"),
            "256 commands")
    limited(lambda: functions.call(state.redis, "fenced_write", [KEYS.status], "1", "", "x", "[]",
                                   json.dumps([["HSET", KEYS.documents, "a", "2"]]), KEYS.record, "", "9"),
            "key of HSET is not declared")
    assert state.document("a") == 1


def test_names_in_arguments_are_short(state: RunState) -> None:
    """A loop over many keys of megabytes would block the server for minutes."""
    fenced: list[str] = ["1", "", "x", json.dumps([["a", "b"]] * 9), "[]", KEYS.record, "", "9"]
    limited(lambda: functions.call(state.redis, "fenced_write", [], *fenced), "8 expected keys")
    for prefix, kinds in (("x" * 300, ["rollout"]), ("five:r:", ["x" * 300]), ("five:r:", ["k"] * 17)):
        limited(lambda p=prefix, k=kinds: functions.call(  # type: ignore[misc]
            state.redis, "begin_pause", [KEYS.status, KEYS.pause, KEYS.events], KEYS.record, "", "", "", "", "", "1",
            "1", p, "9", str(len(k)), *k, "who", "x"), "16 kinds and 256 bytes")


def test_large_stored_document_is_not_decoded(state: RunState) -> None:
    text = "[" + "1," * (1 << 20) + "1]"
    for key in (KEYS.rendezvous("g"), KEYS.publisher):
        state.redis.set(key, text)
    limited(lambda: functions.call(state.redis, "rendezvous", [KEYS.rendezvous("g")], "beat", "n", "t", "1", "1", "2"),
            "larger than 1048576 bytes")
    limited(lambda: functions.call(state.redis, "release_publisher", [KEYS.publisher], "me"), "larger than")


def test_ordinals_have_a_limited_number_of_names(database: redis.Redis) -> None:
    for key in (KEYS.ordinals("rollout"), KEYS.leases("rollout")):
        database.zadd(key, {f"name-{i}": i for i in range(25_000)})
    assert Ordinals(database, "r", "rollout").claim("mine") == (20_000, 20_001)


def test_pause_enrols_a_limited_number_of_instances(state: RunState) -> None:
    for names in (KEYS.leases("rollout"), KEYS.quiet_names("rollout")):
        state.redis.zadd(names, {f"name-{i}": 4e12 for i in range(25_000)})
    state.transition("pausing", "test")
    assert state.redis.zcard(KEYS.quiet_names("rollout")) == 20_000

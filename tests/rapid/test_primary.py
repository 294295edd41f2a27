"""A client renews its connections and retries a call that a server refuses because it is not the primary any more."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from redis.exceptions import ResponseError

from rapid.config import StoreConfig
from rapid.embedded_redis import EmbeddedRedis, RunningRedis
from rapid.store.bulk_transfer import get_values, set_values
from rapid.store.connection import connect
from rapid.store.primary import Connection, Primary, refusal
from tests.tcp_forwarder import TcpForwarder

CONFIG = StoreConfig(timeout_seconds=5)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRedis]:
    """Redis that a test demotes."""
    with EmbeddedRedis(tmp_path_factory.mktemp("demoted"), append_only=False).start() as running:
        yield running


@pytest.fixture
def admin(server: RunningRedis) -> Iterator[Any]:
    found = redis.Redis.from_url(server.url)
    yield found
    found.execute_command("REPLICAOF", "NO", "ONE")
    found.config_set("replica-serve-stale-data", "yes")
    found.flushall()
    found.close()


@pytest.fixture
def client(server: RunningRedis, admin: Any) -> Iterator[Any]:
    """Client that does not retry."""
    found = connect(server.url, CONFIG, retries=0)
    yield found
    found.close()


def demote(admin: Any, stale: str = "yes") -> None:
    """Make the server a replica of a port where nothing listens, without stale reads if ``stale`` is no."""
    admin.config_set("replica-serve-stale-data", stale)
    admin.execute_command("REPLICAOF", "127.0.0.1", "1")


def losses(client: Any) -> int:
    return int(client.connection_pool.connection_kwargs["primary"].losses)


def test_demoted_server_is_a_lost_connection(client: Any, admin: Any) -> None:
    client.set("x", 1)
    demote(admin)
    for count in (1, 2):
        with pytest.raises(redis.ConnectionError, match="the server is not the primary.*read only replica"):
            client.set("x", 2)
        assert losses(client) == count
    assert client.get("x") == b"1", "a replica answers reads"
    admin.execute_command("REPLICAOF", "NO", "ONE")
    assert client.set("x", 3) and losses(client) == 2


@pytest.mark.parametrize("reply", ["READONLY You can't write against a read only replica.",
                                   "MASTERDOWN Link with MASTER is down", "MOVED 3999 127.0.0.1:6381",
                                   "UNBLOCKED force unblock from blocking operation"])
def test_each_refusal_is_a_lost_connection(client: Any, reply: str) -> None:
    """The server sends this reply as its own."""
    with pytest.raises(redis.ConnectionError, match="the server is not the primary"):
        client.eval("return redis.error_reply(ARGV[1])", 0, reply)
    assert losses(client) == 1 and client.ping()


def test_replica_without_its_primary_refuses_reads(client: Any, admin: Any) -> None:
    client.set("x", 1)
    demote(admin, stale="no")
    with pytest.raises(redis.ConnectionError, match="the server is not the primary"):
        client.get("x")
    assert losses(client) == 1


def test_other_errors_keep_the_connection(client: Any) -> None:
    before = client.client_id()
    client.set("x", "text")
    for command in (("INCR", "x"), ("LPUSH", "x", "1"), ("NOSUCH",), ("SET", "x")):
        with pytest.raises(ResponseError):
            client.execute_command(*command)
    assert client.client_id() == before and losses(client) == 0


def test_refusal_renews_every_connection_of_the_client(client: Any, admin: Any) -> None:
    """The others may still be connected to the demoted server, where they would read old values."""
    pool = client.connection_pool
    held = [pool.get_connection() for _ in range(3)]
    before = {identity(connection) for connection in held}
    for connection in held[1:]:
        pool.release(connection)
    demote(admin)
    with pytest.raises(redis.ConnectionError):
        client.set("x", 1)
    assert held[0].is_connected and identity(held[0]) in before, "it is in use, and its response is on its way"
    pool.release(held[0])
    again = [pool.get_connection() for _ in range(3)]
    assert not before & {identity(connection) for connection in again}
    for connection in again:
        pool.release(connection)
    assert {client.client_id() for _ in range(3)} <= {identity(connection) for connection in again}


def identity(connection: Any) -> int:
    """Return the number by which the server knows a connection."""
    connection.send_command("CLIENT", "ID")
    return int(connection.read_response())


def test_subscription_moves_after_a_refusal(client: Any, admin: Any) -> None:
    subscription = client.pubsub(ignore_subscribe_messages=True)
    subscription.subscribe("news")
    subscription.get_message(timeout=1)
    (before,) = [row["id"] for row in admin.client_list("pubsub")]
    demote(admin)
    with pytest.raises(redis.ConnectionError):
        client.set("x", 1)
    subscription.get_message(timeout=0.01)
    assert before not in [row["id"] for row in admin.client_list("pubsub")]
    admin.publish("news", "x")
    found = subscription.get_message(timeout=1) or subscription.get_message(timeout=1)
    assert found is not None and found["data"] == b"x"
    subscription.close()


# The address.


def test_each_connection_goes_to_the_located_server(server: RunningRedis) -> None:
    forwarders = [TcpForwarder(server.url.removeprefix("unix://")) for _ in range(2)]
    addresses = [("127.0.0.1", forwarder.port) for forwarder in forwarders]
    located = iter([*addresses, addresses[0]])
    connection: Any = Connection(host="nowhere.invalid", port=1, primary=Primary(lambda: next(located)))
    for address in (*addresses, addresses[0]):
        connection.connect()
        connection.connect()  # it is connected
        assert (connection.host, connection.port) == address and identity(connection) > 0
        connection.disconnect()
    for forwarder in forwarders:
        forwarder.close()


def test_connection_without_a_locator_keeps_its_address(server: RunningRedis) -> None:
    forwarder = TcpForwarder(server.url.removeprefix("unix://"))
    connection: Any = Connection(host="127.0.0.1", port=forwarder.port, primary=Primary())
    connection.connect()
    assert identity(connection) > 0
    connection.disconnect()
    forwarder.close()


# Replies that are read past the connection.


def test_bulk_transfer_to_a_demoted_server_is_a_lost_connection(client: Any, admin: Any) -> None:
    before = client.client_id()
    demote(admin, stale="no")
    data = memoryview(bytearray(1))
    for count, transfer in enumerate((lambda: set_values(client, [("x", [data])], 1000),
                                      lambda: get_values(client, [("x", data)])), 1):
        with pytest.raises(redis.ConnectionError, match="the server is not the primary"):
            transfer()
        assert losses(client) == count
    admin.execute_command("REPLICAOF", "NO", "ONE")
    assert client.client_id() != before


def test_refusal_of_an_unparsed_reply_is_counted(client: Any, admin: Any) -> None:
    for line in ("READONLY You can't write", "MASTERDOWN Link", "MOVED 1 a:1", "UNBLOCKED forced"):
        before = losses(client)
        found = refusal(client, line)
        assert isinstance(found, redis.ConnectionError) and line in str(found) and losses(client) == before + 1
    for line in ("OOM command not allowed", "ERR READONLY", "readonly", ""):
        assert refusal(client, line) is None, line
    assert losses(client) == 4
    assert refusal(admin, "READONLY You can't write") is None, "that client does not follow a primary"

"""Connections to Redis: passwords from the environment, TLS with a private authority, and refusals."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from rapid.config import StoreConfig
from rapid.embedded_redis import EmbeddedRedis, RunningRedis
from rapid.store.connection import (
    FAILED,
    MAX_CONNECTIONS,
    Login,
    connect,
    password_of,
    require_no_eviction,
    require_reachable,
    user_of,
)
from rapid.store.errors import StoreRefused, StoreUnreachable
from tests.tcp_forwarder import TcpForwarder

CONFIG = StoreConfig(timeout_seconds=5)
SECRET = "sesame-opens"  # noqa: S105


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    """URL of a Redis on the network that requires a password."""
    server = EmbeddedRedis(tmp_path / "guarded", append_only=False)
    with server.start() as running:
        redis.Redis.from_url(running.url).config_set("requirepass", SECRET)
        forwarder = TcpForwarder(str(server.socket))
        yield f"redis://127.0.0.1:{forwarder.port}/0"
        forwarder.close()


def test_password_comes_from_the_environment_by_role(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIVE_STATE_PASSWORD", f" {SECRET}\n")
    monkeypatch.setenv("FIVE_PARAMS_PASSWORD", "another")
    assert password_of("state") == SECRET
    client = connect(guarded, CONFIG, "state")
    require_reachable(client, guarded, "state")
    assert client.ping()
    with pytest.raises(StoreRefused, match="refuses the password of FIVE_PARAMS_PASSWORD") as caught:
        require_reachable(connect(guarded, CONFIG, "params"), guarded, "params")
    assert "another" not in str(caught.value)
    monkeypatch.delenv("FIVE_PARAMS_PASSWORD")
    with pytest.raises(StoreRefused, match="FIVE_PARAMS_PASSWORD"):
        require_reachable(connect(guarded, CONFIG, "params"), guarded, "params")


def test_url_password_takes_precedence(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIVE_STATE_PASSWORD", "another")
    own = guarded.replace("redis://", f"redis://:{SECRET}@")
    assert connect(own, CONFIG).ping()


def test_user_needs_its_password(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = connect(guarded, CONFIG, "state", Login("default", SECRET))
    admin.execute_command("ACL", "SETUSER", "rollout", "on", ">of-the-rollouts", "+ping", "resetchannels")
    admin.execute_command("ACL", "SETUSER", "mute", "on", ">of-the-mute", "resetchannels")
    monkeypatch.setenv("FIVE_STATE_USER", "rollout")
    with pytest.raises(ValueError, match="FIVE_STATE_USER is 'rollout', but neither FIVE_STATE_PASSWORD nor"):
        connect(guarded, CONFIG, "state")
    monkeypatch.setenv("FIVE_STATE_PASSWORD", "of-the-rollouts")
    assert user_of("state") == "rollout" and connect(guarded, CONFIG, "state").ping()
    # No command that the ACL refuses: no library name, no maintenance notifications.
    assert admin.execute_command("ACL", "LOG") == []
    monkeypatch.setenv("FIVE_STATE_PASSWORD", "of-somebody")
    with pytest.raises(StoreRefused, match=r"user 'rollout' \(FIVE_STATE_USER\) with the password of "
                       "FIVE_STATE_PASSWORD") as caught:
        require_reachable(connect(guarded, CONFIG, "state"), guarded, "state")
    assert "of-somebody" not in str(caught.value)
    monkeypatch.setenv("FIVE_STATE_USER", "mute")
    monkeypatch.setenv("FIVE_STATE_PASSWORD", "of-the-mute")
    with pytest.raises(StoreRefused, match=r"accepts user 'mute' \(FIVE_STATE_USER\) .* without any rights"):
        require_reachable(connect(guarded, CONFIG, "state"), guarded, "state")


def test_password_file_is_read_by_each_connection(guarded: str, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    monkeypatch.setenv("FIVE_STATE_PASSWORD_FILE", str(file))
    assert password_of("state") == SECRET
    client = connect(guarded, CONFIG, "state")
    require_reachable(client, guarded, "state")
    admin = connect(guarded, CONFIG, "state", Login("default", SECRET))
    admin.execute_command("ACL", "SETUSER", "rollout", "on", ">first", "+ping", "+client|kill", "resetchannels")
    monkeypatch.setenv("FIVE_STATE_USER", "rollout")
    file.write_text("first")
    client = connect(guarded, CONFIG, "state")
    assert client.ping()
    # Rotation: the new password is accepted, the file is replaced, the old one is revoked and its clients are killed.
    admin.execute_command("ACL", "SETUSER", "rollout", ">second")
    file.write_text("second")
    admin.execute_command("ACL", "SETUSER", "rollout", "<first")
    admin.execute_command("CLIENT", "KILL", "USER", "rollout")
    assert client.ping()
    # A file that is replaced is missing or empty for a moment: connections retry.
    file.unlink()
    with pytest.raises(StoreUnreachable, match=r"password file .*No such file"):
        require_reachable(client, guarded, "state")
    file.write_text("wrong")
    with pytest.raises(StoreRefused, match=r"user 'rollout' \(FIVE_STATE_USER\) with the password of "
                       "FIVE_STATE_PASSWORD_FILE") as caught:
        require_reachable(client, guarded, "state")
    assert "wrong" not in str(caught.value).replace("WRONGPASS", "")


def test_password_file_yields_to_variable_and_url(guarded: str, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIVE_STATE_PASSWORD_FILE", str(tmp_path / "missing"))
    with pytest.raises(ValueError, match=r"password file .*missing: No such file"):
        password_of("state")
    assert connect(guarded.replace("redis://", f"redis://:{SECRET}@"), CONFIG).ping()
    monkeypatch.setenv("FIVE_STATE_PASSWORD", SECRET)
    assert password_of("state") == SECRET and connect(guarded, CONFIG).ping()
    monkeypatch.delenv("FIVE_STATE_PASSWORD")
    (tmp_path / "missing").write_text(" \n")
    with pytest.raises(ValueError, match="is empty"):
        password_of("state")


def test_embedded_redis_needs_no_password(redis_server: RunningRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIVE_STATE_PASSWORD", SECRET)
    assert connect(redis_server.url, CONFIG).ping()


def test_repeated_reachability_checks_leak_no_connections() -> None:
    """A service that waits for its Redis checks many times."""
    url = "unix:///nowhere/redis.sock"
    client = connect(url, CONFIG)
    for _ in range(300):
        with pytest.raises(StoreUnreachable, match="No such file"):
            require_reachable(client, url, "state")


def test_tls_is_verified_against_the_authority(redis_server: RunningRedis, certificates: Path) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    forwarder = TcpForwarder(redis_server.url.removeprefix("unix://"), tls)
    url = f"rediss://127.0.0.1:{forwarder.port}/0"
    trusted = CONFIG.model_copy(update={"tls_authority": str(certificates / "ca.pem")})
    client = connect(url, trusted)
    require_reachable(client, url, "state")
    client.set("x", b"1" * 100_000)
    assert client.get("x") == b"1" * 100_000
    with pytest.raises(StoreUnreachable, match=r"(?i)certificate"):
        require_reachable(connect(url, CONFIG), url, "state")
    client.close()
    forwarder.close()
    with pytest.raises(ValueError, match=r"store.tls_authority /nowhere/ca.pem cannot be read"):
        connect(url, CONFIG.model_copy(update={"tls_authority": "/nowhere/ca.pem"}))


def failed_tries() -> float:
    return sum(s.value for family in FAILED.collect() for s in family.samples if s.labels["role"] == "state")


def test_silent_server_costs_at_most_twice_the_timeout() -> None:
    """The timeout must not repeat for each retry: the optimizers' collectives wait for less."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as hole:
        client = connect(f"redis://127.0.0.1:{hole.getsockname()[1]}/0", CONFIG.model_copy(
            update={"timeout_seconds": 0.3}))
        before = failed_tries()
        with pytest.raises(redis.TimeoutError):
            client.get("x")
        assert 1 <= failed_tries() - before <= 2  # not eleven


def test_restarting_server_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eleven attempts with growing pauses of at most a second span the restart of a server."""
    pauses: list[float] = []
    monkeypatch.setattr("redis.retry.sleep", pauses.append)
    monkeypatch.setattr("redis.backoff.random.random", lambda: 1.0)  # the longest pauses
    before = failed_tries()
    with pytest.raises(redis.ConnectionError, match="No such file"):
        connect("unix:///nowhere/redis.sock", CONFIG).get("x")
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, *(1.0 for _ in range(6))])
    assert failed_tries() == before + 11


def test_first_failure_of_a_client_without_retries_is_final() -> None:
    before = failed_tries()
    with pytest.raises(redis.ConnectionError):
        connect("unix:///nowhere/redis.sock", CONFIG, retries=0).get("x")
    assert failed_tries() == before + 1


def test_reachability_is_checked_once() -> None:
    """Services repeat the check themselves."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        count = [0]

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection = listener.accept()[0]
                    count[0] += 1  # before the client learns of it
                    connection.close()

        threading.Thread(target=accept, daemon=True).start()
        url = f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
        with pytest.raises(StoreUnreachable, match="no state Redis responds"):
            require_reachable(connect(url, CONFIG), url, "state")
        assert count == [1]


@pytest.mark.parametrize("url", ["http://here", "here:6379", "redis://h:port", "redis://h?socket_timeout=x",
                                 "redis+sentinel://h", "redis://h?no_such_option=1"])
def test_invalid_url_is_named_without_its_password(url: str) -> None:
    secret = url.replace("://", f"://u:{SECRET}@")
    with pytest.raises(ValueError, match="is not a Redis URL") as caught:
        connect(secret, CONFIG)
    assert SECRET not in str(caught.value)


def test_user_of_the_url_is_described(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = guarded.replace("redis://", "redis://mallory:no-such-word@")
    for user in (None, "rollout"):  # the URL's takes precedence
        if user:
            monkeypatch.setenv("FIVE_STATE_USER", user)
            monkeypatch.setenv("FIVE_STATE_PASSWORD", "x")
        with pytest.raises(StoreRefused, match=r"refuses user 'mallory' \(the URL\) with the password of FIVE_S"):
            require_reachable(connect(own, CONFIG), own, "state")


def test_unix_socket_gets_a_password_with_a_user_alone(redis_server: RunningRedis, monkeypatch: pytest.MonkeyPatch
                                                       ) -> None:
    admin = connect(redis_server.url, CONFIG)
    admin.execute_command("ACL", "SETUSER", "rollout", "on", f">{SECRET}", "+acl|whoami", "resetchannels")
    try:
        monkeypatch.setenv("FIVE_STATE_PASSWORD", SECRET)
        assert connect(redis_server.url, CONFIG).acl_whoami() == "default"
        monkeypatch.setenv("FIVE_STATE_USER", "rollout")
        assert connect(redis_server.url, CONFIG).acl_whoami() == "rollout"
        assert connect(redis_server.url, CONFIG, "params").acl_whoami() == "default", "another role"
    finally:
        admin.execute_command("ACL", "DELUSER", "rollout")


def test_query_of_the_url_has_no_password(guarded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "password").write_text(SECRET)
    monkeypatch.setenv("FIVE_STATE_PASSWORD_FILE", str(tmp_path / "password"))
    assert connect(f"{guarded}?client_name=a@b", CONFIG).ping()


def test_idle_connections_are_kept_alive(guarded: str) -> None:
    connection: Any = connect(guarded, CONFIG, "state", Login("default", SECRET)).connection_pool.get_connection()
    assert connection._sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    connection.disconnect()


def test_unreachable_server_is_not_checked_for_eviction() -> None:
    url = "unix:///nowhere/redis.sock"
    with pytest.raises(StoreUnreachable, match="no params Redis responds at unix:///nowhere/redis.sock"):
        require_no_eviction(connect(url, CONFIG, retries=0), url, "params")


def test_threads_share_the_limited_connections(redis_server: RunningRedis) -> None:
    one = connect(redis_server.url, CONFIG, most=1)
    name = one.client_id()
    answers: list[object] = []

    def ask() -> None:
        for _ in range(20):
            answers.append(one.client_id())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [name] * 160
    assert connect(redis_server.url, CONFIG).connection_pool.max_connections >= 100
    assert one.connection_pool.timeout == 10.0, "as long as an exchange of another thread takes at most"
    assert MAX_CONNECTIONS == {"rollout": 1, "inference": 3}
    one.close()


def test_evicting_redis_is_refused(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path / "evicting", append_only=False)
    with server.start() as running:
        admin: redis.Redis = redis.Redis.from_url(running.url)
        client = connect(running.url, CONFIG)
        require_no_eviction(client, running.url, "state")
        for policy in ("allkeys-lru", "volatile-lru"):
            admin.config_set("maxmemory-policy", policy)
            with pytest.raises(StoreRefused, match=f"has maxmemory-policy {policy}.*set maxmemory-policy noeviction"):
                require_no_eviction(client, running.url, "state")
        # Without the right to read it, nothing is checked.
        admin.execute_command("ACL", "SETUSER", "mute", "on", ">x", "+ping")
        require_no_eviction(connect(running.url, CONFIG, "state", Login("mute", "x")), running.url, "state")

"""Discovery of the primary: URLs that name Sentinels, which Sentinel is asked, and what they refuse."""

import re
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from rapid.store.sentinel import (
    FILE_VARIABLE,
    PASSWORD_VARIABLE,
    USER_VARIABLE,
    Sentinels,
    SentinelsRefused,
    is_sentinel_url,
    parse_sentinel_url,
)
from tests.rapid.replicated_redis import Node
from tests.tcp_forwarder import TcpForwarder, free_port

PASSWORD, USER, USER_PASSWORD = "of-the-sentinel", "five", "of-the-user"
PRIMARY = ("127.0.0.1", 6379)
NOBODY = ("127.0.0.1", 1)  # nothing listens there


@pytest.fixture(scope="module")
def sentinel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Sentinel with passwords that watches PRIMARY under the name mine. It answers without reaching it."""
    node = Node(tmp_path_factory.mktemp("sentinels") / "sentinel", PASSWORD, (
        f"sentinel monitor mine {PRIMARY[0]} {PRIMARY[1]} 1", "sentinel down-after-milliseconds mine 600000",
        f"user {USER} on >{USER_PASSWORD} allchannels +@all"), sentinel=True)
    yield node
    node.close()


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (USER_VARIABLE, PASSWORD_VARIABLE, FILE_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def address(sentinel: Node, monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """Address of the Sentinel; this process's environment has its password."""
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    return "127.0.0.1", sentinel.port


class Closing:
    """Port that closes each connection at once. ``count`` is the number of connections so far."""

    def __init__(self) -> None:
        self.count = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = ("127.0.0.1", self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.count += 1
            connection.close()

    def close(self) -> None:
        self._listener.close()


# URLs.


@pytest.mark.parametrize(("url", "found"), [
    ("redis+sentinel://a/mine", True), ("rediss+sentinel://a/mine", True), ("redis://a", False), ("rediss://a", False),
    ("unix:///a", False), ("sentinel://a", False), ("redis+sentinel", True), ("", False)])
def test_url_names_sentinels_by_its_scheme(url: str, found: bool) -> None:
    assert is_sentinel_url(url) is found


@pytest.mark.parametrize(("url", "sentinels", "primary", "redis_url"), [
    ("redis+sentinel://a/mine", [("a", 26379)], "mine", "redis://primary/0"),
    ("redis+sentinel://a/mine/", [("a", 26379)], "mine", "redis://primary/0"),
    ("redis+sentinel://a/mine/0", [("a", 26379)], "mine", "redis://primary/0"),
    ("rediss+sentinel://a:1,b,[::1]:2/mine/15", [("a", 1), ("b", 26379), ("::1", 2)], "mine", "rediss://primary/15"),
    ("redis+sentinel://:p@a/my%2Fone/3?x=1&y=2", [("a", 26379)], "my/one", "redis://:p@primary/3?x=1&y=2"),
    ("redis+sentinel://u:p%40@x@a/mine", [("a", 26379)], "mine", "redis://u:p%40@x@primary/0")])
def test_url_has_sentinels_primary_and_redis(url: str, sentinels: list[tuple[str, int]], primary: str, redis_url: str
                                             ) -> None:
    found = parse_sentinel_url(url)
    assert (list(found.sentinels), found.primary, found.redis_url) == (sentinels, primary, redis_url)


@pytest.mark.parametrize(("url", "reason"), [
    ("redis+sentinel://a", "name of the primary is missing"), ("redis+sentinel://a/", "name of the primary is missing"),
    ("redis+sentinel://a//2", "name of the primary is missing"), ("redis+sentinel://a/mine/x", "database 'x' is not"),
    ("redis+sentinel://a/mine/-1", "database '-1' is not"), ("redis+sentinel://a/mine/1/2", "database '1/2' is not"),
    ("redis+sentinel://a:x/mine", "'a:x' is not HOST:PORT"), ("redis+sentinel:///mine", "'' is not HOST:PORT"),
    ("redis+sentinel://a,/mine", "'' is not HOST:PORT"), ("redis+sentinel://:1/mine", "':1' is not HOST:PORT")])
def test_invalid_url_names_its_invalid_part(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        parse_sentinel_url(url)


# Discovery.


def test_first_sentinel_that_knows_the_primary_answers(address: tuple[str, int]) -> None:
    silent = Closing()
    found = Sentinels([NOBODY, silent.address, address], "mine", 5.0)
    assert found.locate() == PRIMARY
    seen = silent.count
    assert seen > 0 and found.locate() == PRIMARY == found.locate()
    assert silent.count == seen, "the Sentinel that answered last is asked first"
    silent.close()


def test_all_sentinels_are_asked_after_the_last_one_fails(sentinel: Node, address: tuple[str, int], tmp_path: Path
                                                          ) -> None:
    """Also those before it in the list."""
    last = Node(tmp_path / "last", PASSWORD, (f"sentinel monitor mine {PRIMARY[0]} {PRIMARY[1]} 1",), sentinel=True)
    found = Sentinels([NOBODY, address, ("127.0.0.1", last.port)], "mine", 5.0)
    sentinel.admin.execute_command("SENTINEL", "REMOVE", "mine")
    try:
        assert found.locate() == PRIMARY
    finally:
        sentinel.admin.execute_command("SENTINEL", "MONITOR", "mine", *PRIMARY, 1)
    last.close()
    assert found.locate() == PRIMARY


def test_error_has_the_answer_of_each_sentinel_in_order(address: tuple[str, int]) -> None:
    unused = [("127.0.0.1", free_port()) for _ in range(2)]
    names = [f"{host}:{port}" for host, port in (unused[0], address, unused[1])]
    answers = f"{names[0]}: .*{names[1]}: no primary .*{names[2]}: "
    with pytest.raises(redis.ConnectionError, match=f"no Sentinel knows the primary 'yours': {answers}") as caught:
        Sentinels([unused[0], address, unused[1]], "yours", 5.0).locate()
    assert not isinstance(caught.value, redis.AuthenticationError)


def test_silent_sentinel_is_not_waited_for_longer_than_the_client(address: tuple[str, int]) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=8) as hole:
        found = Sentinels([hole.getsockname(), address], "mine", 0.5)
        assert found.locate() == PRIMARY


# Passwords.


def test_password_and_user_come_from_the_environment(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, f" {USER_PASSWORD}\n")
    with pytest.raises(SentinelsRefused):
        Sentinels([address], "mine", 5.0).locate()
    monkeypatch.setenv(USER_VARIABLE, f" {USER} ")
    assert Sentinels([address], "mine", 5.0).locate() == PRIMARY


def test_password_file_yields_to_the_variable(address: tuple[str, int], tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    monkeypatch.setenv(FILE_VARIABLE, f" {file}\n")
    assert Sentinels([address], "mine", 5.0).locate() == PRIMARY, "the missing file is not read"
    monkeypatch.delenv(PASSWORD_VARIABLE)
    file.write_text(f"{PASSWORD}\n")
    assert Sentinels([address], "mine", 5.0).locate() == PRIMARY
    file.write_text(USER_PASSWORD)
    with pytest.raises(SentinelsRefused):
        Sentinels([address], "mine", 5.0).locate()
    monkeypatch.setenv(USER_VARIABLE, USER)
    assert Sentinels([address], "mine", 5.0).locate() == PRIMARY


def test_refusal_by_every_sentinel_is_final(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """With another one that is unreachable, waiting may help."""
    monkeypatch.setenv(PASSWORD_VARIABLE, "wrong")
    with pytest.raises(SentinelsRefused, match=PASSWORD_VARIABLE) as caught:
        Sentinels([address, address], "mine", 5.0).locate()
    assert "wrong" not in str(caught.value).replace("WRONGPASS", "")
    with pytest.raises(redis.ConnectionError) as other:
        Sentinels([address, NOBODY], "mine", 5.0).locate()
    assert not isinstance(other.value, SentinelsRefused)
    monkeypatch.delenv(PASSWORD_VARIABLE)
    with pytest.raises(SentinelsRefused):
        Sentinels([address], "mine", 5.0).locate()


def test_tls_is_verified_against_the_authority(sentinel: Node, address: tuple[str, int], certificates: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    forwarder = TcpForwarder(sentinel.port, context)
    there: list[Any] = [("127.0.0.1", forwarder.port)]
    authority = str(certificates / "ca.pem")
    assert Sentinels(there, "mine", 5.0, authority, tls=True).locate() == PRIMARY
    with pytest.raises(redis.ConnectionError, match="(?i)certificate"):
        Sentinels(there, "mine", 5.0, tls=True).locate()
    assert Sentinels([address], "mine", 5.0, authority).locate() == PRIMARY, "without TLS the authority is not used"
    forwarder.close()

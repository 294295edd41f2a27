"""Passwords in files are read for each connection and hidden from the logs."""

from pathlib import Path

import pytest
import redis

from rapid.store.password_file import FileLogin, read_password
from rapid.telemetry import logs


def test_each_connection_gets_the_password_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(" first\n")
    login = FileLogin("rollout", file)
    assert login.get_credentials() == ("rollout", "first")
    file.write_text("second")
    assert login.get_credentials() == ("rollout", "second")
    assert FileLogin(None, file).get_credentials() == ("second",), "the default user"
    assert "second" not in repr(login)


def test_unusable_file_is_an_error_that_clients_retry(tmp_path: Path) -> None:
    for text, message in ((None, "No such file"), (b"\n", "is empty"), (b"ab\xff", "password is not UTF-8 at byte 2")):
        file = tmp_path / "password"
        if text is not None:
            file.write_bytes(text)
        with pytest.raises(ValueError, match=message):
            read_password(file)
        with pytest.raises(redis.ConnectionError, match=message):
            FileLogin("rollout", file).get_credentials()


def test_rotated_password_is_hidden_from_the_logs(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("rotated-secret-of-rollout")
    FileLogin("rollout", tmp_path / "password").get_credentials()
    assert logs._Formatter({}).clean("got rotated-secret-of-rollout") == "got ***"

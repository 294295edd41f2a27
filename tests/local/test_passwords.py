"""Passwords of a local run's Redis: created once, private, and both accepted during a change."""

from pathlib import Path

import pytest

from five.local.passwords import Passwords
from five.local.run_folder import RunFolder, RunUnavailable
from five.run.config import RunConfig
from rapid.store import acl
from rapid.store.connection import connect


@pytest.fixture
def passwords(tmp_path: Path) -> Passwords:
    passwords = Passwords(tmp_path)
    passwords.create()
    return passwords


def test_every_user_has_a_lasting_password(passwords: Passwords, tmp_path: Path) -> None:
    found = {user: passwords.login(user).password for role in acl.ROLES for user in acl.users(role)}
    assert len(set(found.values())) == len(found) and min(map(len, found.values())) >= 40
    passwords.create()
    assert all(passwords.login(user).password == password for user, password in found.items())
    assert (tmp_path / "passwords.json").stat().st_mode & 0o077 == 0
    with pytest.raises(LookupError, match="no password of user 'dota_env'"):
        passwords.login("dota_env")


def test_damaged_passwords_are_replaced(passwords: Passwords, tmp_path: Path) -> None:
    (tmp_path / "passwords.json").write_text("")  # the machine lost power
    with pytest.raises(LookupError, match="`five train --resume` creates it"):
        passwords.login("rollout")
    passwords.create()
    assert passwords.login("rollout").password


def test_process_gets_only_its_own_password(passwords: Passwords) -> None:
    assert passwords.environment("dota_env", acl.ROLES) == {}
    rollout = passwords.environment("rollout", acl.ROLES)
    assert rollout == {"FIVE_STATE_USER": "rollout", "FIVE_STATE_PASSWORD": passwords.login("rollout").password}
    assert passwords.environment("optimizer", ("params",)).keys() == {"FIVE_PARAMS_USER", "FIVE_PARAMS_PASSWORD"}
    # A Redis that is not the run's own has users of its own.
    assert passwords.environment("optimizer", ()) == {}


def test_both_passwords_are_accepted_during_a_change(passwords: Passwords, tmp_path: Path) -> None:
    old = passwords.login("rollout").password
    new = passwords.add("rollout")
    assert passwords.of("rollout") == [new, old] and passwords.login("rollout").password == new
    text = passwords.write_users("state", "r").read_text()
    assert acl.hash_password(old) in text and acl.hash_password(new) in text
    assert old not in text and (tmp_path / "redis" / "state.acl").stat().st_mode & 0o077 == 0
    assert passwords.retire("rollout") == [old] and passwords.of("rollout") == [new]


def test_only_the_embedded_redis_uses_the_runs_users(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "r")
    url = folder.embedded("state").url
    with pytest.raises(RunUnavailable, match="no password of user 'admin'"):
        folder.login("admin", url)
    passwords = Passwords(folder.path)
    passwords.create()
    users = passwords.write_users("state", "r")
    with folder.embedded("state", users, passwords.login(acl.PROBE)).start() as server:
        assert server.url == url
        assert connect(url, RunConfig().store, "state", folder.login("admin", url)).dbsize() == 0
    assert folder.login("admin", "redis://elsewhere:6379/0") is None

"""`five client` checks an installation and says what does not work."""

from pathlib import Path

import pytest

from five.cli.main import main
from five.real_client.client_process import ClientOptions
from tests.real_client.conftest import client_options, fake  # noqa: F401
from tests.real_client.fake_faults import FakeInstallation, FakeSettings
from tests.real_client.test_check import FIVE

Captured = pytest.CaptureFixture[str]


def client(fake: FakeInstallation, options: ClientOptions, *more: str) -> int:  # noqa: F811
    return main(["client", "--dota", str(fake.game), "--seconds", "3", "--ports", *map(str, options.ports), *more])


def test_a_sound_client_passes(fake: FakeInstallation, client_options: ClientOptions, capsys: Captured,  # noqa: F811
                               tmp_path: Path) -> None:
    fake.write(FakeSettings(game=FIVE))
    assert client(fake, client_options, "--files", str(tmp_path / "files")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"client 6941 of Oct 01 2026 in {fake.game.resolve()}"
    assert lines[-1].endswith("a policy can play") and "world states in" in lines[-1]
    assert "FIVE" in (tmp_path / "files/bots/console.log").read_text()
    assert client(fake, client_options, "--files", str(tmp_path / "files")) == 2
    assert "exists, perhaps of an earlier session: give a new folder" in capsys.readouterr().err


def test_problems_are_printed(fake: FakeInstallation, client_options: ClientOptions, capsys: Captured) -> None:  # noqa: F811
    fake.write(FakeSettings(game=FIVE, cut=[2]))
    assert client(fake, client_options) == 1
    printed = capsys.readouterr()
    assert "five client: 2 world states were cut" in printed.err and printed.out.endswith("problems above\n")


def test_a_folder_without_a_client_is_refused(tmp_path: Path, capsys: Captured) -> None:
    assert main(["client", "--dota", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"five client: {tmp_path} has no Dota 2: give the folder")

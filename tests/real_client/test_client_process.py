"""The client is started with the options of a dedicated server and ends with its children."""

import os
import socket
import time
from pathlib import Path

import pytest

from five.real_client.client_process import ClientOptions, ClientProcess, command
from five.real_client.errors import ClientUnavailable
from five.real_client.installation import Installation, find_installation
from tests.real_client.test_installation import install
from tests.waiting import eventually


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    game = install(tmp_path)
    program = game / "bin/linuxsteamrt64/dota2"
    program.write_text(f"#!/bin/sh\nenv > '{tmp_path}/env'\npwd > '{tmp_path}/pwd'\nsleep 600 &\n"
                       f"echo $! > '{tmp_path}/child'\nwait\n")
    return find_installation(tmp_path, "linux")


def test_the_options_are_those_of_a_dedicated_server(installation: Installation) -> None:
    words = command(installation, ClientOptions(game_mode=21, ticks=8, timescale=2.5, ports=(1, 2)), Path("/log"))
    assert words[0] == str(installation.executable) and {"-dedicated", "-nowatchdog", "-fill_with_bots"} <= set(words)
    for option, value in {"-botworldstatetosocket_frames": "8", "-botworldstatetosocket_radiant": "1", "gamemode": "21",
                          "-botworldstatetosocket_dire": "2", "-con_logfile": "/log", "+host_timescale": "2.5"}.items():
        assert words[words.index(option) + 1] == value
    assert ClientOptions(ticks=8).period == pytest.approx(8 / 30)


def test_a_client_ends_with_its_children(installation: Installation, client_options: ClientOptions,
                                         tmp_path: Path) -> None:
    process = ClientProcess(installation, client_options, tmp_path / "log")
    child = int(eventually(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text()))
    assert process.exit_status() is None
    assert (tmp_path / "pwd").read_text().strip() == str(installation.game)
    assert "ENABLE_PATHMATCH=1" in (tmp_path / "env").read_text()
    began = time.monotonic()
    process.stop()
    assert process.exit_status() is not None and time.monotonic() - began < 15
    eventually(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2])
    process.stop()  # again changes nothing


def test_a_used_port_is_named(installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("five.real_client.client_process._PORT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ClientUnavailable, match=f"port {port} is used, perhaps by another client"):
            ClientProcess(installation, ClientOptions(ports=(port, port + 1)), tmp_path / "log")
    assert not (tmp_path / "child").exists()


def test_a_program_that_does_not_run_ends_at_once(installation: Installation, client_options: ClientOptions,
                                                  tmp_path: Path) -> None:
    os.truncate(installation.executable, 0)
    installation.executable.write_bytes(b"\x7fELF no program")
    process = ClientProcess(installation, client_options, tmp_path / "log")
    assert eventually(process.exit_status) not in (None, 0)
    process.stop()

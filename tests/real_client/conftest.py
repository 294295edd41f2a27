"""Fixtures: an installation whose program is the fake client, and free ports."""

import socket
import sys
from pathlib import Path

import pytest

from five.real_client.client_process import ClientOptions
from tests.real_client.fake_faults import FakeInstallation
from tests.real_client.test_installation import install
from tests.repository import ROOT


@pytest.fixture
def fake(tmp_path: Path) -> FakeInstallation:
    game = install(tmp_path / "steam")
    program = game / "bin/linuxsteamrt64/dota2"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}/libs:{ROOT}" OMP_NUM_THREADS=1 exec "{sys.executable}" '
                       f'-m tests.real_client.fake_client "$@" 2> "{game}/errors.txt"\n')
    return FakeInstallation(game)


@pytest.fixture
def client_options() -> ClientOptions:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        ports = first.getsockname()[1], second.getsockname()[1]
    return ClientOptions(ticks=4, ports=ports)

"""An installation of Dota 2 whose program is the fake client."""

import sys
from pathlib import Path

from five.local.cluster import free_ports
from five.real_client.client_process import ClientOptions
from tests.real_client.fake_faults import FakeInstallation
from tests.real_client.test_installation import install
from tests.repository import ROOT


def install_fake(steam: Path) -> FakeInstallation:
    """Write an installation below ``steam``. Its client's errors go to errors.txt in the game's folder."""
    game = install(steam)
    program = game / "bin/linuxsteamrt64/dota2"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}/libs:{ROOT}" OMP_NUM_THREADS=1 exec "{sys.executable}" '
                       f'-m tests.real_client.fake_client "$@" 2> "{game}/errors.txt"\n')
    return FakeInstallation(game)


def free_ports_options() -> ClientOptions:
    """Return options with two free ports."""
    first, second = free_ports(2)
    return ClientOptions(ticks=4, ports=(first, second))

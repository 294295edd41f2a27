"""Fixtures: an installation whose program is the fake client, and free ports."""

from pathlib import Path

import pytest

from five.real_client.client_process import ClientOptions
from tests.real_client.fake_faults import FakeInstallation
from tests.real_client.fake_installation import free_ports_options, install_fake


@pytest.fixture
def fake(tmp_path: Path) -> FakeInstallation:
    return install_fake(tmp_path / "steam")


@pytest.fixture
def client_options() -> ClientOptions:
    return free_ports_options()

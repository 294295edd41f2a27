"""Fixtures that the platform's tests define as well, and a name service."""

import socket

import pytest

from tests.clients.name_service import Names
from tests.rapid.conftest import root_logger, rpc_config, start_server

__all__ = ["names", "root_logger", "rpc_config", "start_server"]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    names = Names()
    monkeypatch.setattr(socket, "getaddrinfo", names.look_up)
    return names

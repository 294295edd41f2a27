"""Fixtures that the platform's tests define as well."""

from tests.rapid.conftest import root_logger, rpc_config, start_server

__all__ = ["root_logger", "rpc_config", "start_server"]

"""Redis fixture, shared with the services' tests."""

from tests.services.conftest import redis_client

__all__ = ["redis_client"]

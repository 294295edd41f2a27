"""Redis fixtures, shared with the services' tests."""

from tests.services.conftest import redis_client, redis_url

__all__ = ["redis_client", "redis_url"]

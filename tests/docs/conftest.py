"""A Redis of the tests' own, as the services' tests have it."""

from tests.services.conftest import redis_client, redis_url

__all__ = ["redis_client", "redis_url"]

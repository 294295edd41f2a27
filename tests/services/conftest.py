"""A real Redis for the services' tests, emptied for each."""

import pytest
import redis


@pytest.fixture
def redis_client(redis_url: str) -> redis.Redis:
    client: redis.Redis = redis.Redis.from_url(redis_url)
    client.flushall()
    return client

"""Fixture: a run that plays."""

import pytest
import redis

from rapid.store.state import RunState, Status
from tests.services.controller.anneal.stored_anneals import RECORD


@pytest.fixture
def state(redis_client: redis.Redis) -> RunState:
    state = RunState(redis_client, "trial")
    state.create({"name": "trial"}, "test", RECORD)
    state.transition(Status.RUNNING, "test")
    return state

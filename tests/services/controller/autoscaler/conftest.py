"""Fixtures: a server that answers as the Kubernetes API does for two workloads, its client, and a run that plays."""

from collections.abc import Iterator

import pytest
import redis

from five.services.controller.autoscaler.kubernetes_api import KubernetesApi
from rapid.store.state import RunState, Status
from tests.services.controller.autoscaler.kubernetes_server import ApiServer, connected, serving


@pytest.fixture
def server() -> ApiServer:
    return ApiServer({"five-rollout": 4, "five-inference": 2})


@pytest.fixture
def api(server: ApiServer) -> Iterator[KubernetesApi]:
    with serving(server) as port:
        yield connected(port)


@pytest.fixture
def state(redis_client: redis.Redis) -> RunState:
    state = RunState(redis_client, "trial")
    state.create({"name": "trial"}, "test")
    state.transition(Status.RUNNING, "test")
    return state

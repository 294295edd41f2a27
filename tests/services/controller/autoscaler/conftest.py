"""Fixtures: a server that answers as the Kubernetes API does for two workloads, and its client."""

from collections.abc import Iterator

import pytest

from five.services.controller.autoscaler.kubernetes_api import KubernetesApi
from tests.services.controller.autoscaler.kubernetes_server import ApiServer, connected, serving


@pytest.fixture
def server() -> ApiServer:
    return ApiServer({"five-rollout": 4, "five-inference": 2})


@pytest.fixture
def api(server: ApiServer) -> Iterator[KubernetesApi]:
    with serving(server) as port:
        yield connected(port)

"""The controller's application in the test's process, with real Redis and blobs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from fastapi.testclient import TestClient

from five.run.config.controller import LimitsConfig
from five.services.controller.http.app import create_app
from five.services.controller.http.dependencies import Context
from rapid.blobs import BlobStore
from tests.services.live_controller import OPERATOR, RUN, bearer, context_at


@pytest.fixture
def context(redis_client: redis.Redis, redis_url: str, tmp_path: Path) -> Context:
    """Return the context of a run that exists and has no record, version or blob."""
    found = context_at(redis_url, LimitsConfig())
    found.blobs = BlobStore(str(tmp_path / "blobs"))
    found.state.create({"name": RUN}, "test")
    return found


@dataclass
class Api:
    """Client of the application."""

    context: Context
    client: TestClient

    def ask(self, method: str, path: str, token: str = OPERATOR, **arguments: Any) -> httpx.Response:
        headers = {**bearer(token), **arguments.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **arguments)


@pytest.fixture(scope="module")
def application(redis_url: str) -> Iterator[Api]:
    """Return the application of a module: its first request takes a tenth of a second."""
    context = context_at(redis_url, LimitsConfig())
    with TestClient(create_app(context)) as client:
        yield Api(context, client)


@pytest.fixture
def api(application: Api, context: Context) -> Api:
    """Return the application with the stores of ``context``."""
    application.context.blobs, application.context.store = context.blobs, context.store
    return application

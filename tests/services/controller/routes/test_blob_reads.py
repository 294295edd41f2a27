"""Threads in which routes read the blob store."""

import threading
from typing import Any

import numpy as np
import pytest

from five.services.controller.operations.store import OperationStore
from rapid.blobs import Ref
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.fencing import FencingToken
from rapid.store.record import RunRecord
from rapid.store.state import Status
from tests.services.controller.routes.conftest import Api
from tests.services.live_controller import RUN


@pytest.fixture
def run(api: Api) -> Api:
    """Return the API of a running run with a recording, a checkpoint of version 0, and version 1."""
    state, blobs = api.context.state, api.context.blobs
    state.redis.flushall()
    state.create({"name": RUN}, "test", RunRecord(schema="s" * 16))
    for version in range(2):
        api.context.store.publish(version, {"w": np.zeros(3, np.float32)}, {})
    CheckpointIndex(state.redis, RUN).commit(FencingToken("optimizer", 1, None), 0, "name", Ref("b" * 64, 1))
    state.transition(Status.RUNNING, "test")
    assert blobs is not None
    blobs.put(b"recording", f"{RUN}/replays/version-1.view")
    return api


@pytest.mark.parametrize(("method", "path", "status"), [
    ("GET", "/v1/replays", 200), ("GET", "/v1/replays/version-1", 200), ("GET", "/v1/draft/tables", 200),
    ("GET", "/v1/revert/targets", 200), ("GET", "/v1/revert/0", 200), ("POST", "/v1/revert", 202),
    ("GET", "/v1/versions/0", 200)])
def test_blobs_are_read_in_threads_for_them(run: Api, monkeypatch: pytest.MonkeyPatch, method: str, path: str,
                                            status: int) -> None:
    """A bucket that is away occupies a thread for a minute: background loops, logins and other routes need theirs."""
    readers: list[str] = []

    def note(owner: Any, name: str) -> None:
        read = getattr(owner, name)

        def noted(*arguments: Any) -> Any:
            readers.append(threading.current_thread().name)
            return read(*arguments)

        monkeypatch.setattr(owner, name, noted)

    note(run.context.blobs, "ref")
    note(run.context.blobs, "refs")
    note(run.context.store, "fetch_meta")
    answer = run.ask(method, path, json={"to": 0} if method == "POST" else None)
    assert answer.status_code == status, answer.text
    assert readers and all(name.startswith("blob-reader") for name in readers)
    assert len(OperationStore(run.context.state).all()) == (method == "POST")

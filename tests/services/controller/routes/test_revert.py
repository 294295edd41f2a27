"""Reverts over REST: refusals, the stored operation, and the branches that earlier reverts have left."""

from typing import Any

import numpy as np
import pytest

from five.services.controller.operations.document import OperationKind
from five.services.controller.operations.store import OperationStore
from rapid.blobs import Ref
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.fencing import FencingToken
from rapid.store.lineage import LineageSegment
from rapid.store.record import RunRecord
from rapid.store.state import Status
from tests.services.controller.routes.conftest import Api
from tests.services.live_controller import RUN, VIEWER, problem


@pytest.fixture
def run(api: Api) -> Api:
    """Return the API of a running run with checkpoints of the versions 1 and 3, the newest being 4."""
    state = api.context.state
    state.redis.flushall()
    state.create({"name": RUN}, "test", RunRecord(schema="s" * 16))
    for version in range(5):
        api.context.store.publish(version, {"w": np.zeros(3, np.float32)}, {})
    for version in (1, 3):
        CheckpointIndex(state.redis, RUN).commit(FencingToken("optimizer", 1, None), version, "name", Ref("b" * 64, 1))
    state.transition(Status.RUNNING, "test")
    return api


def test_run_without_a_version_cannot_revert(api: Api) -> None:
    assert "no version yet" in problem(api.ask("GET", "/v1/revert/0"), 409, "conflict")["detail"]
    problem(api.ask("GET", "/v1/revert/-1"), 422, "invalid")
    problem(api.ask("GET", f"/v1/revert/{2**53}"), 422, "invalid")
    problem(api.ask("GET", f"/v1/revert/{2**53 - 1}"), 409, "conflict")


def test_revert_stores_its_request(run: Api) -> None:
    body = {"to": 1, "warm_up_versions": 5, "epoch": 1, "reason": "worse"}
    dry = run.ask("POST", "/v1/revert?dry_run=true", json=body)
    assert (dry.status_code, dry.json()["id"]) == (200, "dry-run") and OperationStore(run.context.state).all() == []
    answer = run.ask("POST", "/v1/revert", json=body)
    assert answer.status_code == 202, answer.text
    (operation,) = OperationStore(run.context.state).all()
    assert answer.headers["location"] == f"/v1/operations/{operation.id}"
    assert (operation.kind, operation.who, operation.reason, operation.was) == (
        OperationKind.REVERT, "ada", "worse", "running")
    request = operation.request
    assert (request.name, request.parent, request.epoch, request.to_version, request.warm_up_versions) == (
        "to version 1", "s" * 16, 1, 1, 5)
    for query in ("", "?dry_run=true"):
        busy = problem(run.ask("POST", f"/v1/revert{query}", json=body), 409, "operation-in-progress")
        assert busy["operation"] == operation.id


@pytest.mark.parametrize(("body", "kind", "says"), [
    ({"to": 4}, "conflict", "must be below the newest version, 4"), ({"to": 2}, "conflict", "neither as a checkpoint"),
    ({"to": 1, "epoch": 2}, "stale-epoch", "the run is in epoch 1")])
def test_refused_revert_stores_nothing(run: Api, body: dict[str, Any], kind: str, says: str) -> None:
    for query in ("", "?dry_run=true"):
        assert says in problem(run.ask("POST", f"/v1/revert{query}", json=body), 409, kind)["detail"]
    assert OperationStore(run.context.state).all() == []


@pytest.mark.parametrize(("status", "was"), [
    (Status.PAUSING, "paused"), (Status.PAUSED, "paused"), (Status.STOPPING, None)])
def test_revert_needs_a_running_or_paused_run(run: Api, status: Status, was: str | None) -> None:
    if status is Status.PAUSED:
        run.context.state.transition(Status.PAUSING, "test")
    run.context.state.transition(status, "test")
    answer = run.ask("POST", "/v1/revert", json={"to": 1})
    if was is None:
        assert f"the run is {status.value}" in problem(answer, 409, "illegal-transition")["detail"]
    else:
        assert answer.status_code == 202 and answer.json()["was"] == was


def test_run_without_a_status_cannot_revert(run: Api) -> None:
    run.context.state.redis.delete(run.context.state.keys.status)
    problem(run.ask("POST", "/v1/revert", json={"to": 1}), 404, "not-found")


def test_targets_are_the_stored_versions_below_the_newest(run: Api) -> None:
    found = run.ask("GET", "/v1/revert/targets", VIEWER, params={"limit": 1}).json()
    assert (found["items"], found["total"], found["next"]) == (
        [{"version": 3, "complete": True, "epoch": 1, "line": True}], 2, 1)


def test_branches_are_listed_newest_first(run: Api) -> None:
    keys, record = run.context.state.keys, RunRecord()
    assert run.ask("GET", "/v1/branches", VIEWER).json()["items"] == []
    run.context.state.redis.hset(keys.lineage, mapping={str(first): LineageSegment(
        first, parent, record, "run.cut_over", who, at, operation).to_json() for first, parent, who, at, operation in (
            (3, 1, "ada", 5.0, "revert-1"), (4, 0, "bob", 6.0, "revert-2"))})
    found = run.ask("GET", "/v1/branches", VIEWER).json()
    assert found["items"] == [
        {"first": first, "last": last, "left_by": by, "who": who, "at": at, "went_back_to": to, "continued_as": then}
        for first, last, by, who, at, to, then in (
            (3, 3, "revert-2", "bob", 6.0, 0, 4), (1, 1, "revert-2", "bob", 6.0, 0, 4),
            (2, 2, "revert-1", "ada", 5.0, 1, 3))]
    page = run.ask("GET", "/v1/branches", VIEWER, params={"limit": 1, "offset": 1}).json()
    assert (page["items"], page["total"], page["next"]) == (found["items"][1:2], 3, 2)

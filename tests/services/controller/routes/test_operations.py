"""Operations over REST: listed, cancelled and continued, with a reason, while their state allows it."""

from collections.abc import Callable
from typing import Any

import pytest

from five.services.controller.operations.document import (
    Operation,
    OperationKind,
    OperationRequest,
    OperationState,
    StepState,
)
from five.services.controller.operations.store import OperationStore
from tests.services.controller.routes.conftest import Api
from tests.services.live_controller import VIEWER, problem

Change = Callable[[Operation], Operation]


@pytest.fixture
def store(api: Api) -> OperationStore:
    return OperationStore(api.context.state)


def begin(store: OperationStore, change: Change | None = None, hold: bool = True,
          kind: OperationKind = OperationKind.SURGERY) -> str:
    """Begin an operation and return its path."""
    operation = store.begin(kind, "ada", OperationRequest(name="wider", hold=hold), "running")
    if change is not None:
        store.change(operation.id, change)
    return f"/v1/operations/{operation.id}"


def over(operation: Operation) -> Operation:
    return operation.model_copy(update={"state": OperationState.FAILED, "outcome": "it failed", "ended_at": 5.0})


def at_hold(operation: Operation) -> Operation:
    before = [step.name for step in operation.steps]
    for name in before[:before.index("hold")]:
        operation = operation.with_step(name, state=StepState.DONE)
    return operation.with_step("hold", state=StepState.GOING)


def failed_at_hold(operation: Operation) -> Operation:
    return at_hold(operation).with_step("hold", state=StepState.FAILED).model_copy(
        update={"state": OperationState.ROLLING_BACK})


def publishing(operation: Operation) -> Operation:
    return operation.with_step("publish", state=StepState.GOING)


@pytest.mark.parametrize(("verb", "field"), [("cancel", "cancel"), ("continue", "go_on")])
@pytest.mark.parametrize("body", [None, {"reason": "too long"}])
def test_decision_has_its_author_and_reason(api: Api, store: OperationStore, verb: str, field: str, body: Any) -> None:
    path = begin(store, at_hold)
    dry = api.ask("POST", f"{path}/{verb}?dry_run=true", json=body).json()
    assert dry[field]["who"] == "ada" and api.ask("GET", path).json()[field] is None
    first = api.ask("POST", f"{path}/{verb}", json=body).json()
    assert (first[field]["who"], first[field]["reason"]) == ("ada", "too long" if body else "")
    again = api.ask("POST", f"{path}/{verb}", json={"reason": "again"}).json()
    assert again[field] == first[field] == api.ask("GET", path, VIEWER).json()[field], "the first decision stays"


@pytest.mark.parametrize(("verb", "change", "says"), [
    ("cancel", over, "already failed: it failed"), ("cancel", publishing, "no longer be cancelled"),
    ("continue", over, "is failed"), ("continue", failed_at_hold, "is rolling back"),
    ("continue", None, "not reached its hold yet; it is at pause")])
def test_operation_whose_state_forbids_it_stays(api: Api, store: OperationStore, verb: str, change: Change | None,
                                                says: str) -> None:
    path = begin(store, change)
    before = api.ask("GET", path).json()
    for query in ("", "?dry_run=true"):
        assert says in problem(api.ask("POST", f"{path}/{verb}{query}"), 409, "conflict")["detail"]
    assert api.ask("GET", path).json() == before


def test_cancelled_operation_can_be_cancelled_again(api: Api, store: OperationStore) -> None:
    """A client repeats a request whose response was lost."""
    path = begin(store)
    api.ask("POST", f"{path}/cancel")
    store.change(path.rpartition("/")[2], lambda operation: operation.model_copy(update={
        "state": OperationState.CANCELLED, "ended_at": 5.0}))
    before = api.ask("GET", path).json()
    for query in ("", "?dry_run=true"):
        again = api.ask("POST", f"{path}/cancel{query}", json={"reason": "again"})
        assert (again.status_code, again.json()) == (200, before)


def test_anneal_that_begins_is_aborted_instead(api: Api, store: OperationStore) -> None:
    path = begin(store, lambda operation: operation.with_step("begin", state=StepState.GOING),
                 kind=OperationKind.ANNEAL)
    assert "abort the anneal instead" in problem(api.ask("POST", f"{path}/cancel"), 409, "conflict")["detail"]


def test_only_a_held_operation_continues(api: Api, store: OperationStore) -> None:
    path = begin(store, at_hold)
    api.ask("POST", f"{path}/cancel")
    assert "is cancelled" in problem(api.ask("POST", f"{path}/continue"), 409, "conflict")["detail"]
    store.change(path.rpartition("/")[2], over)
    path = begin(store, hold=False)
    assert "has no hold" in problem(api.ask("POST", f"{path}/continue"), 409, "conflict")["detail"]
    store.change(path.rpartition("/")[2], over)
    path = begin(store, kind=OperationKind.CHECK)
    assert "has no hold" in problem(api.ask("POST", f"{path}/continue"), 409, "conflict")["detail"]


def test_unknown_operations_are_not_found(api: Api) -> None:
    for method, path in (("GET", "check-1"), ("POST", "check-1/cancel"), ("POST", "check-1/continue"),
                         ("POST", "check-1/cancel?dry_run=true"), ("POST", "check-1/continue?dry_run=true")):
        assert "check-1" in problem(api.ask(method, f"/v1/operations/{path}"), 404, "not-found")["detail"]


def test_operations_are_listed_newest_first(api: Api, store: OperationStore) -> None:
    paths = [begin(store, over) for _ in range(3)]
    names = [path.rpartition("/")[2] for path in paths]
    for n, name in enumerate(names):
        store.change(name, lambda operation, n=n: operation.model_copy(update={"created_at": float(n)}))  # type: ignore[misc]
    listed = api.ask("GET", "/v1/operations", VIEWER, params={"limit": 2}).json()
    assert ([row["id"] for row in listed["items"]], listed["total"], listed["next"]) == (names[:0:-1], 3, 2)

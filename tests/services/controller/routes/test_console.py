"""Streams of the console (parts, curves, time line), which the documented API leaves out."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from five.services.controller.http.auth import Caller, Role
from five.services.controller.http.dependencies import Context
from five.services.controller.http.problems import Problem
from five.services.controller.operations.document import OperationKind, OperationRequest, new_operation
from five.services.controller.routes import console
from five.services.controller.routes.console import ConsoleParts
from five.services.controller.surgery.rehearsals import (
    Rehearsals,
    RehearsalScope,
    RehearsalState,
    RehearsalWorker,
    new_rehearsal,
)
from rapid.store.leases import Lease
from rapid.store.state import Status
from tests.services.controller.routes.conftest import Api
from tests.services.live_controller import RUN, VIEWER, problem

VERA = Caller("vera", Role.VIEWER)
FAST = {"overview", "bottleneck", "operations", "rehearsals", "anneal", "build"}
SLOW = {"services", "league", "ratings", "branches", "heartbeat"}


def read(parts: ConsoleParts) -> dict[str, Any]:
    """Return the parts that changed, by name."""
    found = {}
    for message in parts.poll():
        event, data, *rest = message.split("\n")
        assert rest == ["", ""] and event.startswith("event: ") and data.startswith("data: "), message
        found[event.removeprefix("event: ")] = json.loads(data.removeprefix("data: "))
    return found


@pytest.fixture
def clock(context: Context, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock of the refreshes; the shared caches keep nothing."""
    found = SimpleNamespace(now=50.0)
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: found.now))
    for cache in (context.fast_parts_cache, context.slow_parts_cache):
        monkeypatch.setattr(cache, "get", lambda compute: compute())
    return found


def test_first_poll_has_all_parts_and_later_ones_changes(context: Context, clock: SimpleNamespace) -> None:
    parts = ConsoleParts(context, VERA)
    first = read(parts)
    assert first.keys() == FAST | SLOW
    assert first["overview"]["run"] == RUN and first["overview"]["status"] == "starting"
    assert (first["anneal"], first["operations"], first["services"]) == (None, [], [])
    assert first["rehearsals"] == {"worker": None, "items": []} and first["bottleneck"] == "no optimizer is up"
    assert read(parts) == {}
    context.state.transition(Status.RUNNING, "test")
    assert [(name, part["status"]) for name, part in read(parts).items()] == [("overview", "running")]


def test_slow_parts_are_refreshed_every_five_seconds(context: Context, clock: SimpleNamespace) -> None:
    parts = ConsoleParts(context, VERA)
    read(parts)
    context.state.table("league").set("version:3", [0.5, 4, 2])
    clock.now += 4.99
    assert read(parts) == {}
    clock.now += 0.01
    changed = read(parts)
    assert changed.keys() == {"league", "heartbeat"}
    assert changed["league"]["items"] == [{"version": 3, "quality": 0.5, "games": 4, "wins": 2}]


def test_lists_have_up_to_a_thousand_rows(context: Context, clock: SimpleNamespace) -> None:
    context.state.table("league").update(lambda rows: {f"version:{v}": [0.0, 1, 0] for v in range(1001)})
    found = read(ConsoleParts(context, VERA))["league"]
    assert (len(found["items"]), found["total"], found["next"]) == (1000, 1001, 1000)


def test_twenty_newest_operations_are_sent(context: Context, clock: SimpleNamespace) -> None:
    table = context.state.table("operations")
    for n in range(22):
        operation = new_operation(f"check-{n:02}", OperationKind.CHECK, "ada", OperationRequest(), float(n), "running")
        table.set(operation.id, operation.model_dump(mode="json"))
    sent = read(ConsoleParts(context, VERA))["operations"]
    assert [operation["id"] for operation in sent] == [f"check-{n:02}" for n in range(21, 1, -1)]


def test_rehearsals_are_sent_without_their_plans(context: Context, clock: SimpleNamespace) -> None:
    kept = Rehearsals(context.state)
    kept.announce(RehearsalWorker(host="workstation", pid=4711))
    made = new_rehearsal("name: wider", "0" * 64, "wider", 1, "ada", RehearsalScope())
    kept.begin(made.model_copy(update={"state": RehearsalState.DONE}))
    sent = read(ConsoleParts(context, VERA))["rehearsals"]
    assert sent["worker"] == {"host": "workstation", "pid": 4711}
    assert [(row["id"], row["state"], "plan" in row) for row in sent["items"]] == [(made.id, "done", False)]


def test_live_services_and_the_bottleneck_are_sent(context: Context, clock: SimpleNamespace) -> None:
    for kind in ("optimizer", "inference", "rollout"):
        Lease(context.state.redis, RUN, kind, "0", 30).renew({"games": 3})
    parts = ConsoleParts(context, VERA)
    first = read(parts)
    assert {(row["kind"], row["stats"]["games"]) for row in first["services"]} == {
        ("optimizer", 3), ("inference", 3), ("rollout", 3)}
    assert first["bottleneck"] == "filling the buffer for the first version"
    context.series.append("versions", {"version": 1, "busy_share": 0.9})
    assert read(parts)["bottleneck"].startswith("the optimizer: it computes 90 %")


def test_run_that_does_not_exist_has_no_overview(context: Context, clock: SimpleNamespace) -> None:
    context.state.redis.flushall()
    assert read(ConsoleParts(context, VERA))["overview"] is None


@pytest.mark.parametrize("status", [403, 409, 503])
def test_other_problems_are_not_hidden(context: Context, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch,
                                       status: int) -> None:
    def fail(context: Context) -> None:
        raise Problem(status, "refused by the test")

    monkeypatch.setattr(console, "overview", fail)
    with pytest.raises(Problem, match="refused by the test"):
        read(ConsoleParts(context, VERA))


def test_clients_share_the_parts_of_a_second(context: Context) -> None:
    first = read(ConsoleParts(context, VERA))
    context.state.transition(Status.RUNNING, "test")
    assert read(ConsoleParts(context, VERA)) == first, "computed again for the second client"


def test_curves_and_the_time_line_are_read_by_viewers(api: Api) -> None:
    for n in range(30):
        api.context.series.append("versions", {"version": n, "entropy": float(n)})
    found = api.ask("GET", "/v1/console/curves/versions", VIEWER, params={"fields": "entropy,version,entropy"})
    assert found.status_code == 200, found.text
    assert found.json()["fields"].keys() == {"entropy", "version"} and len(found.json()["at"]) == 30
    few = api.ask("GET", "/v1/console/curves/versions", VIEWER, params={"fields": "entropy", "points": 10}).json()
    assert 0 < len(few["at"]) <= 10
    at = found.json()["at"][0]
    for query in ({"from": at + 1e6}, {"to": at - 1e6}):
        part = api.ask("GET", "/v1/console/curves/versions", VIEWER, params={"fields": "entropy", **query}).json()
        assert len(part["at"]) < 30, query
    problem(api.ask("GET", "/v1/console/curves/matches", VIEWER, params={"fields": "a"}), 404, "not-found")
    for query in ({}, {"fields": "a", "points": 9}, {"fields": "a", "points": 4001}, {"fields": "a" * 4001}):
        problem(api.ask("GET", "/v1/console/curves/games", VIEWER, params=query), 422, "invalid")
    for query in ({"fields": "a", "points": 4000}, {"fields": "a" * 4000}):
        assert api.ask("GET", "/v1/console/curves/games", VIEWER, params=query).status_code == 200, query
    (event,) = api.ask("GET", "/v1/console/timeline", VIEWER).json()
    assert (event["kind"], event["who"]) == ("start", "test")

"""REST resources: paging in both directions, matches, and their OpenAPI documents."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import redis

from five.agent.standings import Standing
from five.clients.evaluator import MatchResult
from five.services.controller.games.matches import (
    MAX_OPEN,
    MatchQueue,
    MatchRequest,
    MatchRunner,
    MatchState,
    RequestedMatch,
)
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.store.replicated_table import ReplicatedTable
from rapid.store.series import Series
from rapid.store.tables import Table
from tests.services.live_controller import RUN, VIEWER, LiveController, live, problem


@pytest.fixture
def rest(redis_client: redis.Redis, redis_url: str) -> Iterator[LiveController]:
    with live(redis_url) as found:
        yield found


def items(rest: LiveController, path: str, **query: Any) -> tuple[list[Any], dict[str, Any]]:
    answer = rest.ask("GET", path, VIEWER, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"], answer.json()


def walk(rest: LiveController, path: str, way: str, cursor: str, **query: Any) -> list[Any]:
    """Return the items of all pages."""
    found: list[Any] = []
    for _ in range(100):
        part, whole = items(rest, path, **query)
        found += part
        if not part or whole[cursor] is None:
            return found
        query[way] = whole[cursor]
    raise AssertionError("it does not end")


def test_events_are_paged_in_both_directions(rest: LiveController) -> None:
    for n in range(25):
        rest.state.events.append("test", "noted", {"n": n})
    newest, page = items(rest, "/v1/events", limit=3)
    assert [e["details"]["n"] for e in newest] == [24, 23, 22]
    older, _ = items(rest, "/v1/events", limit=2, before=page["older"])
    assert [e["details"]["n"] for e in older] == [21, 20]
    assert items(rest, "/v1/events", after=page["newer"])[0] == []
    rest.state.events.append("test", "noted", {"n": 25})
    later, then = items(rest, "/v1/events", after=page["newer"])
    assert [e["details"]["n"] for e in later] == [25] and then["newer"] == later[0]["id"]
    everything = [e.details.get("n") for e in rest.state.events.read()]
    assert [e["details"].get("n") for e in walk(rest, "/v1/events", "before", "older", limit=7)] == everything[::-1]
    onwards = walk(rest, "/v1/events", "after", "newer", limit=7, after="0-0")
    assert [e["details"].get("n") for e in onwards] == everything
    assert items(rest, "/v1/events", before="0-0")[0] == items(rest, "/v1/series/games", before="00-0")[0] == []
    problem(rest.ask("GET", "/v1/events?after=1-0&before=2-0"), 422, "invalid")
    for wrong in ("0", "-", "1-", "(1-0", "99999999999999999999-0"):
        problem(rest.ask("GET", "/v1/events", params={"after": wrong}), 422, "invalid")


def test_series_are_newest_first(rest: LiveController) -> None:
    Series(rest.state.redis, RUN).extend("games", [{"n": n} for n in range(12)])
    newest, page = items(rest, "/v1/series/games", limit=2)
    assert [r["values"]["n"] for r in newest] == [11, 10] and newest[0]["at"] > 1e9
    assert [r["values"]["n"] for r in items(rest, "/v1/series/games", limit=2, before=page["older"])[0]] == [9, 8]
    assert [r["values"]["n"] for r in walk(rest, "/v1/series/games", "after", "newer", limit=5, after="0-0")] == [
        *range(12)]
    assert items(rest, "/v1/series/ratings")[1] == {"items": [], "newer": None, "older": None}


def test_game_records_of_earlier_versions_name_the_variant(rest: LiveController) -> None:
    Series(rest.state.redis, RUN).append("games", {"arm": "new", "anneal": "patch/1"})
    assert items(rest, "/v1/series/games")[0][0]["values"] == {"variant": "new", "anneal": "patch/1"}


def test_versions_are_paged_across_gaps(rest: LiveController) -> None:
    there = [0, 1, 2, 7, 8, 40]
    for v in there:
        rest.context.store.publish(v, {"w": np.full(3, v, np.float32)}, {})
    assert [r["version"] for r in walk(rest, "/v1/versions", "before", "older", limit=2)] == there[::-1]
    assert [r["version"] for r in walk(rest, "/v1/versions", "after", "newer", limit=2, after=-1)] == there
    assert [r["version"] for r in items(rest, "/v1/versions", before=8, limit=1)[0]] == [7]
    assert items(rest, "/v1/versions", before=10**15)[0][0]["version"] == 40


def test_only_the_opponents_of_a_page_are_parsed(rest: LiveController, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool may have 100,000 versions, and the console reads it every few seconds."""
    for v in range(20):
        rest.state.table("league").set(f"version:{v}", [0.0, 1, 0])
    parsed: list[str] = []
    parse = Table.parse

    def counted(table: Table, field: str, text: bytes) -> Any:
        parsed.append(field)
        return parse(table, field, text)

    monkeypatch.setattr(Table, "parse", counted)
    assert items(rest, "/v1/opponents", limit=2, offset=9)[1]["total"] == 20
    assert [field for field in parsed if field.startswith("version:")] == ["version:10", "version:9"]


def test_opponents_and_ratings_are_typed_and_paged(rest: LiveController) -> None:
    league = rest.state.table("league")
    for v in range(5):
        league.set(f"version:{v}", [-0.1 * v, 10 * v, v])
    league.set("last_added", 4)
    part, whole = items(rest, "/v1/opponents", limit=2)
    assert part[0] == {"version": 4, "quality": -0.4, "games": 40, "wins": 4}
    assert (whole["total"], whole["next"]) == (5, 2)
    assert [o["version"] for o in walk(rest, "/v1/opponents", "offset", "next", limit=2)] == [4, 3, 2, 1, 0]
    assert [o["version"] for o in items(rest, "/v1/opponents", offset=5)[0]] == []



def test_ratings_are_paged_by_version(rest: LiveController) -> None:
    table = ReplicatedTable(rest.state, "ratings", lambda rows, whole: None)
    table.update(lambda: {"state": {"format": 1}})
    assert items(rest, "/v1/ratings")[0] == []  # of an earlier release
    rated = {f"rated:{s.player}": asdict(s) for s in (
        Standing("random", 0.0, 0.001, 1, 0.1, True), Standing("version-3", 9.0, 0.8, 2, 0.1, True),
        Standing("version-8", 12.0, 0.9, 3, 0.1, False, 1, {"scripted": [1, 2, 3]}, {"scripted": [1 / 3, 0.1, 0.6]}))}
    table.update(lambda: {"format": 2, **rated})
    found, whole = items(rest, "/v1/ratings")
    assert [(r["player"], r["version"], r["reference"]) for r in found] == [
        ("version-8", 8, False), ("version-3", 3, True), ("random", None, True)]
    assert (found[0]["games"], found[0]["aborted"], found[0]["sigma"], whole["older"]) == (6, 1, 0.9, None)
    assert found[0]["against"] == {"scripted": {"won": 1, "drawn": 2, "lost": 3, "score": 1 / 3, "low": 0.1,
                                                "high": 0.6}}

    def add(*players: str) -> None:
        table.update(lambda: {f"rated:{p}": asdict(Standing(p, 1.0, 0.9, 3, 0.1, False)) for p in players})

    def names(rows: list[Any]) -> list[str]:
        return [row["player"] for row in rows]

    # Ratings during paging do not shift a page: each player occurs once, and newer ones are requested after the newest.
    first, page = items(rest, "/v1/ratings", limit=2)
    add("version-9", "scripted")
    rest_of_them = walk(rest, "/v1/ratings", "before", "older", limit=2, before=page["older"])
    assert names(first + rest_of_them) == ["version-8", "version-3", "random", "scripted"]
    assert names(items(rest, "/v1/ratings", after=page["newer"])[0]) == ["version-9"]
    assert names(items(rest, "/v1/ratings", after=-3, limit=3)[0]) == ["scripted", "random", "version-3"]
    table.update(lambda: {"rated:version-9": None})
    assert names(items(rest, "/v1/ratings", limit=1)[0]) == ["version-8"]
    problem(rest.ask("GET", "/v1/ratings", VIEWER, params={"after": 1, "before": 5}), 422, "invalid")


RESULT = MatchResult(7, 12, 6, 2, {"last_hits": 30.0}, {"last_hits": 20.0}, 600.0, "")


@contextmanager
def playing(rest: LiveController, play: Any) -> Iterator[None]:
    """Run the controller's match runner on its own event loop."""
    over = threading.Event()
    player = MatchRunner(MatchQueue(rest.state), play, retry_seconds=0.01, poll_seconds=0.01)
    thread = threading.Thread(target=lambda: asyncio.run(player.run(over.is_set)))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(10)
        assert not thread.is_alive()


def until(rest: LiveController, path: str, state: str) -> dict[str, Any]:
    end = time.monotonic() + 10
    while (found := rest.ask("GET", path).json())["state"] != state:
        assert time.monotonic() < end, found
        time.sleep(0.01)
    return dict(found)


def test_match_waits_for_its_evaluator(rest: LiveController) -> None:
    asked: list[RequestedMatch] = []

    async def play(match: RequestedMatch) -> MatchResult:
        asked.append(match)
        if len(asked) < 3:
            raise CallFailed(StatusCode.UNAVAILABLE, "127.0.0.1:1", "PlayMatch", "connection refused")
        return RESULT

    answer = rest.ask("POST", "/v1/matches", json={"against": "scripted", "games": 20, "seed": 3})
    assert answer.status_code == 202 and answer.json()["state"] == "waiting" and answer.json()["who"] == "ada"
    path = answer.headers["location"]
    with playing(rest, play):
        found = until(rest, path, "done")
    assert found["outcome"]["won"] == 12 and found["tries"] == 3 and found["error"] is None
    assert [(m.request.games, m.id) for m in asked] == [(20, found["id"])] * 3
    problem(rest.ask("POST", path + "/cancel"), 409, "conflict")
    assert [e.what for e in rest.state.events.read()][-1] == "match.asked"


def test_failed_match_names_the_reason(rest: LiveController) -> None:
    async def play(match: RequestedMatch) -> MatchResult:
        raise CallFailed(StatusCode.NOT_FOUND, "127.0.0.1:1", "PlayMatch", "version 99 was never published")

    path = rest.ask("POST", "/v1/matches", json={"version": 99}).headers["location"]
    with playing(rest, play):
        assert "never published" in until(rest, path, "failed")["error"]


def test_running_match_can_be_cancelled(rest: LiveController) -> None:
    ended = threading.Event()

    async def play(match: RequestedMatch) -> MatchResult:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return RESULT

    path = rest.ask("POST", "/v1/matches", json={}).headers["location"]
    with playing(rest, play):
        until(rest, path, "playing")
        assert rest.ask("POST", path + "/cancel").json()["state"] == "cancelled"
        assert rest.ask("POST", path + "/cancel").json()["state"] == "cancelled"
        assert ended.wait(30)
    assert until(rest, path, "cancelled")["ended_at"]


def test_next_controller_plays_a_dead_ones_match(rest: LiveController) -> None:
    async def play(match: RequestedMatch) -> MatchResult:
        return RESULT

    matches = MatchQueue(rest.state)
    left = matches.add(MatchRequest(), "ada")
    matches.transition(left.id, MatchState.PLAYING, tries=1)
    with playing(rest, play):
        assert until(rest, f"/v1/matches/{left.id}", "done")["tries"] == 2


def test_number_of_matches_is_limited(rest: LiveController, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(MAX_OPEN):
        assert rest.ask("POST", "/v1/matches", json={}).status_code == 202
    answer = rest.ask("POST", "/v1/matches", json={})
    problem(answer, 429, "too-many-requests")
    assert answer.headers["retry-after"]
    monkeypatch.setattr("five.services.controller.games.matches.MAX_RECORDS", 20)
    matches = MatchQueue(rest.state)
    for n in range(8):
        for match in matches.all():
            matches.transition(match.id, MatchState.DONE)
        matches.add(MatchRequest(seed=n), "test")
        assert len(matches.all()) == min(MAX_OPEN + 1 + n, 20)
    assert matches.all()[0].request.seed == 7
    for wrong in ("../../etc/passwd", "m-1", "m-00000000000g"):
        assert rest.ask("GET", f"/v1/matches/{wrong}").status_code in (404, 422)
    problem(rest.ask("GET", "/v1/matches/m-000000000000"), 404, "not-found")
    for body in ({"games": 0}, {"games": 10**9}, {"against": "../x"}, {"against": "1" * 16}, {"replay": "yes"}):
        problem(rest.ask("POST", "/v1/matches", json=body), 422, "invalid")


def test_match_without_an_evaluator_is_refused(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, evaluator=False) as rest:
        problem(rest.ask("POST", "/v1/matches", json={}), 409, "conflict")


def test_openapi_describes_every_response(rest: LiveController) -> None:
    document = rest.ask("GET", "/openapi.json", "").json()
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    seen = set()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            where = f"{method} {path}"
            assert operation["operationId"] not in seen, where
            seen.add(operation["operationId"])
            assert operation["security"] and operation["summary"] and operation["tags"], where
            assert operation.get("description"), where
            success = [s for s in operation["responses"] if s.startswith("2")]
            # Requests that begin an operation answer 202, or 200 with dry_run.
            assert len(success) == 1 or sorted(success) == ["200", "202"], where
            for status, answer in operation["responses"].items():
                if status in success:
                    media = answer["content"]
                    kind, content = next(iter(media.items()))
                    schema = content["schema"]
                    assert kind in ("text/event-stream", "application/octet-stream") or schema.get("$ref") or (
                        "items" in schema or "example" in content), where
                elif status != "304":
                    assert list(answer["content"]) == ["application/problem+json"], (where, status)
            assert {"400", "401", "422", "429", "500", "503"} <= operation["responses"].keys(), where
            if method != "get":
                assert {"403", "409", "413"} <= operation["responses"].keys(), where
                assert "Idempotency-Key" in [p["name"] for p in operation["parameters"]], where


def test_every_schema_accepts_its_example(rest: LiveController) -> None:
    """Examples are validated against their own schemas."""
    from jsonschema_rs import validator_for

    document = rest.ask("GET", "/openapi.json", "").json()
    schemas = document["components"]["schemas"]
    generic = {name for name in schemas if name.startswith(("Page_", "Slice_"))}
    inner = {"ArchivedBlob", "ConfigDrift", "FieldError", "RampConfig", "ScheduleConfig", "SchedulesConfig",
             "MatchOutcome", "RatingPage", "SeriesKind", "Status", "MatchState", "OperationKind",
             "OperationState", "OperationStep", "AnnealPolicy", "AnnealRamp", "AnnealState", "Variant",
             "GuardConfig", "UndoneSchedule", "UndoneSurgery", "VersionRange", "Anneal", "PlannedAnneal",
             "PlanNote", "PlanStep", "StepState", "OperationRequest", "OperatorDecision",
             "RehearsalResult", "RehearsalState", "RehearsalScope"}
    for name, schema in schemas.items():
        if name in generic | inner:
            continue
        assert schema.get("examples"), name
        validator = validator_for({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema,
                                   "components": document["components"]})
        for example in schema["examples"]:
            validator.validate(example)

"""The API against its own OpenAPI document, by property-based requests: nothing undocumented, and never a 500."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
import requests
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from five.agent.anneal.document import Anneal, AnnealRamp
from five.agent.anneal.guard import GuardConfig
from five.agent.draft.leaves import HeroPool, LeafTable
from five.agent.surgery import AgentSpec
from five.run.config.controller import LimitsConfig
from five.run.draft_tables import DraftTableStore
from five.services.controller.operations.document import OperationState, StepState
from five.services.controller.operations.store import OperationStore
from five.services.controller.surgery.rehearsals import Rehearsals, RehearsalWorker
from rapid.embedded_redis import EmbeddedRedis
from rapid.store.anneal import AnnealStore
from rapid.store.operation_blobs import preserved_checkpoint
from rapid.store.series import Series
from rapid.store.state import Status
from rapid.store.surgery_plans import PlanChecks
from tests.services.live_controller import OPERATOR, RUN, LiveController, bearer, live
from tests.services.optimizer_cases import GAME, MODEL

CHECKS: list[Callable[..., Any]] = [not_a_server_error, status_code_conformance, content_type_conformance,
                                    response_schema_conformance, response_headers_conformance]
UNLIMITED = LimitsConfig(requests_per_second=1e6, burst=1e6, client_requests_per_second=1e6, client_burst=1e6,
                         store_seconds=0.5)
# Requests of each operation, as many valid as invalid ones.
EXAMPLES = [2, pytest.param(8, marks=pytest.mark.slow)]
AWAY_EXAMPLES = [1, pytest.param(2, marks=pytest.mark.slow)]
# Requests that need more than a valid schema: a plan, a change or a version of this run, an anneal that no earlier
# request has ended, or heroes that can be drafted.
FITTING = {"GET /v1/draft",
           *(f"POST /v1/surgery/{verb}" for verb in ("plan", "read", "check", "apply", "rehearse")),
           "POST /v1/anneal", "POST /v1/revert",
           *(f"POST /v1/anneal/{verb}" for verb in ("hold", "resume", "promote", "abort", "revert")),
           "PUT /v1/anneal/share",
           # This run has no play service: tests/services/test_play_socket.py asks one.
           "GET /v1/play/games", "POST /v1/play/games", "GET /v1/play/recordings"}
PLAY = "/v1/play"
BLOBS = {"GET /v1/draft", "GET /v1/draft/tables"}
ANNEALED = Anneal(id="patch-d4e5f6", overrides={"patch": "7.21d"}, base=0, began=0,
                  ramp=AnnealRamp(start=0, length=400), guard=GuardConfig(loss=0.3))


def fill(rest: LiveController) -> None:
    """Store something to read at each path."""
    for v in range(3):
        rest.context.store.publish(v, {"w": np.full(3, v, np.float32)}, {"reward_std": 1.0})
    rest.state.transition(Status.RUNNING, "test")
    for kind in ("versions", "games", "ratings", "matches"):
        Series(rest.state.redis, RUN).extend(kind, [{"version": n} for n in range(3)])
    rest.state.table("league").set("version:1", [0.0, 3, 2])
    assert rest.context.blobs is not None
    leaves = LeafTable(HeroPool(("lion", "sven"), 1), np.full((2, 1), 0.5, np.float32), {"version": 2})
    DraftTableStore(rest.context.blobs, RUN).put("version-2", leaves)
    annealed(rest)


def annealed(rest: LiveController) -> None:
    """Ensure that an anneal is in progress."""
    AnnealStore(rest.state).change(lambda document: (ANNEALED.to_json(), "anneal.began", {}), "test")


def operations(rest: LiveController) -> list[Any]:
    schema = schemathesis.openapi.from_url(f"{rest.url}/openapi.json", timeout=60)
    # They answer without end; tests of their own read them.
    return [found.ok() for found in schema.exclude(path=["/v1/stream", "/v1/games/{game}/live"]).get_all_operations()]


def ask(rest: LiveController, operation: Any, strategy: Any, examples: int, check: Callable[[Any, Any], None],
        session: requests.Session) -> None:
    """Send that many requests of one kind and check each response."""
    turn = itertools.count()

    @hypothesis.settings(max_examples=examples, deadline=None, database=None, derandomize=True,
                         suppress_health_check=list(hypothesis.HealthCheck),
                         phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])
    @hypothesis.given(case=strategy)
    def send(case: Any) -> None:
        # A tag cannot be guessed. Half of the requests send none and are refused.
        given = {**bearer(OPERATOR), **({"If-Match": "*"} if next(turn) % 2 else {})}
        check(case, case.call(base_url=rest.url, session=session, headers=given, timeout=20))

    try:
        send()
    except hypothesis.errors.Unsatisfiable:
        pass  # nothing of it can be wrong


def ask_all(rest: LiveController, examples: int, checks: list[Callable[..., Any]], expected: set[int] | None = None
            ) -> dict[str, set[int]]:
    """Send valid and invalid requests to every operation. Return the statuses of each."""
    seen: dict[str, set[int]] = {}

    def check(case: Any, answer: Any) -> None:
        label = case.operation.label
        seen.setdefault(label, set()).add(answer.status_code)
        # Recordings and draft tables are in the blob store, which stays available without the state's store.
        refused = expected is None or "/v1/replays" in label or label in BLOBS or (
            answer.status_code in expected or (PLAY in label and answer.status_code in (200, 409)))
        assert refused, (label, answer.status_code, answer.text)
        case.validate_response(answer, checks=checks)

    with requests.Session() as session:
        for operation in operations(rest):
            for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
                ask(rest, operation, operation.as_strategy(generation_mode=mode), examples, check, session)
    return seen


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    with EmbeddedRedis(tmp_path / "redis", append_only=False).start() as running:
        yield running


@pytest.mark.runs
@pytest.mark.parametrize("examples", EXAMPLES)
def test_api_conforms_to_openapi(store: Any, examples: int) -> None:
    with live(store.url, UNLIMITED) as rest:
        fill(rest)
        seen = ask_all(rest, examples, CHECKS)
        assert len(seen) >= 20
        reached = {label for label, statuses in seen.items() if any(s < 300 for s in statuses)}
        unreached = seen.keys() - reached
        # An id that is there, a version that is not past, a plan that fits nobody guesses: the next test knows them.
        assert all("{" in label or label in FITTING for label in unreached), unreached


def test_documented_requests_are_accepted(store: Any) -> None:
    with live(store.url, UNLIMITED) as rest:
        fill(rest)
        schema = schemathesis.openapi.from_url(f"{rest.url}/openapi.json", timeout=60)
        models = schema.raw_schema["components"]["schemas"]

        def send(method: str, path: str, model: str = "", given: Any = None, **parameters: str) -> Any:
            example = given if given is not None else models[model]["examples"][0] if model else None
            body = {} if example is None else {"body": example, "media_type": "application/json"}
            case = schema[path][method].Case(path_parameters=parameters, **body)
            answer = case.call(base_url=rest.url, headers={**bearer(OPERATOR), "If-Match": "*"}, timeout=20)
            assert answer.status_code < 300, answer.text
            case.validate_response(answer, checks=CHECKS)
            return answer.json()

        change = send("PUT", "/v1/schedules/{name}", "RampRequest", name="learning_rate")["change"]
        send("POST", "/v1/schedules/history/{change}/revert", "RevertChangeRequest", change=change)
        match = send("POST", "/v1/matches", "MatchRequest")["id"]
        send("GET", "/v1/matches/{identity}", identity=match)
        assert send("GET", "/v1/draft")["to_move"] == "D"
        send("POST", "/v1/matches/{identity}/cancel", identity=match)
        operate(rest, send)
        anneal_and_revert(rest, send)
        for verb in ("pause", "resume", "stop"):
            send("POST", f"/v1/{verb}", "Reason")


def operate(rest: LiveController, send: Callable[..., Any]) -> None:
    """Run the documented surgery as far as it goes without an optimizer."""
    before = rest.state.record()
    assert before is not None
    small = AgentSpec(GAME, MODEL).trees()
    rest.state.set_record(before, before.changed(new_epoch=False, **small), "test", "record.set", {})
    plan = send("POST", "/v1/surgery/plan", "DerivePlanRequest")
    send("POST", "/v1/surgery/read", given={"plan": plan["plan"]})
    checked = send("POST", "/v1/surgery/check", given={"plan": plan["plan"]})["id"]
    send("GET", "/v1/operations/{identity}", identity=checked)
    send("POST", "/v1/operations/{identity}/cancel", "Reason", identity=checked)
    store = OperationStore(rest.state)
    store.change(checked, lambda o: o.model_copy(update={"state": OperationState.CANCELLED}))
    PlanChecks(rest.state).put(plan["digest"], {
        "plan": plan["plan"], "name": plan["name"], "parent": plan["parent"], "epoch": 1, "bounds": {},
        "operation": checked, "who": "ada", "result": {"ok": True}})
    send("GET", "/v1/surgery/checks/{digest}", digest=plan["digest"])
    kept = Rehearsals(rest.state)
    kept.announce(RehearsalWorker(host="workstation", pid=4711))
    rehearsed = send("POST", "/v1/surgery/rehearse", given={"plan": plan["plan"], "versions": 20, "games": 200})["id"]
    send("GET", "/v1/surgery/rehearsals/{identity}", identity=rehearsed)
    assert send("GET", "/v1/surgery/rehearsals")["worker"]["pid"] == 4711
    send("POST", "/v1/surgery/rehearsals/{identity}/cancel", "Reason", identity=rehearsed)
    applied = send("POST", "/v1/surgery/apply", given={"digest": plan["digest"], "hold": True})["id"]
    for name in ("pause", "check", "checkpoint", "transform"):
        store.change(applied, lambda o, name=name: o.with_step(name, state=StepState.DONE))  # type: ignore[misc]
    store.change(applied, lambda o: o.with_step("hold", state=StepState.GOING))
    send("POST", "/v1/operations/{identity}/continue", "Reason", identity=applied)
    store.change(applied, lambda o: o.model_copy(update={"state": OperationState.DONE}))


def anneal_and_revert(rest: LiveController, send: Callable[..., Any]) -> None:
    """Run the documented anneal, each of its commands, and a revert, as far as they go without an optimizer."""
    before = rest.state.record()
    assert before is not None
    old = {**before.game, "patch": "7.19"}
    rest.state.set_record(before, before.changed(new_epoch=False, game=old), "test", "record.set", {})
    for verb in ("hold", "resume", "promote", "abort", "revert"):
        annealed(rest)
        send("GET", "/v1/anneal")
        send("POST", f"/v1/anneal/{verb}", "Reason" if verb == "revert" else "")
        now = rest.state.record()
        assert now is not None and now.game["patch"] == ("7.21d" if verb == "promote" else "7.19")
        rest.state.set_record(now, now.changed(new_epoch=False, game=old), "test", "record.set", {})
    annealed(rest)
    send("PUT", "/v1/anneal/share", "ShareRequest")
    send("POST", "/v1/anneal/abort")
    blobs, store = rest.context.blobs, OperationStore(rest.state)
    assert blobs is not None
    begun = send("POST", "/v1/anneal", "AnnealRequest")["id"]
    store.change(begun, lambda o: o.model_copy(update={"state": OperationState.DONE}))
    blobs.set_ref(preserved_checkpoint(RUN, 1, "anneal-1"), blobs.put(b"a checkpoint"))
    assert [row["version"] for row in send("GET", "/v1/revert/targets")["items"]] == [1]
    send("GET", "/v1/revert/{version}", version="1")
    assert send("POST", "/v1/revert", given={"to": 1, "epoch": 1})["request"]["to_version"] == 1


@pytest.mark.runs
@pytest.mark.parametrize("examples", AWAY_EXAMPLES)
def test_api_conforms_to_openapi_without_its_store(store: Any, examples: int) -> None:
    with live(store.url, UNLIMITED) as rest:
        fill(rest)
        store.kill()
        # 503 is what is asked for here; all else is refused before the store matters.
        checks = [check for check in CHECKS if check is not not_a_server_error]
        seen = ask_all(rest, examples, checks, {400, 401, 404, 405, 422, 428, 503})
        assert len(seen) >= 20 and all(503 in statuses for label, statuses in seen.items()
                                       if label.startswith("GET") and "/replays" not in label and label not in BLOBS
                                       and (PLAY not in label or label == "GET /v1/play/ratings"))

"""The API against its own OpenAPI, asked by a property-based tester: nothing undocumented, and never a 500."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from rapid.embedded_redis import EmbeddedRedis
from rapid.store.series import Series
from rapid.store.state import Status
from services.controller.config import LimitsConfig
from tests.services.live_controller import OPERATOR, RUN, LiveController, bearer, live

CHECKS: list[Callable[..., Any]] = [not_a_server_error, status_code_conformance, content_type_conformance,
                                    response_schema_conformance, response_headers_conformance]
UNLIMITED = LimitsConfig(requests_per_second=1e6, burst=1e6, client_requests_per_second=1e6, client_burst=1e6,
                         store_seconds=0.5)
EXAMPLES = 12  # of each operation, right ones and wrong ones
AWAY_EXAMPLES = 2


def fill(rest: LiveController) -> None:
    """Something to read at each address."""
    for v in range(3):
        rest.context.store.publish(v, {"w": np.full(3, v, np.float32)}, {"reward_std": 1.0})
    rest.state.transition(Status.RUNNING, "test")
    for kind in ("versions", "games", "ratings", "matches"):
        Series(rest.state.redis, RUN).extend(kind, [{"version": n} for n in range(3)])
    rest.state.table("league").set("version:1", [0.0, 3, 2])


def operations(rest: LiveController) -> list[Any]:
    schema = schemathesis.openapi.from_url(f"{rest.url}/openapi.json")
    # It answers without end; tests of its own read it.
    return [found.ok() for found in schema.exclude(path="/v1/stream").get_all_operations()]


def ask(rest: LiveController, operation: Any, strategy: Any, examples: int, check: Callable[[Any, Any], None]) -> None:
    """Sends that many requests of one kind, and has each answer checked."""
    turn = itertools.count()

    @hypothesis.settings(max_examples=examples, deadline=None, database=None, derandomize=True,
                         suppress_health_check=list(hypothesis.HealthCheck),
                         phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])
    @hypothesis.given(case=strategy)
    def send(case: Any) -> None:
        # A tag cannot be guessed; half of the requests go without, and are told so.
        given = {**bearer(OPERATOR), **({"If-Match": "*"} if next(turn) % 2 else {})}
        check(case, case.call(base_url=rest.url, headers=given, timeout=20))

    try:
        send()
    except hypothesis.errors.Unsatisfiable:
        pass  # nothing of it can be wrong


def ask_all(rest: LiveController, examples: int, checks: list[Callable[..., Any]], expected: set[int] | None = None
            ) -> dict[str, set[int]]:
    """Asks every operation with what fits its schema and with what does not. Returns the statuses of each."""
    seen: dict[str, set[int]] = {}

    def check(case: Any, answer: Any) -> None:
        label = case.operation.label
        seen.setdefault(label, set()).add(answer.status_code)
        assert expected is None or answer.status_code in expected, (label, answer.status_code, answer.text)
        case.validate_response(answer, checks=checks)

    for operation in operations(rest):
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            ask(rest, operation, operation.as_strategy(generation_mode=mode), examples, check)
    return seen


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    with EmbeddedRedis(tmp_path / "redis", append_only=False).start() as running:
        yield running


def test_the_api_is_what_it_says(store: Any) -> None:
    with live(store.url, UNLIMITED) as rest:
        fill(rest)
        seen = ask_all(rest, EXAMPLES, CHECKS)
        assert len(seen) >= 20
        reached = {label for label, statuses in seen.items() if any(s < 300 for s in statuses)}
        unreached = seen.keys() - reached
        # An id that is there, and a version that is not past, nobody guesses: the next test knows them.
        assert all("{" in label for label in unreached), unreached


def test_documented_requests_are_accepted(store: Any) -> None:
    with live(store.url, UNLIMITED) as rest:
        fill(rest)
        schema = schemathesis.openapi.from_url(f"{rest.url}/openapi.json")
        models = schema.raw_schema["components"]["schemas"]

        def send(method: str, path: str, model: str = "", **parameters: str) -> Any:
            body = {"body": models[model]["examples"][0], "media_type": "application/json"} if model else {}
            case = schema[path][method].Case(path_parameters=parameters, **body)
            answer = case.call(base_url=rest.url, headers={**bearer(OPERATOR), "If-Match": "*"}, timeout=20)
            assert answer.status_code < 300, answer.text
            case.validate_response(answer, checks=CHECKS)
            return answer.json()

        change = send("PUT", "/v1/schedules/{name}", "Ramp", name="learning_rate")["change"]
        send("POST", "/v1/schedules/history/{change}/revert", "Revert", change=change)
        match = send("POST", "/v1/matches", "MatchRequest")["id"]
        send("GET", "/v1/matches/{identity}", identity=match)
        send("POST", "/v1/matches/{identity}/cancel", identity=match)
        for verb in ("pause", "resume", "stop"):
            send("POST", f"/v1/{verb}", "Reason")


def test_the_api_is_what_it_says_with_its_store_away(store: Any) -> None:
    with live(store.url, UNLIMITED) as rest:
        fill(rest)
        store.kill()
        # 503 is what is asked for here; all else is refused before the store matters.
        checks = [check for check in CHECKS if check is not not_a_server_error]
        seen = ask_all(rest, AWAY_EXAMPLES, checks, {400, 401, 404, 405, 422, 428, 503})
        assert len(seen) >= 20 and all(503 in statuses for label, statuses in seen.items() if label.startswith("GET"))

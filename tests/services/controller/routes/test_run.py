"""The REST API with real Redis: responses, roles, refusals."""

import time

import numpy as np
import pytest
import redis
from fastapi import FastAPI
from fastapi.testclient import TestClient

from five.agent.config import SchedulesConfig
from five.run.config.controller import LimitsConfig
from five.run.load import load
from five.services.controller.http.app import create_app
from five.services.controller.http.auth import Authenticator
from five.services.controller.http.dependencies import Context
from five.services.controller.http.tokens import FixedTokens
from five.services.controller.routes.run import stalled_seconds
from five.services.controller.run.reconcile import PauseClock, next_status, reconcile
from five.services.controller.run.setup import set_up_run
from rapid.config import StoreConfig
from rapid.store.errors import FencedOut
from rapid.store.faults import read_faults, report_faults
from rapid.store.idle import IdleReport
from rapid.store.leases import Instance, Lease
from rapid.store.parameters import ParameterStore
from rapid.store.series import Record
from rapid.store.state import RunState, RunStatus, Status

OPERATOR = {"Authorization": "Bearer operator-token", "X-Five-User": "mallory"}
VIEWER = {"Authorization": "Bearer viewer-token"}


@pytest.fixture
def state(redis_client: redis.Redis) -> RunState:
    state = RunState(redis_client, "trial")
    state.create({"name": "trial"}, "test")
    return state


@pytest.fixture
def store(redis_client: redis.Redis) -> ParameterStore:
    return ParameterStore(redis_client, redis_client, "trial", StoreConfig(archive_every=0))


@pytest.fixture
def app(state: RunState, store: ParameterStore) -> FastAPI:
    gate = Authenticator(FixedTokens.of(ada=("operator", "operator-token"), vera=("viewer", "viewer-token")))
    # One address asks for all paths without a token: more than may be refused at once.
    return create_app(Context("trial", state, store, SchedulesConfig(), gate, LimitsConfig(failed_logins_burst=1000)))


@pytest.fixture
def client(app: FastAPI) -> TestClient:
    return TestClient(app)


def concrete(path: str) -> str:
    for name, value in {"version": "0", "kind": "games", "name": "learning_rate", "identity": "m-000000000000",
                        "change": "1-0"}.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def test_requests_without_a_token_are_refused(client: TestClient, app: FastAPI) -> None:
    paths = [path for path in app.openapi()["paths"]]
    assert len(paths) > 10
    for path in paths:
        for method in app.openapi()["paths"][path]:
            assert client.request(method, concrete(path)).status_code == 401, path
    assert client.get("/v1/status", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/healthz").status_code == 200


def test_viewer_can_read_only(client: TestClient, state: RunState) -> None:
    state.transition(Status.RUNNING, "test")
    assert client.get("/v1/status", headers=VIEWER).json()["status"] == "running"
    for method, path in (("post", "/v1/pause"), ("post", "/v1/stop"), ("put", "/v1/schedules/learning_rate")):
        ramp = {"start": 0, "length": 0, "to": 1.0}
        answer = client.request(method, path, headers=VIEWER, json=ramp if method == "put" else {})
        assert answer.status_code == 403, path
    now = state.status()
    assert now is not None and now.status is Status.RUNNING


def test_every_change_refuses_a_viewer(client: TestClient, app: FastAPI, redis_client: redis.Redis) -> None:
    before = everything(redis_client)
    refused = 0
    for path, methods in app.openapi()["paths"].items():
        for method in methods.keys() - {"get"}:
            answer = client.request(method, concrete(path), headers=VIEWER, json={})
            assert answer.status_code == 403, (method, path, answer.text)
            refused += 1
    assert refused > 10 and everything(redis_client) == before


def everything(redis_client: redis.Redis) -> dict[bytes, bytes | None]:
    """Return every key with its serialised value."""
    return {key: redis_client.dump(key) for key in redis_client.keys("*")}  # type: ignore[union-attr]


def test_reads_change_nothing(client: TestClient, redis_client: redis.Redis, app: FastAPI) -> None:
    before = everything(redis_client)
    for path, methods in app.openapi()["paths"].items():
        if "get" in methods:
            if path != "/v1/stream":  # it has no end
                client.get(concrete(path), headers=OPERATOR)
    after = everything(redis_client)
    # A request for the games makes their sources list them, by a lease that expires.
    (lease,) = after.keys() - before.keys()
    assert lease.endswith(b":watched") and 0 < redis_client.pttl(lease) < 60_000  # type: ignore[operator]
    assert before and after == {**before, lease: after[lease]}


def test_pause_and_resume_events_name_the_caller(client: TestClient, state: RunState) -> None:
    state.transition(Status.RUNNING, "test")
    assert client.post("/v1/pause", headers=OPERATOR, json={"reason": "a look"}).json()["status"] == "pausing"
    assert client.post("/v1/resume", headers=OPERATOR).json()["status"] == "running"
    events = client.get("/v1/events", headers=VIEWER, params={"limit": 2}).json()["items"]
    assert [(e["who"], e["what"]) for e in events] == [("ada", "run.running"), ("ada", "run.pausing")]
    assert events[1]["details"]["reason"] == "a look"


@pytest.mark.parametrize("path", ["/v1/pause", "/v1/stop"])
def test_write_that_redis_refuses_can_be_retried(client: TestClient, state: RunState, path: str) -> None:
    """Its last replica is away, and min-replicas-to-write is set."""
    state.transition(Status.RUNNING, "test")
    state.redis.config_set("min-replicas-to-write", 1)
    try:
        refused = client.post(path, headers=OPERATOR)
        assert client.get("/v1/status", headers=VIEWER).json()["status"] == "running"
    finally:
        state.redis.config_set("min-replicas-to-write", 0)
    assert refused.status_code == 503 and refused.json()["type"] == "urn:five:problem:store-unavailable"
    assert refused.headers["retry-after"] and "refuses writes" in refused.json()["detail"]
    assert client.post(path, headers=OPERATOR).status_code == 200


@pytest.mark.parametrize("over", [Status.STOPPING, Status.STOPPED, Status.FAILED])
def test_ended_run_can_be_started_again(client: TestClient, state: RunState, over: Status) -> None:
    if over is Status.STOPPED:
        state.transition(Status.STOPPING, "test")
    state.transition(over, "test")
    assert client.post("/v1/resume", headers=OPERATOR, json={"reason": "on"}).json()["status"] == "starting"
    now = state.status()
    assert now is not None and (now.status, now.who, now.reason) == (Status.STARTING, "ada", "on")


@pytest.mark.parametrize("path", [(), (Status.RUNNING, Status.PAUSING, Status.PAUSED, Status.OPERATING,
                                       Status.WARMING)])
def test_resume_does_not_skip_the_start_or_the_warm_up(client: TestClient, state: RunState,
                                                       path: tuple[Status, ...]) -> None:
    """A client repeats the request that has started the run."""
    for status in path:
        state.transition(status, "test")
    before = state.status()
    for query in ("", "?dry_run=true"):
        assert client.post(f"/v1/resume{query}", headers=OPERATOR).json()["status"] == (path or (Status.STARTING,))[-1]
    assert state.status() == before


def test_a_stopping_run_ends_as_stopped(state: RunState) -> None:
    state.transition(Status.STOPPING, "test")
    live = [instance("controller"), instance("optimizer")]
    assert not reconcile(state, lambda: 3, lambda: live, PauseClock())
    del live[1]
    assert reconcile(state, lambda: 3, lambda: live, PauseClock())
    now = state.status()
    assert now is not None and now.status is Status.STOPPED
    assert not reconcile(state, lambda: 3, lambda: live, PauseClock())


def test_status_has_stalled_seconds(state: RunState, client: TestClient) -> None:
    running = RunStatus(Status.RUNNING, 1000.0, "test", "")
    usual, slow = Record("1-0", 1100.0, {"seconds": 3.0}), Record("1-0", 1100.0, {"seconds": 30.0})
    assert stalled_seconds(running, None, 1050.0) == 0 and stalled_seconds(running, None, 1090.0) == 90
    assert stalled_seconds(running, usual, 1150.0) == 0 and stalled_seconds(running, usual, 1190.0) == 90
    assert stalled_seconds(running, slow, 1190.0) == 0 and stalled_seconds(running, slow, 1500.0) == 400
    assert stalled_seconds(running._replace(since=1180.0), usual, 1190.0) == 0
    assert stalled_seconds(running._replace(status=Status.PAUSED), usual, 9000.0) == 0
    state.transition(Status.RUNNING, "test")
    assert client.get("/v1/status", headers=VIEWER).json()["stalled_seconds"] == 0


def test_readiness_gives_its_reason(state: RunState, store: ParameterStore) -> None:
    reasons = ["the run's Redis does not respond", ""]
    client = TestClient(create_app(Context("trial", state, store, SchedulesConfig(), Authenticator(None)),
                                   lambda: reasons.pop(0)))
    first, second = client.get("/readyz"), client.get("/readyz")
    assert (first.status_code, first.json()) == (503, {"status": "the run's Redis does not respond"})
    assert (second.status_code, second.json()) == (200, {"status": "ready"})


def test_refused_transition_lists_allowed_ones(client: TestClient, state: RunState) -> None:
    answer = client.post("/v1/pause", headers=OPERATOR)
    assert answer.status_code == 409 and "running" in answer.json()["detail"]


def test_versions_are_listed_newest_first(client: TestClient, store: ParameterStore) -> None:
    for v in (0, 1):
        store.publish(v, {"w": np.full(3, v, np.float32)}, {"reward_std": 1.0})
    assert [r["version"] for r in client.get("/v1/versions", headers=VIEWER).json()["items"]] == [1, 0]
    assert client.get("/v1/versions/1", headers=VIEWER).json()["meta"]["reward_std"] == 1.0
    assert client.get("/v1/versions/7", headers=VIEWER).status_code == 404


def instance(kind: str, **stats: object) -> Instance:
    return Instance(kind, "a", "", "", 0.0, 0.0, dict(stats))


def test_status_names_services_that_keep_failing(state: RunState, client: TestClient) -> None:
    report_faults(state, "five train", {"evaluator-0": "keeps failing, exited with code 1"})
    assert client.get("/v1/status", headers=VIEWER).json()["faults"] == {
        "evaluator-0": "keeps failing, exited with code 1"}
    report_faults(state, "five train", {"play-0": "keeps failing, exited with code 2"})
    report_faults(state, "five train", {})
    assert read_faults(state) == {}
    assert [(e.what, e.details["service"]) for e in state.events.read() if e.who == "five train"] == [
        ("service.failing", "evaluator-0"), ("service.failing", "play-0"), ("service.recovered", "evaluator-0"),
        ("service.recovered", "play-0")]


def report(*waiting_for: str) -> IdleReport:
    return IdleReport(1, 1, time.time(), {}, list(waiting_for))


def test_run_starts_when_all_services_are_alive() -> None:
    up = [instance(k) for k in ("inference", "optimizer", "rollout")]
    assert next_status(Status.STARTING, None, up, report()) is None
    assert next_status(Status.STARTING, 0, up[:2], report()) is None
    due = next_status(Status.STARTING, 0, up, report())
    assert due is not None and due[0] is Status.RUNNING


def test_run_is_paused_when_all_services_are_idle() -> None:
    assert next_status(Status.PAUSING, 3, [], report("rollout/0")) is None
    due = next_status(Status.PAUSING, 3, [], report())
    assert due is not None and due[0] is Status.PAUSED


def test_reconcile_acts_once(state: RunState, redis_client: redis.Redis) -> None:
    for kind in ("inference", "optimizer", "rollout"):
        Lease(redis_client, "trial", kind, "a", 10.0).renew()
    up = [instance(k) for k in ("inference", "optimizer", "rollout")]
    assert reconcile(state, lambda: 0, lambda: up, PauseClock())
    assert not reconcile(state, lambda: 0, lambda: up, PauseClock())


def test_pause_waits_for_all_and_names_busy_services_once(
        state: RunState, redis_client: redis.Redis, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    state.transition(Status.RUNNING, "test")
    rollouts = [Lease(redis_client, "trial", "rollout", name, 10.0) for name in ("a", "b")]
    for lease in rollouts:
        lease.renew({}, 1, 1)
    state.transition(Status.PAUSING, "test")
    pause = state.idle_report().pause
    assert not reconcile(state, lambda: 0, list, PauseClock())
    rollouts[0].renew({}, 1, 1, pause, True)
    assert client.get("/v1/status", headers=VIEWER).json()["waiting_for"] == ["rollout/b"]
    # The machine's clock may jump forward or back.
    clock = PauseClock()
    for jump in (1e6, -1e6):
        with monkeypatch.context() as clocks:
            clocks.setattr(time, "time", lambda jump=jump: 1.8e9 + jump)
            assert not reconcile(state, lambda: 0, list, clock, pause_timeout_seconds=60.0)
    assert [reconcile(state, lambda: 0, list, clock, pause_timeout_seconds=0.0) for _ in range(3)] == [True,
                                                                                                       False, False]
    (event,) = [e for e in state.events.read() if e.what == "run.pause_overdue"]
    assert event.details["waiting_for"] == ["rollout/b"]
    assert (now := state.status()) is not None and now.status is Status.PAUSING  # it goes on waiting
    rollouts[1].renew({}, 1, 1, pause, True)
    assert reconcile(state, lambda: 0, list, PauseClock())
    assert (now := state.status()) is not None and now.status is Status.PAUSED
    assert client.get("/v1/status", headers=VIEWER).json()["waiting_for"] == []


def test_transition_of_an_older_epoch_is_dropped(state: RunState) -> None:
    with pytest.raises(FencedOut):
        state.transition(Status.RUNNING, "test", epoch=2)
    assert (now := state.status()) is not None and now.status is Status.STARTING
    state.transition(Status.RUNNING, "test", epoch=1)


def test_status_shows_drift_of_the_file(redis_client: redis.Redis, store: ParameterStore) -> None:
    config = load("laptop-1v1")
    run = RunState(redis_client, config.name)
    set_up_run(run, config, "test")
    before = run.record()
    assert before is not None
    run.set_record(before, before.changed(new_epoch=False, model={**before.model, "lstm": 24}), "ada", "record.set", {})
    gate = Authenticator(FixedTokens.of(vera=("viewer", "viewer-token")))
    context = Context(config.name, run, store, config.schedules, gate, file_config=config)
    shown = TestClient(create_app(context)).get("/v1/status", headers=VIEWER).json()
    assert (shown["epoch"], shown["record_revision"]) == (1, 2)
    assert shown["drift"] == [{"key": "model.lstm", "file": config.model.lstm, "record": 24}]


def test_dry_run_of_every_change_changes_nothing(
        client: TestClient, app: FastAPI, state: RunState, store: ParameterStore, redis_client: redis.Redis) -> None:
    for path, methods in app.openapi()["paths"].items():
        for method in methods.keys() - {"get"}:
            names = {parameter["name"] for parameter in methods[method]["parameters"]}
            # Neither changes anything of the run: a plan is only made, and a game that people play never trains.
            told = path in ("/v1/surgery/plan", "/v1/surgery/read") or path.startswith("/v1/play/")
            assert "dry_run" in names or told, (method, path)
    state.transition(Status.RUNNING, "test")
    ramp = {"start": 10, "length": 5, "to": 1e-6}
    made = client.put("/v1/schedules/learning_rate", json=ramp,
                      headers={**OPERATOR, "If-Match": "*"}).json()["change"]
    match = client.post("/v1/matches", json={}, headers=OPERATOR).json()["id"]
    before = everything(redis_client)
    asked = [("POST", "/v1/pause", {}, 200), ("POST", "/v1/stop", {}, 200), ("POST", "/v1/resume", {}, 200),
             ("PUT", "/v1/schedules/team_spirit", ramp, 200),
             ("PUT", "/v1/schedules/team_spirit", {**ramp, "to": 7}, 422),
             ("POST", f"/v1/schedules/history/{made}/revert", {"start": 12}, 200), ("POST", "/v1/matches", {}, 200),
             ("POST", f"/v1/matches/{match}/cancel", {}, 200), ("POST", "/v1/matches/m-000000000000/cancel", {}, 404)]
    answers = []
    for method, path, body, status in asked:
        answer = client.request(method, path, json=body, params={"dry_run": "true"},
                                headers={**OPERATOR, "If-Match": "*"})
        assert answer.status_code == status, (path, answer.text)
        answers.append(answer.json())
    assert [answer["status"] for answer in answers[:3]] == ["pausing", "stopping", "running"]
    assert answers[3]["schedule"]["ramps"][-1]["to"] == 1e-6 and answers[3]["change"] is None
    assert (answers[6]["state"], answers[7]["state"]) == ("waiting", "cancelled")
    assert everything(redis_client) == before
    # Impossible requests are refused with dry_run as well.
    state.transition(Status.STOPPING, "test")
    assert client.post("/v1/pause", params={"dry_run": "true"}, headers=OPERATOR).status_code == 409

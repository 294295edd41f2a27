"""Surgery over REST with real Redis and the real library: plans, accepted and refused requests."""

from collections.abc import Iterator
from typing import Any

import psutil
import pytest
import redis

from five.agent.surgery import AgentSpec, Plan
from five.services.controller.operations.backend import StepLimits
from five.services.controller.operations.document import OperationState, StepState
from five.services.controller.operations.loop import advance_once
from five.services.controller.operations.run_backend import RunBackend
from five.services.controller.operations.store import OperationStore
from five.services.controller.surgery.plans import model_schema
from rapid.blobs import BlobStore
from rapid.store.jobs import JobQueue, JobState
from rapid.store.state import Status
from rapid.store.surgery_plans import PlanChecks, PlanStore
from tests.services.live_controller import RUN, VIEWER, LiveController, live, problem
from tests.services.optimizer_cases import GAME, MODEL

OLD = AgentSpec(GAME, MODEL)
WISH = {"name": "wider", "overrides": ["model.lstm=16", "game.observation.pickups=2"], "warm_up_versions": 2}


@pytest.fixture
def rest(redis_client: redis.Redis, redis_url: str) -> Iterator[LiveController]:
    with live(redis_url, agent=OLD) as found:
        yield found


def planned(rest: LiveController, **changes: Any) -> dict[str, Any]:
    answer = rest.ask("POST", "/v1/surgery/plan", json={**WISH, **changes})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def passed(rest: LiveController, plan: dict[str, Any], ok: bool = True, epoch: int = 1) -> str:
    """Store the result of a passed check."""
    PlanChecks(rest.state).put(plan["digest"], {
        "plan": plan["plan"], "name": plan["name"], "parent": plan["parent"], "epoch": epoch, "bounds": {},
        "operation": "check-1", "who": "ada",
        "result": {"ok": ok, "why": "" if ok else "mean_kl is 0.5, the plan allows 0.01", "version": 3}})
    return str(plan["digest"])


def test_plan_lists_changes_and_changes_nothing(rest: LiveController, redis_client: redis.Redis) -> None:
    before = {key: redis_client.dump(key) for key in redis_client.keys("*")}  # type: ignore[union-attr]
    plan = planned(rest)
    assert {key: redis_client.dump(key) for key in redis_client.keys("*")} == before  # type: ignore[union-attr]
    read = Plan.from_yaml(plan["plan"])
    assert (read.digest, read.parent, read.warm_up_versions) == (plan["digest"], OLD.schema, 2)
    assert plan["schema"] == read.target(OLD).schema
    assert plan["parameters_before"] == OLD.parameters < plan["parameters_after"]
    assert [row["kind"] for row in plan["changes"]] == ["grow_lstm", "slots"]
    assert {note["code"] for note in plan["lint"]} >= {"memory", "no-prior"}


def test_written_plan_reads_like_a_derived_one(rest: LiveController,
                                               redis_client: redis.Redis) -> None:
    derived = planned(rest)
    before = {key: redis_client.dump(key) for key in redis_client.keys("*")}  # type: ignore[union-attr]
    written = "# by hand\n" + derived["plan"]
    answer = rest.ask("POST", "/v1/surgery/read", json={"plan": written})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {**derived, "plan": written}
    edited = rest.ask("POST", "/v1/surgery/read", json={"plan": derived["plan"].replace("to: 16", "to: 24")}).json()
    assert edited["digest"] != derived["digest"] and edited["parameters_after"] > derived["parameters_after"]
    for plan, why in (("name: wider", "parent"), ("- 1", "plan"),
                      (derived["plan"].replace(OLD.schema, "f" * 16), "f" * 16)):
        assert why in problem(rest.ask("POST", "/v1/surgery/read", json={"plan": plan}), 422, "invalid")["detail"]
    assert {key: redis_client.dump(key) for key in redis_client.keys("*")} == before  # type: ignore[union-attr]
    assert rest.ask("POST", "/v1/surgery/read", VIEWER, json={"plan": written}).status_code == 403


@pytest.mark.parametrize(("overrides", "why"), [
    (["model.lstm=8"], "do not differ"),
    (["model.lstm=4"], "can only grow"),
    (["learning.batch_samples=4"], "keys of game and model"),
    (["model.nothing=1"], "nothing"),
    (["model.lstm=1000000000"], "65536"),
    (["game.heroes_per_team=5"], "heroes"),
    (["model.lstm"], "model.lstm"),
    (["game.hero_pool=[snipr]"], "did you mean 'sniper'?"),
    (['game.hero_pool=["\\ud800"]'], "is not in patch"),
])
def test_impossible_change_is_explained(rest: LiveController, overrides: list[str], why: str) -> None:
    answer = rest.ask("POST", "/v1/surgery/plan", json={"name": "wider", "overrides": overrides})
    assert why in problem(answer, 422, "invalid")["detail"]


@pytest.mark.parametrize("plan", [
    "a: &a [b]\nc: [*a, *a]", "!!python/object:os.system {}", "x: " + "[" * 5000, "name: wider", "- 1",
    f"name: wider\nparent: {'0' * 16}\nsteps:\n- kind: grow_lstm\n  to: 16\n",
    f"name: wider\nparent: {OLD.schema}\nsteps:\n- kind: grow_lstm\n  to: 1000000000000\n",
    f"name: ../../etc\nparent: {OLD.schema}\nsteps:\n- kind: grow_lstm\n  to: 16\n",
    f"name: wider\nparent: {OLD.schema}\nsteps:\n- kind: grow_lstm\n  to: 4\n"])
def test_invalid_plan_starts_nothing(rest: LiveController, plan: str) -> None:
    answer = rest.ask("POST", "/v1/surgery/check", json={"plan": plan})
    assert answer.status_code in (409, 422), answer.text
    assert OperationStore(rest.state).all() == []


@pytest.mark.parametrize(("steps", "why"), [
    ("- kind: grow_lstm\n  to: 1000000000000\n", "65536"),
    ("- kind: grow_lstm\n  to: 65536\n", "at most 1,000,000,000 are allowed"),
    ("- kind: add_ids\n  rows: {unit: 1000000000000}\n", "rows"),
    ("- kind: slots\n  slots: {pickups: 1000000000000}\n", "less than or equal to 64"),
])
def test_oversized_plan_is_refused_before_allocation(rest: LiveController, steps: str,
                                                     why: str) -> None:
    process = psutil.Process()
    before = process.memory_info().rss
    answer = rest.ask("POST", "/v1/surgery/check", json={"plan": f"name: wider\nparent: {OLD.schema}\nsteps:\n{steps}"})
    assert why in problem(answer, 422, "invalid")["detail"]
    assert process.memory_info().rss - before < 64 << 20
    assert OperationStore(rest.state).all() == []


def test_only_one_check_runs_at_a_time(rest: LiveController) -> None:
    plan = planned(rest)
    dry = rest.ask("POST", "/v1/surgery/check", json={"plan": plan["plan"]}, params={"dry_run": "true"})
    assert (dry.status_code, dry.json()["id"]) == (200, "dry-run")
    assert OperationStore(rest.state).all() == []

    answer = rest.ask("POST", "/v1/surgery/check", json={"plan": plan["plan"], "reason": "a try"})
    assert answer.status_code == 202
    operation = answer.json()
    assert answer.headers["location"] == f"/v1/operations/{operation['id']}"
    assert (operation["kind"], operation["who"], operation["reason"], operation["was"]) == (
        "check", "ada", "a try", "running")
    assert rest.ask("GET", answer.headers["location"], VIEWER).json() == operation
    second = problem(rest.ask("POST", "/v1/surgery/check", json={"plan": plan["plan"]}), 409, "operation-in-progress")
    assert second["operation"] == operation["id"]
    listed = rest.ask("GET", "/v1/operations", VIEWER).json()["items"]
    assert [o["id"] for o in listed] == [operation["id"]]


def test_apply_needs_the_digest_of_a_current_checked_plan(rest: LiveController) -> None:
    plan = planned(rest)
    unknown = rest.ask("POST", "/v1/surgery/apply", json={"digest": plan["digest"]})
    assert "check first" in problem(unknown, 404, "not-found")["detail"]
    digest = passed(rest, plan, ok=False)
    refused = rest.ask("POST", "/v1/surgery/apply", json={"digest": digest})
    assert "mean_kl is 0.5" in problem(refused, 409, "not-approved")["detail"]
    passed(rest, plan)
    assert rest.ask("GET", f"/v1/surgery/checks/{digest}", VIEWER).json()["result"]["ok"]

    # The model has moved on within the epoch; then the epoch has.
    before = rest.state.record()
    assert before is not None
    moved = before.changed(new_epoch=False, model={**before.model, "lstm": 12})
    rest.state.set_record(before, moved, "test", "record.set", {})
    stale = rest.ask("POST", "/v1/surgery/apply", json={"digest": digest})
    assert "starts from model schema" in problem(stale, 409, "stale-plan")["detail"]
    rest.state.set_record(moved, moved.changed(new_epoch=False, model=before.model), "test", "record.set", {})
    passed(rest, plan, epoch=2)
    stale = rest.ask("POST", "/v1/surgery/apply", json={"digest": digest})
    assert "epoch 2" in problem(stale, 409, "stale-plan")["detail"]

    passed(rest, plan)
    answer = rest.ask("POST", "/v1/surgery/apply", json={"digest": digest, "hold": True})
    assert answer.status_code == 202, answer.text
    assert answer.json()["request"]["hold"]
    assert len(answer.json()["steps"]) == 9


def test_surgery_requires_a_running_or_paused_run(rest: LiveController) -> None:
    digest = passed(rest, planned(rest))
    rest.state.transition(Status.STOPPING, "test")
    refused = rest.ask("POST", "/v1/surgery/apply", json={"digest": digest})
    assert "the run is stopping" in problem(refused, 409, "illegal-transition")["detail"]


def test_operation_cancels_before_publish_and_continues_at_hold(rest: LiveController) -> None:
    digest = passed(rest, planned(rest))
    identity = rest.ask("POST", "/v1/surgery/apply", json={"digest": digest, "hold": True}).json()["id"]
    path = f"/v1/operations/{identity}"
    assert rest.ask("POST", f"{path}/cancel", VIEWER).status_code == 403
    problem(rest.ask("POST", "/v1/operations/none/cancel"), 404, "not-found")
    early = problem(rest.ask("POST", f"{path}/continue"), 409, "conflict")
    assert "not reached its hold" in early["detail"]

    dry = rest.ask("POST", f"{path}/cancel", params={"dry_run": "true"}, json={"reason": "no"})
    assert dry.json()["cancel"]["reason"] == "no"
    store = OperationStore(rest.state)
    assert (found := store.get(identity)) is not None and found.cancel is None

    store.change(identity, lambda o: o.with_step("publish", state=StepState.GOING))
    late = problem(rest.ask("POST", f"{path}/cancel"), 409, "conflict")
    assert "no longer be cancelled" in late["detail"]
    store.change(identity, lambda o: o.with_step("publish", state=StepState.WAITING))
    assert rest.ask("POST", f"{path}/cancel", json={"reason": "no"}).json()["cancel"]["who"] == "ada"
    told = [e.what for e in rest.state.events.last(3)]
    assert "operation.cancel" in told


def test_failed_job_restores_the_run(rest: LiveController, redis_client: redis.Redis, tmp_path: Any) -> None:
    """The engine with real stores: no live service to pause, and an optimizer that refuses the check."""
    digest = passed(rest, planned(rest))
    identity = rest.ask("POST", "/v1/surgery/apply", json={"digest": digest}).json()["id"]
    store = OperationStore(rest.state)
    blobs = BlobStore(str(tmp_path / "blobs"))
    backend = RunBackend(rest.state, rest.context.store, blobs, StepLimits(), model_schema)
    blobs.put(b"half made", f"{RUN}/operations/{identity}/checkpoint")
    assert advance_once(store, backend)
    assert (now := rest.state.status()) is not None and now.status is Status.PAUSING
    rest.state.transition(Status.PAUSED, "test")
    advance_once(store, backend)
    assert (now := rest.state.status()) is not None and now.status is Status.OPERATING
    orders = JobQueue(rest.state)
    claimed = orders.claim("optimizer 0", 1)
    assert claimed is not None
    assert claimed.kind == "check"
    assert orders.complete(claimed, JobState.REFUSED, error="it cannot be")
    advance_once(store, backend)
    found = store.get(identity)
    assert found is not None
    assert found.state is OperationState.FAILED
    assert "it cannot be" in found.outcome
    assert (now := rest.state.status()) is not None and now.status is Status.RUNNING
    assert blobs.refs(f"{RUN}/operations/") == []
    assert orders.get(claimed.id) is None
    record = rest.state.record()
    assert record is not None
    assert (record.epoch, record.chain) == (1, ())


def test_the_log_shows_the_chain_and_an_edited_plan(rest: LiveController) -> None:
    assert rest.ask("GET", "/v1/surgery/log", VIEWER).json()["items"] == []
    plan = planned(rest)
    digest = plan["digest"]
    before = rest.state.record()
    assert before is not None
    rest.state.set_record(before, before.changed(new_epoch=False, chain=(digest, "f" * 64)), "test", "record.set", {})
    row = {"plan": plan["plan"], "name": "wider", "parent": plan["parent"], "schema": plan["schema"], "epoch": 2,
           "version": 4, "warm_up_until": 6, "who": "ada", "at": 1.0, "operation": "op-1"}
    PlanStore(rest.state).put(digest, row)
    first, second = rest.ask("GET", "/v1/surgery/log", VIEWER).json()["items"]
    assert (first["holds"], first["version"], first["schema"]) == (True, 4, plan["schema"])
    assert (second["holds"], "missing" in second["why"]) == (False, True)
    PlanStore(rest.state).put(digest, {**row, "plan": plan["plan"].replace("to: 16", "to: 20")})
    edited, _ = rest.ask("GET", "/v1/surgery/log", VIEWER).json()["items"]
    assert not edited["holds"]
    assert "edited" in edited["why"]
    again = rest.ask("POST", "/v1/surgery/apply", json={"digest": passed(rest, plan)})
    assert "already applied" in problem(again, 409, "stale-plan")["detail"]

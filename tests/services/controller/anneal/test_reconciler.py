"""Anneals under the controller's reconciler, and the preview of a revert: through REST, with real Redis and blobs."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dota.config import GameConfig
from five.agent.anneal.document import AnnealState
from five.agent.anneal.guard import Pair
from five.agent.anneal.pair_records import pair_key, pair_to_json
from five.agent.anneal.variants import Variant
from five.agent.config import ScheduleConfig, SchedulesConfig
from five.agent.schedules import dump_schedules
from five.agent.standings import Standing
from five.services.controller.anneal.reconciler import AnnealReconciler, read_anneal
from five.services.controller.operations.backend import StepLimits
from five.services.controller.operations.document import Operation, OperationKind, OperationState
from five.services.controller.operations.loop import advance_once
from five.services.controller.operations.run_backend import RunBackend
from five.services.controller.operations.store import OperationStore
from five.services.controller.surgery.revert import restore_schedules
from rapid.blobs import BlobStore, Ref
from rapid.config import StoreConfig
from rapid.store.anneal import AnnealStore
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.fencing import PublisherLease
from rapid.store.jobs import JobQueue, JobState
from rapid.store.operation_blobs import preserved_checkpoint
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.schedules import ScheduleStore
from rapid.store.state import RunState, Status
from tests.services.live_controller import RUN, VIEWER, LiveController, live, problem

GAME = GameConfig(patch="7.19", mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"])
WISH: dict[str, Any] = {"name": "patch", "overrides": {"patch": "7.21d"}, "versions": 100,
                        "guard": {"loss": 0.3, "pairs": 400}}


class Run:
    """Served controller of a run whose optimizer is the test."""

    def __init__(self, rest: LiveController, folder: Path) -> None:
        self.rest = rest
        self.state = RunState(rest.state.redis, RUN)
        self.blobs = BlobStore(str(folder / "blobs"))
        self.store = ParameterStore(self.state.redis, self.state.redis, RUN,
                                    StoreConfig(archive_every=1, keep_versions=2), self.blobs)
        rest.context.blobs = self.blobs
        self.operations = OperationStore(self.state)
        self.backend = RunBackend(self.state, self.store, self.blobs, StepLimits(attempts=2), lambda record: "s")
        self.reconciler = AnnealReconciler(self.state, self.operations, self.store.head)
        self.published = -1

    def publish(self, upto: int) -> None:
        for version in range(self.published + 1, upto + 1):
            self.store.publish(version, {"w": np.full(3, version, np.float32)}, {"schema": "s"})
        self.published = max(upto, self.published)

    def ask(self, method: str, path: str, status: int = 200, **arguments: Any) -> Any:
        answer = self.rest.ask(method, path, **arguments)
        assert answer.status_code == status, answer.text
        return answer.json()

    def apply_step(self, *kinds: str) -> None:
        """Advance the operation until it waits, answering optimizer jobs of these kinds."""
        for _ in range(10):
            advance_once(self.operations, self.backend)
            claimed = JobQueue(self.state).claim("optimizer-0", 1)
            if claimed is not None:
                assert claimed.kind in kinds
                JobQueue(self.state).complete(claimed, JobState.DONE, {
                    "head": self.published, "checkpoint": self.published})

    def begin(self, **changes: Any) -> str:
        operation = self.ask("POST", "/v1/anneal", 202, json={**WISH, **changes})
        self.apply_step("keep")
        done = self.operations.get(operation["id"])
        assert done is not None and done.state is OperationState.DONE, done
        return str(self.ask("GET", "/v1/anneal")["anneal"]["id"])

    def play(self, new: float, count: int, old: float = 0.1, version: int = 20, share: float = 1.0) -> None:
        """Record evaluator pairs with these mean scores under each rule."""
        anneal = read_anneal(self.state)
        assert anneal is not None
        rng = np.random.default_rng(1)
        for rule, mean in ((Variant.OLD, old), (Variant.NEW, new)):
            for n, u in enumerate(rng.random(count)):
                score = 1.0 if u < (0.6 + mean) / 2 else -1.0 if u < 0.6 else 0.0
                pair = Pair(rule, n, version, share, (score, score))
                AnnealStore(self.state).pairs().set(pair_key(anneal.trial, rule, n), pair_to_json(pair))

    def now(self) -> AnnealState:
        found = self.reconciler.reconcile()
        assert found is not None
        return found.state


@pytest.fixture
def run(redis_url: str, redis_client: Any, tmp_path: Path) -> Iterator[Run]:
    with live(redis_url, create=False) as rest:
        run = Run(rest, tmp_path)
        run.state.create({"name": RUN}, "test", RunRecord(game=GAME.model_dump(mode="json"), layout="l", schema="s"))
        run.publish(10)
        run.state.transition(Status.RUNNING, "test")
        yield run


def test_an_anneal_keeps_a_checkpoint_and_begins_at_nothing(run: Run) -> None:
    would = run.ask("POST", "/v1/anneal?dry_run=true", json=WISH)
    assert [s["name"] for s in would["steps"]] == ["keep", "begin"] and read_anneal(run.state) is None
    assert run.operations.all() == []
    identity = run.begin()
    now = run.ask("GET", "/v1/anneal", token=VIEWER)
    assert now["anneal"]["base"] == now["anneal"]["began"] == now["version"] == 10 and identity.startswith("patch-")
    assert (now["share"], now["verdict"], now["reason"]) == (0.0, "inconclusive", "no pairs have been played yet")
    # The response has the guard's error rates, and the simulation meets them.
    stated = now["guard_power"]
    assert (stated["false_alarm"], stated["loss"]) == (0.05, 0.3)
    assert min(stated["caught"].values()) > 0.95 and max(stated["pairs_to_catch"].values()) < 150
    run.publish(35)
    run.now()
    assert run.ask("GET", "/v1/anneal")["share"] == 0.25
    assert run.ask("POST", "/v1/anneal", 409, json=WISH)["type"].endswith("conflict")
    assert [e.what for e in run.state.events.last(20) if e.what.startswith("anneal")] == ["anneal.began"]


@pytest.mark.parametrize(("overrides", "said"), [
    ({"patch": "6.84"}, "game.patch"), ({"patch": 7.21}, 'quote it to make it text.*7.21'),
    ({"patch": "7.19"}, "nothing to anneal"), ({"no_key": 1}, "no_key"),
    ({"observation": {"pickups": 2}}, "Use surgery"),
    ({"heroes_per_team": 2, "hero_pool": ["lion", "sven"]}, "layout"),
    ({"x": "y" * 20_000}, "no_key|x"), ({}, "overrides")])
def test_a_change_that_cannot_be_annealed_is_refused_by_name(run: Run, overrides: dict[str, Any], said: str) -> None:
    import re

    answer = run.rest.ask("POST", "/v1/anneal", json={**WISH, "overrides": overrides})
    assert answer.status_code == 422 and re.search(said, answer.text), answer.text
    assert run.operations.all() == []


def test_guard_passes_open_gates_and_finish_the_anneal(run: Run) -> None:
    run.begin(versions=20)
    run.publish(30)
    assert run.now() is AnnealState.HOLDING
    shown = run.ask("GET", "/v1/anneal")
    assert shown["share"] == 0.5 and shown["anneal"]["held_by"] == "gate" and "no pairs" in shown["anneal"]["reason"]
    run.play(0.1, 300, version=30, share=0.5)
    assert run.now() is AnnealState.RAMPING
    run.publish(50)
    assert run.now() is AnnealState.HOLDING  # pairs at half of the games do not pass the gate of all games
    before = run.state.record()
    run.play(0.1, 300, version=50, share=1.0)
    assert run.now() is AnnealState.PROMOTED
    record = run.state.record()
    assert record is not None and before is not None
    assert record == before.changed(new_epoch=False, game=GAME.model_copy(update={"patch": "7.21d"}).model_dump(
        mode="json"))
    assert run.now() is AnnealState.PROMOTED and run.state.record() == record  # and once only
    assert [s.what for s in run.state.lineage().segments][-1] == "anneal.made_the_game"
    assert run.ask("GET", "/v1/anneal")["share"] == 0.0


def test_a_failure_is_reverted_and_tried_again_slower(run: Run) -> None:
    identity = run.begin(policy={"tries": 2, "slower": 2.0})
    run.publish(40)
    assert run.now() is AnnealState.RAMPING
    run.play(-0.5, 120, version=40, share=0.3)
    assert run.ask("GET", "/v1/anneal")["verdict"] == "fail"
    assert run.now() is AnnealState.FAILED and run.ask("GET", "/v1/anneal")["share"] == 0.0
    run.state.transition(Status.RUNNING, "test")
    run.now()
    (operation,) = [o for o in run.operations.all() if o.kind is OperationKind.REVERT]
    assert operation.request.to_version == 10 and operation.who == "controller" and "worse" in operation.reason
    for _ in range(3):
        run.now()
    assert len([o for o in run.operations.all() if o.kind is OperationKind.REVERT]) == 1
    ended(run, operation, OperationState.DONE)
    run.publish(41)
    assert run.now() is AnnealState.RAMPING
    anneal = read_anneal(run.state)
    assert anneal is not None
    assert (anneal.id, anneal.attempt, anneal.ramp.length, anneal.ramp.start, anneal.base) == (identity, 2, 200, 41, 10)
    # Pairs of the first attempt say nothing of the second.
    assert run.ask("GET", "/v1/anneal")["verdict"] == "inconclusive"
    run.play(-0.6, 120, version=60)
    assert run.now() is AnnealState.FAILED
    run.now()
    (again,) = [o for o in run.operations.all() if o.kind is OperationKind.REVERT and not o.is_over]
    ended(run, again, OperationState.DONE)
    assert run.now() is AnnealState.REVERTED
    assert "last of 2 attempts" in run.ask("GET", "/v1/anneal")["anneal"]["reason"]


def ended(run: Run, operation: Operation, state: OperationState) -> None:
    """End the revert as the engine would."""
    assert run.operations.save(operation, operation.model_copy(update={"state": state, "ended_at": 1.0}))


def test_a_revert_waits_until_its_checkpoint_is_the_runs(run: Run) -> None:
    """Staged blobs are removed when the operation ends: a slow optimizer must find its checkpoint before that."""
    run.begin()
    run.publish(30)
    run.ask("POST", "/v1/anneal/revert", json={"reason": "it looks odd"})
    run.now()
    (operation,) = [o for o in run.operations.all() if o.kind is OperationKind.REVERT]
    waits = "the optimizer, to resume from the checkpoint of version 31"
    assert waits not in run.backend.not_renewed(operation)
    published = operation.with_step("publish", result={"version": 31})
    assert waits in run.backend.not_renewed(published)
    index = CheckpointIndex(run.state.redis, RUN)
    fencing_token = PublisherLease(run.state.redis, RUN, "test", 30).acquire()
    for version in (30, 31):
        assert waits in run.backend.not_renewed(published)
        index.commit(fencing_token, version, "a checkpoint", Ref("0" * 64, 1))
    assert waits not in run.backend.not_renewed(published)


def test_an_unavailable_evaluator_is_not_a_failure(run: Run) -> None:
    run.begin(versions=10)
    run.publish(50)
    for _ in range(20):
        assert run.now() is AnnealState.HOLDING
    assert run.ask("GET", "/v1/anneal")["share"] == 0.5


def test_hold_share_resume_promote_and_abort_by_request(run: Run) -> None:
    for verb in ("hold", "resume", "promote", "abort", "revert"):
        assert run.rest.ask("POST", f"/v1/anneal/{verb}").status_code == 404
        assert run.rest.ask("POST", f"/v1/anneal/{verb}", token=VIEWER).status_code == 403
    run.begin()
    run.publish(30)
    assert run.ask("POST", "/v1/anneal/hold?dry_run=true")["anneal"]["state"] == "holding"
    assert read_anneal(run.state).state is AnnealState.RAMPING  # type: ignore[union-attr]
    held = run.ask("POST", "/v1/anneal/hold")
    assert held["share"] == pytest.approx(0.2) and held["anneal"]["held_by"] == "ada"
    assert run.ask("POST", "/v1/anneal/hold") == held
    run.publish(60)
    assert run.now() is AnnealState.HOLDING
    assert run.ask("PUT", "/v1/anneal/share", json={"share": 0.75})["share"] == 0.75
    assert run.rest.ask("PUT", "/v1/anneal/share", json={"share": 1.5}).status_code == 422
    assert run.ask("POST", "/v1/anneal/resume")["anneal"]["state"] == "ramping"
    aborted = run.ask("POST", "/v1/anneal/abort")
    assert aborted["share"] == 0 and "weights are kept" in aborted["anneal"]["reason"]
    assert "only a ramping or holding anneal" in run.ask("POST", "/v1/anneal/hold", 409)["detail"]
    run.begin()
    assert run.ask("POST", "/v1/anneal/promote")["anneal"]["state"] == "promoted"
    assert run.state.record().game["patch"] == "7.21d"  # type: ignore[union-attr]
    what = [e.what for e in run.state.events.last(40) if e.what.startswith("anneal")]
    assert what[::-1] == ["anneal.began", "anneal.holding", "anneal.holding", "anneal.ramping", "anneal.aborted",
                          "anneal.began", "anneal.made_the_game", "anneal.promoted"]


def test_a_revert_by_request_is_not_tried_again(run: Run) -> None:
    run.begin()
    run.publish(30)
    asked = run.ask("POST", "/v1/anneal/revert", json={"reason": "it looks odd"})
    assert asked["anneal"]["state"] == "failed" and "it looks odd" in asked["anneal"]["reason"]
    run.now()
    (operation,) = [o for o in run.operations.all() if o.kind is OperationKind.REVERT]
    ended(run, operation, OperationState.DONE)
    assert run.now() is AnnealState.REVERTED


def test_failed_revert_is_repeated_by_a_second_request(run: Run) -> None:
    run.begin()
    run.publish(30)
    for count in (1, 2):
        run.ask("POST", "/v1/anneal/revert", json={"reason": "it looks odd"})
        for _ in range(2):
            assert run.now() is AnnealState.FAILED
        reverts = [o for o in run.operations.all() if o.kind is OperationKind.REVERT]
        assert len(reverts) == count
        (operation,) = [o for o in reverts if not o.is_over]
        ended(run, operation, OperationState.FAILED)
    assert run.now() is AnnealState.FAILED
    assert len([o for o in run.operations.all() if o.kind is OperationKind.REVERT]) == 2


def test_the_effects_of_a_revert_are_listed_first(run: Run) -> None:
    run.blobs.set_ref(preserved_checkpoint(RUN, 4, "anneal-1"), run.blobs.put(b"a checkpoint"))
    ScheduleStore(run.state)
    changed = SchedulesConfig(learning_rate=ScheduleConfig(initial=1e-3))
    restore_schedules(run.state, SchedulesConfig(), dump_schedules(changed), "ada", "test")
    for version in (2, 6, 8):
        run.state.table("league").set(f"version:{version}", [0.0, 1, 0])
    run.state.table("ratings").set("format", 2)
    for player, reference in (("random", True), ("version-2", False), ("version-6", True)):
        run.state.table("ratings").set(f"rated:{player}", asdict(Standing(player, 1.0, 1.0, 1, 0.1, reference)))
    would = run.ask("GET", "/v1/revert/4", token=VIEWER)
    assert (would["to_version"], would["head"], would["complete"]) == (4, 10, True)
    assert would["versions"] == [{"first": 5, "last": 10}] and would["opponents"] == [6, 8]
    assert (would["ratings"], would["references"], would["surgeries"], would["record"]) == ([6], [6], [], [])
    assert [s["name"] for s in would["schedules"]] == ["learning_rate"]
    assert not run.ask("GET", "/v1/revert/3")["complete"]
    for version in (10, 99):
        assert "must be below" in run.ask("GET", f"/v1/revert/{version}", 409)["detail"]
    page = run.ask("GET", "/v1/revert/targets?limit=3")
    assert [(t["version"], t["complete"], t["line"]) for t in page["items"]] == [
        (9, False, True), (8, False, True), (7, False, True)] and page["total"] == 10
    # Asked for: dry first, then bound to the epoch.
    steps = run.ask("POST", "/v1/revert?dry_run=true", json={"to": 4})["steps"]
    assert steps[0]["name"] == "pause" and run.operations.all() == []
    assert run.ask("POST", "/v1/revert", 409, json={"to": 4, "epoch": 7})["type"].endswith("stale-epoch")
    assert run.rest.ask("POST", "/v1/revert", token=VIEWER, json={"to": 4}).status_code == 403
    begun = run.ask("POST", "/v1/revert", 202, json={"to": 4, "epoch": 1, "reason": "worse"})
    assert begun["request"]["to_version"] == 4 and begun["who"] == "ada"
    assert run.ask("POST", "/v1/revert", 409, json={"to": 4})["type"].endswith("operation-in-progress")


def test_schedules_go_back_once_with_a_line_in_the_history_each(run: Run) -> None:
    then = SchedulesConfig(learning_rate=ScheduleConfig(initial=2e-4), team_spirit=ScheduleConfig(initial=0.7))
    for expected in (["learning_rate", "team_spirit"], []):
        found = restore_schedules(run.state, SchedulesConfig(), dump_schedules(then), "ada", "revert-1")
        assert sorted(found) == expected
    assert run.state.schedules() == dump_schedules(then)
    assert {r.values["name"] for r in ScheduleStore(run.state).history(9)} == {"learning_rate", "team_spirit"}
    assert restore_schedules(run.state, SchedulesConfig(), None, "ada", "revert-2") == []


def test_a_persons_revert_behind_an_anneal_ends_it(run: Run) -> None:
    identity = run.begin()
    run.publish(30)
    assert run.ask("GET", "/v1/revert/5")["anneal"] == identity
    assert run.ask("GET", "/v1/revert/20")["anneal"] == ""
    operation = run.ask("POST", "/v1/revert", 202, json={"to": 5})
    found = run.operations.get(operation["id"])
    assert found is not None
    assert run.backend.restore(found)["anneal"] == identity and run.backend.restore(found)["anneal"] == ""
    anneal = read_anneal(run.state)
    assert anneal is not None and anneal.state is AnnealState.REVERTED
    assert "ada reverted the run to version 5" in anneal.reason


def test_unknown_revert_targets_are_not_an_empty_list(run: Run, tmp_path: Path) -> None:
    """A missing or silent blob store gives status 503 with the reason, never an empty list."""
    paths = ("/v1/revert/targets", "/v1/revert/4")
    for path in paths:
        assert run.ask("GET", path)
    run.rest.context.blobs = Away(str(tmp_path / "blobs"))
    for path in paths:
        answer = run.rest.ask("GET", path)
        assert problem(answer, 503, "unavailable")["detail"].endswith("no route to the volume")
        assert int(answer.headers["Retry-After"]) > 0
    run.rest.context.blobs = None
    for path in paths:
        assert "no blob store" in problem(run.rest.ask("GET", path), 503, "unavailable")["detail"]


class Away(BlobStore):
    """Blob store whose volume is gone."""

    def refs(self, prefix: str = "") -> list[str]:
        raise OSError("no route to the volume")

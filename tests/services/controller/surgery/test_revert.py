"""Preview of a revert: its targets and what it undoes, with hand-made lineages."""

import json
from pathlib import Path
from typing import Any

import pytest
import redis

from five.agent.anneal.document import Anneal, AnnealRamp
from five.agent.config import ScheduleConfig, SchedulesConfig
from five.agent.schedules import dump_schedules
from five.agent.standings import FORMAT, FORMAT_ROW, RATED, Standing
from five.services.controller.surgery.revert import (
    RevertError,
    RevertTarget,
    UndoneSurgery,
    VersionRange,
    list_targets,
    preview_revert,
    restore_schedules,
)
from rapid.blobs import BlobStore, Ref
from rapid.config import StoreConfig
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.fencing import FencingToken
from rapid.store.lineage import LineageSegment
from rapid.store.operation_blobs import preserved_checkpoint
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.schedules import ScheduleEdit, ScheduleStore
from rapid.store.series import Series
from rapid.store.state import RunState
from rapid.store.surgery_plans import PlanStore

FIRST = RunRecord(1, 1, {"patch": "7.19", "map": {"runes": 4, "trees": True}}, {"lstm": 8}, chain=("p0",))
SECOND = RunRecord(2, 2, {"patch": "7.21", "map": {"runes": 4, "trees": True}}, {"lstm": 16}, chain=("p0", "p1"))
THIRD = RunRecord(3, 3, {"patch": "7.21", "map": {"runes": 2}}, {"lstm": 16, "heads": 2}, chain=("p0", "p1", "p2"))


class Run:
    """A run with versions 2 to 30. Surgeries began 10 and 20; 20 continues 15, because of a revert before it."""

    def __init__(self, client: redis.Redis, folder: Path) -> None:
        self.state = RunState(client, "trial")
        self.state.create({}, "test", FIRST)
        self.blobs = BlobStore(str(folder))
        self.store = ParameterStore(client, client, "trial", StoreConfig(), self.blobs)
        keys = self.state.keys
        client.set(keys.record, THIRD.to_json())
        client.delete(keys.lineage)
        client.hset(keys.lineage, mapping={str(first): LineageSegment(first, parent, record, at=50.0).to_json() for
                                           first, parent, record in ((2, 1, FIRST), (10, 9, SECOND), (20, 15, THIRD))})
        archived = {2, 5, 9, 15, 16, 25, 30}
        client.hset(keys.versions, mapping={str(v): json.dumps(
            {"digest": "d", "bytes": 1, "created_at": 100.0 + v, "blob": "a" * 64 if v in archived else "",
             "blob_bytes": 1}) for v in range(2, 31)})
        client.set(keys.head, "30:d")
        token = FencingToken("optimizer", 3, None)
        for version in (16, 29, 30, 31):
            CheckpointIndex(client, "trial").commit(token, version, "name", Ref("b" * 64, 1))
        self.blobs.put(b"x", preserved_checkpoint("trial", 9, "surgery-1"))

    def preview(self, target: int) -> Any:
        return preview_revert(self.state, self.store, self.blobs, target)


@pytest.fixture
def run(redis_client: redis.Redis, tmp_path: Path) -> Run:
    return Run(redis_client, tmp_path)


def test_targets_are_older_versions_that_are_stored(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without reading the records of all versions, of which a run of months has a million."""
    def read_all(store: ParameterStore) -> None:
        raise AssertionError("all records are read")

    monkeypatch.setattr(ParameterStore, "records", read_all)
    found = list_targets(run.state, run.store, run.blobs)
    assert found == [RevertTarget(version=version, complete=complete, epoch=epoch, line=line)
                     for version, complete, epoch, line in (
                         (29, True, 3, True), (25, False, 3, True), (16, True, 2, False), (15, False, 2, True),
                         (9, True, 1, True), (5, False, 1, True), (2, False, 1, True))]


def test_version_before_the_lineage_is_no_target(run: Run, redis_client: redis.Redis) -> None:
    redis_client.hset(run.state.keys.versions, "1", redis_client.hget(run.state.keys.versions, "2"))  # type: ignore[arg-type]
    assert 1 not in {target.version for target in list_targets(run.state, run.store, run.blobs)}
    with pytest.raises(RevertError, match="version 1: older than the run's recorded lineage"):
        run.preview(1)


@pytest.mark.parametrize(("target", "match"), [
    (30, "version 30: must be below the newest version, 30"), (31, "version 31: must be below the newest version"),
    (28, "version 28: stored neither as a checkpoint nor in the archive")])
def test_version_that_is_no_target_is_refused(run: Run, target: int, match: str) -> None:
    with pytest.raises(RevertError, match=match):
        run.preview(target)


@pytest.mark.parametrize("lost", ["head", "record"])
def test_run_without_a_version_has_no_target(run: Run, redis_client: redis.Redis, lost: str) -> None:
    redis_client.delete(getattr(run.state.keys, lost))
    with pytest.raises(RevertError, match="the run has no version yet"):
        run.preview(5)
    if lost == "head":
        assert list_targets(run.state, run.store, run.blobs) == []


def ranges(*pairs: tuple[int, int]) -> list[VersionRange]:
    return [VersionRange(first=first, last=last) for first, last in pairs]


def test_preview_lists_what_is_after_the_target(run: Run) -> None:
    PlanStore(run.state).put("p1", {"name": "wider", "version": 10})
    found = run.preview(9)
    assert (found.to_version, found.head, found.complete) == (9, 30, True)
    assert found.versions == ranges((10, 15), (20, 30))
    assert found.surgeries == [UndoneSurgery(name="", digest="p2", version=None),
                               UndoneSurgery(name="wider", digest="p1", version=10)]
    assert found.record == ["game.map.runes: 2 -> 4", "game.map.trees: None -> True", "game.patch: '7.21' -> '7.19'",
                            "model.heads: 2 -> None", "model.lstm: 16 -> 8"]
    assert (found.schedules, found.opponents, found.ratings, found.references, found.anneal) == ([], [], [], [], "")


def test_preview_within_a_segment_undoes_no_surgery(run: Run) -> None:
    found = run.preview(25)
    assert (found.complete, found.versions, found.surgeries, found.record) == (False, ranges((26, 30)), [], [])


def test_preview_of_an_abandoned_branch_leaves_the_present_one(run: Run) -> None:
    """Version 16 was left behind by the revert to 15, and the versions from 20 are left behind now."""
    found = run.preview(16)
    assert found.versions == ranges((20, 30)) and [s.digest for s in found.surgeries] == ["p2"]


def test_preview_lists_opponents_and_ratings_outside_the_lineage(run: Run) -> None:
    run.state.table("league").update(lambda rows: {"version:9": [1], "version:10": [1], "version:25": [1], "bot": [1],
                                                   "version:5": [1]})
    players = [("version-5", True), ("version-25", True), ("version-10", False), ("bot", True), ("version-9", False)]
    run.state.table("ratings").update(lambda rows: {FORMAT_ROW: FORMAT, **{
        f"{RATED}{name}": vars(Standing(name, 25.0, 1.0, 1, 0.1, reference)) for name, reference in players}})
    found = run.preview(9)
    assert (found.opponents, found.ratings, found.references) == ([10, 25], [10, 25], [25])
    # Of an abandoned branch: its own versions stay.
    assert run.preview(16).opponents == [25]


@pytest.mark.parametrize(("state", "target", "listed"), [
    ("ramping", 5, True), ("ramping", 9, True), ("ramping", 15, False), ("holding", 9, True), ("failed", 9, True),
    ("promoted", 9, False), ("reverted", 5, False)])
def test_preview_names_the_anneal_that_it_ends(run: Run, redis_client: redis.Redis, state: str, target: int,
                                               listed: bool) -> None:
    anneal = Anneal(id="anneal-1", overrides={"patch": "7.22"}, base=9, began=9, state=state,  # type: ignore[arg-type]
                    ramp=AnnealRamp(start=10, length=5))
    redis_client.set(run.state.keys.anneal, anneal.model_dump_json())
    assert run.preview(target).anneal == ("anneal-1" if listed else "")


# Schedules.


def set_entropy(state: RunState, value: float) -> str:
    def edit(stored: Any) -> ScheduleEdit:
        after = SchedulesConfig(entropy_coefficient=ScheduleConfig(initial=value))
        return ScheduleEdit("entropy_coefficient", dump_schedules(after), None, value)

    return ScheduleStore(state).change(edit, "ada")


def test_preview_lists_schedules_changed_after_the_target(run: Run, redis_client: redis.Redis) -> None:
    """Times: the version's creation is 100 + its number. One change is as old as version 9, two are later."""
    key = Series(redis_client, "trial").key("schedules")
    set_entropy(run.state, 0.5)
    (row,) = redis_client.xrange(key)  # type: ignore[misc]
    redis_client.delete(key)
    for identity in ("108999-0", "109000-0", "109001-0", "130000-0"):
        redis_client.xadd(key, row[1], id=identity)
    found = run.preview(9).schedules
    assert [(s.id, s.name, s.who, s.at) for s in found] == [
        ("130000-0", "entropy_coefficient", "ada", 130.0), ("109001-0", "entropy_coefficient", "ada", 109.001)]
    # Without the version's record the time is that of its lineage segment, 50 s.
    redis_client.hdel(run.state.keys.versions, "9")
    assert len(run.preview(9).schedules) == 4


def test_restored_schedules_are_recorded_once(run: Run) -> None:
    configured = SchedulesConfig()
    target = configured.model_copy(update={"team_spirit": ScheduleConfig(initial=0.9),
                                           "entropy_coefficient": ScheduleConfig(initial=0.2)})
    assert restore_schedules(run.state, configured, None, "ada", "revert-1") == []
    text = dump_schedules(target)
    assert restore_schedules(run.state, configured, text, "ada", "revert-1") == ["entropy_coefficient", "team_spirit"]
    assert restore_schedules(run.state, configured, text, "ada", "revert-1") == []
    stored = run.state.document("schedules")
    assert stored == text
    history = ScheduleStore(run.state).history(10)
    assert [(r.values["name"], r.values["who"], r.values["reason"]) for r in history] == [
        ("team_spirit", "ada", "operation revert-1"), ("entropy_coefficient", "ada", "operation revert-1")]
    assert (history[0].values["before"], history[0].values["after"]) == (
        dump_schedules(configured)["team_spirit"], text["team_spirit"])

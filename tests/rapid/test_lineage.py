"""Lineage of versions through reverts and reverts of reverts."""

import numpy as np
import pytest
import redis

from rapid.blobs import Ref
from rapid.store.errors import FencedOut
from rapid.store.fencing import PublisherLease
from rapid.store.lineage import Lineage, LineageSegment, current_line_filter, new_segment
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import RunState, Status


def segment(first: int, parent: int | None = None, revision: int = 1) -> LineageSegment:
    return LineageSegment(first, first - 1 if parent is None else parent, RunRecord(revision, 1, {"patch": str(first)}))


def numbers(runs: list[range]) -> list[tuple[int, int]]:
    return [(run.start, run.stop - 1) for run in runs]


# 0..100 with a promotion from 60; a revert to 50 as 101..150; a revert to 80 of the first branch as 151 and later.
TWICE = Lineage([segment(0), segment(60), segment(101, 50), segment(151, 80)])


def test_lineage_without_reverts_has_all_versions() -> None:
    line = Lineage([segment(0), segment(60), segment(90)])
    assert sorted(v for run in line.ancestry(120) for v in run) == list(range(121))
    assert line.branches(120) == [] and numbers(line.left_behind(70, 120)) == [(71, 89), (90, 120)]
    assert all(line.is_ancestor(v, 120) for v in (0, 59, 60, 120)) and not line.is_ancestor(121, 120)


def test_revert_leaves_a_branch_and_can_be_reverted() -> None:
    assert numbers(TWICE.ancestry(150)) == [(101, 150), (0, 50)]
    assert numbers(TWICE.branches(150)) == [(51, 100)]
    assert numbers(TWICE.ancestry(160)) == [(151, 160), (60, 80), (0, 59)]
    assert numbers(TWICE.branches(160)) == [(81, 150)]
    assert [TWICE.is_ancestor(v, 160) for v in (55, 80, 81, 100, 101, 150, 151)] == [
        True, True, False, False, False, False, True]
    # A revert from the second branch leaves behind its own versions only.
    assert numbers(TWICE.left_behind(50, 150)) == [(101, 150)]
    assert numbers(TWICE.left_behind(30, 150)) == [(31, 50), (101, 150)]
    assert numbers(TWICE.left_behind(80, 150)) == [(101, 150)]  # to the first branch: both contain 0..50
    # All versions that reverts left behind, with the segments that they began.
    assert [(began.first, gone.start, gone.stop - 1) for began, gone in TWICE.reverted()] == [
        (101, 51, 59), (101, 60, 100), (151, 101, 150)]


def test_version_belongs_to_its_segments_record() -> None:
    made = {v: TWICE.segment(v) for v in (0, 59, 60, 100, 101, 150, 151, 999)}
    assert [s.first for s in made.values() if s is not None] == [0, 0, 60, 60, 101, 101, 151, 151]
    unknown = Lineage([segment(40)])
    assert unknown.segment(39) is None and numbers(unknown.ancestry(45)) == [(40, 45), (0, 39)]
    assert numbers(Lineage([]).ancestry(3)) == [(0, 3)] and Lineage([]).branches(3) == []


def test_invalid_targets_and_cycles_are_refused() -> None:
    with pytest.raises(ValueError, match="newer than the head"):
        TWICE.left_behind(170, 160)
    with pytest.raises(ValueError, match="cannot continue"):
        Lineage([segment(0), segment(10, 20)]).ancestry(15)


def test_left_behind_of_the_head_itself_is_nothing() -> None:
    assert TWICE.left_behind(160, 160) == [] and TWICE.left_behind(150, 150) == []


def test_number_of_versions_costs_nothing() -> None:
    """The console reads the branches of a run every few seconds."""
    line = Lineage([segment(0), segment(10**12, 10)])
    assert numbers(line.left_behind(10, 10**12 - 1)) == [(11, 10**12 - 1)]
    assert [numbers([gone]) for _, gone in line.reverted()] == [[(11, 10**12 - 1)]]


@pytest.mark.parametrize("parent", [10, 11])
def test_segment_that_continues_itself_is_refused(parent: int) -> None:
    with pytest.raises(ValueError, match=f"version 10 cannot continue the later version {parent}"):
        Lineage([segment(0), segment(10, parent)]).ancestry(15)


def test_revert_to_version_1_is_a_revert() -> None:
    """Neither a parent of -1, the beginning of a run, nor the previous version is one."""
    line = Lineage([segment(0), segment(1), segment(5, 1), segment(6, 0), segment(9, -1)])
    assert [(began.first, numbers([gone])) for began, gone in line.reverted()] == [
        (5, [(2, 4)]), (6, [(1, 1)]), (6, [(5, 5)])]
    assert numbers(line.ancestry(9)) == [(9, 9)]


def test_current_line_has_ancestors_and_versions_after_the_head() -> None:
    accepts = current_line_filter(TWICE, 160)
    assert [accepts(v) for v in (0, 80, 81, 150, 151, 160, 161)] == [True, True, False, False, True, True, True]
    assert all(current_line_filter(TWICE, None)(v) for v in (0, 81, 150, 500))


def test_new_segment_continues_the_previous_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rapid.store.lineage.time.time", lambda: 5.0)
    record, ref = RunRecord(2, 2), Ref("a" * 64, 9)
    assert new_segment(7, record, "what", "who") == LineageSegment(7, 6, record, "what", "who", 5.0)
    reverted = new_segment(7, record, "what", "who", 0, "op", ref)
    assert reverted == LineageSegment(7, 0, record, "what", "who", 5.0, "op", ref)
    assert LineageSegment.of(7, reverted.to_json()) == reverted


def test_segment_json_round_trip() -> None:
    made = LineageSegment(7, 3, RunRecord(2, 2, {"patch": "7.19"}, {"lstm": 8}, "l", "s", ("d",)), "run.cut_over",
                          "anna", 12.5, "revert-1")
    assert LineageSegment.of(7, made.to_json()) == made
    assert Lineage.read({b"7": made.to_json().encode()}).segments == (made,)
    plain = LineageSegment(0, -1, RunRecord())
    assert LineageSegment.of(0, plain.to_json()) == plain and (plain.at, plain.checkpoint) == (0.0, None)


def test_record_change_begins_a_segment_atomically(database: redis.Redis, store: ParameterStore) -> None:
    state = RunState(database, "r")
    state.create({}, "test", RunRecord(game={"patch": "7.19"}))
    lease = PublisherLease(database, "r", "optimizer-0", 30.0)
    fencing_token = lease.acquire()
    store.publish(0, {"w": np.zeros(3, np.float32)}, {}, fencing_token=fencing_token)
    first = state.record()
    assert first is not None
    second = first.changed(new_epoch=False, game={"patch": "7.21d"})
    state.set_record(first, second, "anna", "anneal.promoted", {})
    store.publish(1, {"w": np.ones(3, np.float32)}, {}, fencing_token=fencing_token)
    for to in (Status.RUNNING, Status.PAUSING, Status.PAUSED, Status.OPERATING):
        state.transition(to, "anna")
    third = second.changed(new_epoch=True, game=first.game)
    staged = store.stage(2, {"w": np.zeros(3, np.float32)}, {})
    with pytest.raises(FencedOut):  # based on an outdated record
        state.cut_over(fencing_token, staged, first, first.changed(new_epoch=True), Status.WARMING, "anna", {},
                       parent=0)
    assert [s.first for s in state.lineage().segments] == [0, 1]
    for _ in range(2):  # idempotent
        state.cut_over(fencing_token, staged, second, third, Status.WARMING, "anna", {"operation": "revert-1"},
                       parent=0)
    lineage = state.lineage()
    assert [(s.first, s.parent, s.record, s.what, s.who, s.operation) for s in lineage.segments] == [
        (0, -1, first, "run.created", "test", ""), (1, 0, second, "anneal.promoted", "anna", ""),
        (2, 0, third, "run.cut_over", "anna", "revert-1")]
    assert lineage.branches(2) == [range(1, 2)]

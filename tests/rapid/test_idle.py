"""Idle acknowledgements of a pause."""

import json
import time

import pytest

from rapid.store.errors import Corrupt
from rapid.store.events import event_fields
from rapid.store.idle import note_overdue
from rapid.store.leases import Instance, Lease
from rapid.store.state import RunState, Status


def instance(state: RunState, kind: str, identity: str = "0", ttl: float = 30.0) -> Lease:
    """A live instance in the first epoch."""
    lease = state.lease(kind, identity, ttl)
    lease.renew({}, 1, 1)
    return lease


def pause(state: RunState) -> int:
    return state.transition(Status.PAUSING, "test").pause


def test_no_acknowledgements_before_the_first_pause(state: RunState) -> None:
    instance(state, "rollout")
    assert state.idle_report() == (0, 1, 0.0, {}, [])


def test_status_of_an_earlier_release_has_no_pause(state: RunState) -> None:
    instance(state, "rollout")
    row = {"status": "paused", "since": 1.0, "who": "ada", "reason": ""}
    state.redis.set(state.keys.status, json.dumps(row))
    assert state.idle_report() == (0, 1, 0.0, {}, [])
    state.redis.delete(state.keys.status, state.keys.record)
    assert state.idle_report() == (0, 0, 0.0, {}, [])


def test_lost_pause_document_leaves_the_instances(state: RunState) -> None:
    """A killed Redis may have lost the time of the pause and the record."""
    lease = instance(state, "rollout")
    number = pause(state)
    lease.renew({}, 0, 1, number, True)
    state.redis.delete(state.keys.pause, state.keys.record)
    report = state.idle_report()
    assert report[:3] == (1, 0, 0.0) and list(report.acknowledged) == ["rollout/0"] and report.waiting_for == []


def test_every_playing_or_learning_kind_must_acknowledge(state: RunState) -> None:
    leases = {kind: instance(state, kind) for kind in ("rollout", "optimizer", "evaluator", "inference")}
    for kind in ("controller", "opponents", "dota_env"):
        instance(state, kind)
    began = time.time()
    number = pause(state)
    report = state.idle_report()
    assert (report.pause, report.epoch, report.acknowledged) == (1, 1, {}) and abs(report.asked_at - began) < 5
    assert report.waiting_for == ["evaluator/0", "inference/0", "optimizer/0", "rollout/0"]
    for kind, lease in leases.items():
        lease.renew({}, 1, 1, number, True)
        assert f"{kind}/0" not in state.idle_report().waiting_for
    assert sorted(state.idle_report().acknowledged) == report.waiting_for


def test_busy_instance_is_waited_for_again(state: RunState) -> None:
    lease = instance(state, "rollout")
    number = pause(state)
    lease.renew({}, 1, 1, number, True)
    assert not state.idle_report().waiting_for
    lease.renew({}, 1, 1, number, False)
    assert state.idle_report().waiting_for == ["rollout/0"]


def test_acknowledgement_keeps_its_first_time(state: RunState) -> None:
    lease = instance(state, "rollout")
    number = pause(state)
    lease.renew({}, 1, 1, number, True)
    first = state.idle_report().acknowledged["rollout/0"]
    time.sleep(0.05)
    lease.renew({}, 1, 1, number, True)
    assert state.idle_report().acknowledged == {"rollout/0": first}


def test_expired_lease_is_not_an_acknowledgement(state: RunState) -> None:
    instance(state, "rollout", ttl=0.05)
    pause(state)
    time.sleep(0.1)
    assert not state.services() and state.idle_report().waiting_for == ["rollout/0"]


def test_acknowledgement_survives_its_instance(state: RunState) -> None:
    lease = instance(state, "rollout", ttl=0.05)
    lease.renew({}, 1, 1, pause(state), True)
    time.sleep(0.1)
    assert not state.services() and list(state.idle_report().acknowledged) == ["rollout/0"]


def test_clean_exit_acknowledges_and_a_new_instance_must_too(state: RunState) -> None:
    lease = instance(state, "rollout")
    pause(state)
    lease.release()
    assert state.idle_report().waiting_for == [] and list(state.idle_report().acknowledged) == ["rollout/0"]
    instance(state, "rollout")
    assert state.idle_report().waiting_for == ["rollout/0"]


def test_restarting_instance_is_waited_for(state: RunState) -> None:
    lease = instance(state, "inference")
    number = pause(state)
    lease.renew({}, 1, 1, number, True)
    lease.release(restarting=True)
    assert state.idle_report().waiting_for == ["inference/0"]
    instance(state, "inference").renew({}, 1, 2, number, True)
    assert state.idle_report().waiting_for == []


def test_instance_started_in_a_pause_must_acknowledge(state: RunState) -> None:
    number = pause(state)
    late = instance(state, "rollout", "late")
    assert state.idle_report().waiting_for == ["rollout/late"]
    late.renew({}, 1, 1, number, True)
    assert state.idle_report().waiting_for == []


def test_exit_outside_a_pause_is_not_an_acknowledgement(state: RunState) -> None:
    instance(state, "rollout").release()
    assert not list(state.redis.scan_iter("five:r:quiet:*"))


def test_acknowledgement_of_an_earlier_pause_is_ignored(state: RunState) -> None:
    lease = instance(state, "rollout")
    first = pause(state)
    lease.renew({}, 1, 1, first, True)
    state.transition(Status.RUNNING, "test")
    second = pause(state)
    assert second == first + 1 and state.idle_report().waiting_for == ["rollout/0"]
    lease.renew({}, 1, 1, first, True)  # late, from a service that has not seen the second pause
    assert state.idle_report().waiting_for == ["rollout/0"]
    lease.renew({}, 1, 1, second, True)
    assert state.idle_report().waiting_for == []


def test_pause_number_is_kept_through_surgery(state: RunState) -> None:
    number = pause(state)
    for status in (Status.PAUSED, Status.OPERATING, Status.WARMING, Status.RUNNING):
        assert state.transition(status, "test").pause == number


def test_new_epoch_needs_new_acknowledgements(state: RunState) -> None:
    rollout, dead = instance(state, "rollout"), instance(state, "rollout", "dead", ttl=0.1)
    number = pause(state)
    for lease in (rollout, dead):
        lease.renew({}, 1, 1, number, True)
    time.sleep(0.15)
    before = state.record()
    assert before is not None
    state.redis.set(state.keys.record, before.changed(new_epoch=True).to_json())
    report = state.idle_report()
    # The dead instance was idle, and stays so in every epoch.
    assert report.epoch == 2 and report.waiting_for == ["rollout/0"] and list(report.acknowledged) == ["rollout/dead"]
    rollout.renew({}, 2, 2, number, True)
    assert not state.idle_report().waiting_for


@pytest.mark.parametrize("change", [{"epoch": 1}, {"epoch": 3}, {"life": "0"}, {"life": "z" * 99}, {"pause": 1},
                                    {"pause": 3}, {"gone": True}, {"quiet": False}])
def test_live_instance_acknowledges_for_its_process_epoch_and_pause(state: RunState, change: dict[str, object]) -> None:
    """An acknowledgement of another process, epoch or pause is not one, whichever is newer."""
    lease = instance(state, "rollout")
    pause(state)
    state.transition(Status.RUNNING, "test")
    number, key, record = pause(state), state.keys.quiet("rollout", "0"), state.record()
    assert number == 2 and record is not None
    state.redis.set(state.keys.record, record.changed(new_epoch=True).to_json())
    lease.renew({}, 2, 2, number, True)
    assert state.idle_report().waiting_for == [] and list(state.idle_report().acknowledged) == ["rollout/0"]
    text: bytes = state.redis.get(key)  # type: ignore[assignment]
    state.redis.set(key, json.dumps({**json.loads(text), **change}))
    report = state.idle_report()
    assert report.waiting_for == ["rollout/0"] and report.acknowledged == {}


def test_all_instances_are_in_order(state: RunState) -> None:
    leases = {f"{kind}/{i}": instance(state, kind, str(i)) for kind in ("rollout", "inference") for i in (2, 0, 1)}
    number = pause(state)
    assert state.idle_report().waiting_for == sorted(leases)
    for name in ("rollout/1", "inference/2"):
        leases[name].renew({}, 1, 1, number, True)
    report = state.idle_report()
    assert list(report.acknowledged) == ["inference/2", "rollout/1"]
    assert report.waiting_for == ["inference/0", "inference/1", "rollout/0", "rollout/2"]


@pytest.mark.parametrize("text", ["{", "[]", '{"pause": 1}', '{"pause": 1, "quiet": true, "at": "x"}',
                                  '{"pause": 1, "quiet": true, "at": 1.0, "epoch": 1}'])
def test_damaged_acknowledgement_is_named(state: RunState, text: str) -> None:
    instance(state, "rollout")
    pause(state)
    state.redis.set(state.keys.quiet("rollout", "0"), text)
    with pytest.raises(Corrupt, match="five:r:quiet:rollout:0 is damaged"):
        state.idle_report()


def test_pause_without_a_record_enrols_its_instances(state: RunState) -> None:
    """A run of an earlier release that was not opened yet."""
    instance(state, "rollout")
    state.redis.delete(state.keys.record)
    pause(state)
    assert state.idle_report()[:2] == (1, 0) and state.idle_report().waiting_for == ["rollout/0"]


def test_lost_acknowledgement_is_sent_again(state: RunState) -> None:
    lease = instance(state, "rollout")
    number = pause(state)
    lease.renew({}, 1, 1, number, True)
    state.redis.delete(state.keys.quiet("rollout", "0"))
    assert state.idle_report().waiting_for == ["rollout/0"]
    lease.renew({}, 1, 1, number, True)
    assert not state.idle_report().waiting_for


def test_overdue_pause_is_logged_once(state: RunState) -> None:
    number = pause(state)
    fields = event_fields("controller", "run.pause_overdue", {"waiting_for": ["rollout/0"]})
    assert not note_overdue(state.redis, "r", number + 1, fields)  # of another pause
    assert [note_overdue(state.redis, "r", number, fields) for _ in range(2)] == [True, False]
    assert [e.what for e in state.events.last(2)] == ["run.pause_overdue", "run.pausing"]
    state.transition(Status.RUNNING, "test")
    assert note_overdue(state.redis, "r", pause(state), fields)


def test_thousands_of_instances_are_enrolled(state: RunState) -> None:
    pipeline = state.redis.pipeline()
    for i in range(3000):
        row = Instance("rollout", f"pod-{i}", "", "", 0.0, 0.0, {})
        pipeline.set(state.keys.lease("rollout", row.id), json.dumps(row._asdict()))
        pipeline.zadd(state.keys.leases("rollout"), {row.id: (time.time() + 60) * 1000})
    pipeline.execute()
    pause(state)
    assert len(state.idle_report().waiting_for) == 3000

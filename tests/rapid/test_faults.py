"""Faults of services: the reported ones, and one event for each change."""

from typing import Any

import pytest

from rapid.store.errors import Corrupt
from rapid.store.faults import read_faults, report_faults
from rapid.store.state import RunState


def events(state: RunState) -> list[tuple[str, str, dict[str, Any]]]:
    """Return author, name and details of the events of services, by name and service."""
    found = [(e.who, e.what, e.details) for e in state.events.read() if e.what.startswith("service.")]
    return sorted(found, key=lambda event: (event[1], event[2]["service"]))


def test_each_new_fault_is_an_event_once(state: RunState) -> None:
    assert read_faults(state) == {}
    faults = {"play-0": "exited with code 1", "evaluator-0": "exited with code 2"}
    for _ in range(2):
        report_faults(state, "five train", faults)
        assert read_faults(state) == faults
    assert events(state) == [
        ("five train", "service.failing", {"service": "evaluator-0", "reason": "exited with code 2"}),
        ("five train", "service.failing", {"service": "play-0", "reason": "exited with code 1"})]


def test_recovered_service_is_an_event_and_others_stay(state: RunState) -> None:
    report_faults(state, "five train", {"a": "x", "b": "y"})
    report_faults(state, "five train", {"b": "another reason", "c": "z"})
    assert read_faults(state) == {"b": "another reason", "c": "z"}
    report_faults(state, "five train", {})
    assert read_faults(state) == {}
    assert [(what, details["service"]) for _, what, details in events(state)] == [
        *(("service.failing", name) for name in "abc"), *(("service.recovered", name) for name in "abc")]


def test_no_faults_are_no_change(state: RunState) -> None:
    report_faults(state, "five train", {})
    assert read_faults(state) == {} and events(state) == []
    assert not state.redis.hexists(state.keys.documents, "faults")


@pytest.mark.parametrize("text", ["{", "[]"])
@pytest.mark.parametrize("faults", [{}, {"play-0": "exited with code 1"}])
def test_damaged_faults_are_named_and_replaced(state: RunState, text: str, faults: dict[str, str]) -> None:
    state.redis.hset(state.keys.documents, "faults", text)
    with pytest.raises(Corrupt, match="five:r:documents faults is damaged"):
        read_faults(state)
    report_faults(state, "five train", faults)
    assert read_faults(state) == faults and len(events(state)) == len(faults)

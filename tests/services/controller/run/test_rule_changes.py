"""A resumed run lists the rules of the game that changed since it last played."""

import logging

import pytest
import redis

from dota.rule_changes import CHANGES, REVISION, changes_since
from five.run.load import load
from five.services.controller.run.setup import RULES, set_up_run
from rapid.store.state import RunState

CONFIG = load("laptop-1v1", ("store.state_url=redis://state:6379/0", "store.params_url=redis://params:6379/0"))


@pytest.fixture
def state(redis_client: redis.Redis) -> RunState:
    return RunState(redis_client, CONFIG.name)


def told(state: RunState, caplog: pytest.LogCaptureFixture) -> tuple[list[str], list[dict[str, int]]]:
    """Resume the run and return the changes that the log names, and all events of changed rules."""
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        set_up_run(state, CONFIG, "controller", resume=True)
    warned = [r.getMessage().partition(": ")[2] for r in caplog.records if "rules have changed" in r.getMessage()]
    return warned, [e.details for e in state.events.read() if e.what == "run.rules_changed"]


def test_a_run_of_this_release_hears_nothing(state: RunState, caplog: pytest.LogCaptureFixture) -> None:
    set_up_run(state, CONFIG, "controller")
    assert state.document(RULES) == REVISION and told(state, caplog) == ([], [])


@pytest.mark.parametrize("before", [None, 1])
def test_a_run_of_an_earlier_release_is_told_once(state: RunState, caplog: pytest.LogCaptureFixture,
                                                  before: int | None) -> None:
    set_up_run(state, CONFIG, "controller")
    if before is None:  # releases before 0.2.0 stored no revision
        state.redis.hdel(state.keys.documents, RULES)
    else:
        state.redis.hset(state.keys.documents, RULES, before)
    warned, events = told(state, caplog)
    assert warned == list(changes_since(1)) and events == [{"from": 1, "to": REVISION}]
    assert told(state, caplog) == ([], events)


def test_a_run_of_a_later_release_is_noted(state: RunState, caplog: pytest.LogCaptureFixture) -> None:
    set_up_run(state, CONFIG, "controller")
    state.redis.hset(state.keys.documents, RULES, REVISION + 1)
    warned, events = told(state, caplog)
    assert warned == [] and events == [{"from": REVISION + 1, "to": REVISION}]


def test_changes_since_a_revision_are_those_after_it() -> None:
    assert list(changes_since(REVISION)) == [] and list(changes_since(REVISION + 1)) == []
    assert list(changes_since(1)) == [change for changes in CHANGES[1:] for change in changes]
    assert next(iter(changes_since(0))) == CHANGES[0][0] and list(changes_since(-3)) == list(changes_since(0))

"""How a run begins in its store, and what is not taken for the same run."""

import json

import pytest
import redis

from rapid.store.state import RunState, Status
from run.config import RunConfig
from run.load import load
from services.controller.opening import WrongRun, document_of, open_run

STORES = ("store.state_url='redis://:sesame@state:6379/0'", "store.params_url=redis://params:6379/0")
CONFIG = load("laptop-1v1", STORES)


@pytest.fixture
def state(redis_client: redis.Redis) -> RunState:
    return RunState(redis_client, CONFIG.name)


def status(state: RunState) -> Status:
    now = state.status()
    assert now is not None
    return now.status


def whats(state: RunState) -> list[str]:
    return [event.what for event in state.events.read()]


def changed(*overrides: str) -> RunConfig:
    return load("laptop-1v1", [*STORES, *overrides])


def test_a_run_is_made_once(state: RunState) -> None:
    for _ in range(2):
        open_run(state, CONFIG, "controller")
    assert status(state) is Status.STARTING and whats(state) == ["run.created"]
    assert state.config() == document_of(CONFIG)


def test_the_stored_configuration_holds_no_password(state: RunState, redis_client: redis.Redis) -> None:
    open_run(state, CONFIG, "controller")
    assert state.config()["store"]["state_url"] == "redis://***@state:6379/0"
    everything = b"".join(redis_client.dump(key) or b"" for key in redis_client.keys("*"))  # type: ignore[union-attr]
    assert b"sesame" not in everything and "sesame" not in json.dumps(state.config())


def test_a_changed_configuration_is_noted_and_the_run_goes_on(state: RunState) -> None:
    open_run(state, CONFIG, "controller")
    state.transition(Status.RUNNING, "test")
    open_run(state, changed("learning.batch_samples=24"), "controller")
    assert state.config()["learning"]["batch_samples"] == 24
    assert status(state) is Status.RUNNING and whats(state)[-1] == "config.set"


def test_a_stopped_run_is_started_again_only_when_asked(state: RunState) -> None:
    open_run(state, CONFIG, "controller")
    state.transition(Status.STOPPING, "test")
    open_run(state, CONFIG, "controller")
    assert status(state) is Status.STOPPING
    open_run(state, CONFIG, "five train", resume=True)
    assert status(state) is Status.STARTING and whats(state)[-1] == "run.resumed"


@pytest.mark.parametrize(("override", "says"), [
    ("model.lstm=96", "model.lstm is 192, here it is 96"),
    ("game.observation.allied_creeps=13", r"observations have layout \w+, these have \w+"),
])
def test_a_run_with_other_versions_is_refused(state: RunState, override: str, says: str) -> None:
    open_run(state, CONFIG, "controller")
    with pytest.raises(WrongRun, match=says):
        open_run(state, changed(override), "controller")
    assert state.config() == document_of(CONFIG)


def test_how_a_version_is_computed_may_change(state: RunState) -> None:
    open_run(state, CONFIG, "controller")
    open_run(state, changed("model.precision=bfloat16"), "controller")
    assert state.config()["model"]["precision"] == "bfloat16"


def test_what_cannot_be_read_any_more_is_passed_over(state: RunState) -> None:
    state.create({"game": {"an_older_key": 1}, "model": {"another": 2}}, "test")
    open_run(state, CONFIG, "controller")
    assert state.config() == document_of(CONFIG)

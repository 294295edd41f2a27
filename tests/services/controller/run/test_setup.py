"""First start of a run in its store, and precedence of its record over later files."""

import json
from pathlib import Path
from typing import Any

import pytest
import redis

from dota.spaces import Layout
from five.agent.surgery.spec import AgentSpec
from five.run.config import RunConfig
from five.run.effective import overlay
from five.run.load import ConfigError, load
from five.services.controller.run import setup
from five.services.controller.run.setup import config_document, initial_record, set_up_run
from rapid.store.record import RunRecord
from rapid.store.state import RunState, Status

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
        set_up_run(state, CONFIG, "controller")
    assert status(state) is Status.STARTING and whats(state) == ["run.created"]
    assert state.config() == config_document(CONFIG)


def test_a_model_that_is_too_large_makes_no_run(state: RunState) -> None:
    with pytest.raises(ConfigError, match="parameters, at most"):
        set_up_run(state, changed("model.lstm=65536"), "controller")
    assert state.config() is None
    set_up_run(state, CONFIG, "controller")
    set_up_run(state, changed("model.lstm=65536"), "controller")  # the record's model counts


def test_the_stored_configuration_holds_no_password(state: RunState, redis_client: redis.Redis) -> None:
    set_up_run(state, CONFIG, "controller")
    assert state.config()["store"]["state_url"] == "redis://***@state:6379/0"
    everything = b"".join(redis_client.dump(key) or b"" for key in redis_client.keys("*"))  # type: ignore[union-attr]
    assert b"sesame" not in everything and "sesame" not in json.dumps(state.config())


def test_a_changed_configuration_is_noted_and_the_run_goes_on(state: RunState) -> None:
    set_up_run(state, CONFIG, "controller")
    state.transition(Status.RUNNING, "test")
    set_up_run(state, changed("learning.batch_samples=24"), "controller")
    assert state.config()["learning"]["batch_samples"] == 24
    assert status(state) is Status.RUNNING and whats(state)[-1] == "config.set"


def test_only_resuming_starts_a_stopped_run_again(state: RunState) -> None:
    set_up_run(state, CONFIG, "controller")
    state.transition(Status.STOPPING, "test")
    set_up_run(state, CONFIG, "controller")
    assert status(state) is Status.STOPPING
    set_up_run(state, CONFIG, "five train", resume=True)
    assert status(state) is Status.STARTING and whats(state)[-2:] == ["run.starting", "run.resumed"]


def test_a_run_begins_with_the_record_of_its_file(state: RunState) -> None:
    set_up_run(state, CONFIG, "controller")
    record = state.record()
    assert record == initial_record(CONFIG) and record is not None
    assert (record.run_revision, record.chain, record.layout) == ((1, 1), (), Layout(CONFIG.game).hash)
    assert "precision" not in record.model and overlay(CONFIG, record) == CONFIG


@pytest.mark.parametrize(("room", "possible"), [(0, True), (-1, False)])
def test_model_may_have_as_many_parameters_as_an_optimizer_holds(
        state: RunState, monkeypatch: pytest.MonkeyPatch, room: int, possible: bool) -> None:
    monkeypatch.setattr(setup, "MAX_PARAMETERS", AgentSpec(CONFIG.game, CONFIG.model).parameters + room)
    if possible:
        set_up_run(state, CONFIG, "controller")
    else:
        with pytest.raises(ConfigError, match="parameters, at most"):
            set_up_run(state, CONFIG, "controller")
    assert (state.config() is not None) == possible


def test_game_without_its_heroes_makes_no_run(state: RunState) -> None:
    with pytest.raises(ConfigError, match=r"game: hero_pool\[0\]: 'nobody' is not in patch"):
        set_up_run(state, changed("game.hero_pool=[nobody]"), "controller")
    assert state.config() is None


def test_stored_configuration_has_the_keys_of_a_file(state: RunState, tmp_path: Path) -> None:
    ramp = {"start": 3, "length": 2, "from": 0.1, "to": 0.2}
    config = changed(f"schedules.learning_rate={json.dumps({'initial': 0.1, 'ramps': [ramp]})}")
    set_up_run(state, config, "controller")
    assert state.config()["schedules"]["learning_rate"]["ramps"] == [ramp]
    file = tmp_path / "run.json"  # JSON is YAML
    file.write_text(json.dumps(state.config()))
    assert load(file, STORES) == config


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_plays_goes_on(state: RunState, resume: bool) -> None:
    set_up_run(state, CONFIG, "controller")
    state.transition(Status.RUNNING, "test")
    set_up_run(state, CONFIG, "five train", resume)
    assert status(state) is Status.RUNNING and (whats(state)[-1] == "run.resumed") == resume


def test_keys_that_lag_behind_are_logged(state: RunState, caplog: pytest.LogCaptureFixture) -> None:
    set_up_run(state, CONFIG, "controller")
    set_up_run(state, CONFIG, "controller")
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    set_up_run(state, changed("game.observation.minimap=3", "model.lstm=24"), "controller")
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 2, warnings
    assert "game.observation.minimap is 3" in warnings[0] and "model.lstm is 24" in warnings[1]


@pytest.mark.parametrize("resume", [False, True])
def test_a_file_that_lags_behind_undoes_nothing(state: RunState, resume: bool) -> None:
    set_up_run(state, CONFIG, "controller")
    before = state.record()
    assert before is not None
    after = before.changed(new_epoch=False, model={**before.model, "lstm": 2 * CONFIG.model.lstm})
    state.set_record(before, after, "ada", "record.set", {})
    # Files of `five train --resume` and `helm upgrade`: the old file, or one with another game.
    set_up_run(state, changed("game.mode=1v1_mid", "game.observation.minimap=3", "model.precision=bfloat16"), "five",
               resume)
    assert state.record() == after
    assert state.config()["model"]["lstm"] == 2 * CONFIG.model.lstm  # shown as it is played
    assert state.config()["game"] == config_document(CONFIG)["game"]
    assert state.config()["model"]["precision"] == "bfloat16"


def test_earlier_release_gets_record_from_its_configuration(
        state: RunState, redis_client: redis.Redis) -> None:
    set_up_run(state, changed("model.lstm=24"), "controller")
    redis_client.delete(state.keys.record)
    set_up_run(state, CONFIG, "controller")
    record = state.record()
    assert record is not None and record.model["lstm"] == 24 and record.layout == Layout(CONFIG.game).hash
    assert whats(state)[1:3] == ["record.adopted", "config.set"] or whats(state)[1:] == ["record.adopted"]


UNREADABLE = {"an_older_key": 1}


@pytest.mark.parametrize(("game", "model", "expected"), [
    (UNREADABLE, UNREADABLE, ()), (None, None, ()), (None, {"lstm": 24}, ("model.lstm=24",)),
    (UNREADABLE, {"lstm": 24}, ("model.lstm=24",)), ({"observation": {"minimap": 3}}, None,
                                                     ("game.observation.minimap=3",)),
    ({"observation": {"minimap": 3}}, UNREADABLE, ("game.observation.minimap=3",)),
    ({"observation": {"minimap": 3}}, {"lstm": 24}, ("game.observation.minimap=3", "model.lstm=24"))])
def test_unreadable_earlier_values_come_from_the_file(
        state: RunState, redis_client: redis.Redis, game: dict[str, Any] | None, model: dict[str, Any] | None,
        expected: tuple[str, ...]) -> None:
    """And so do sections that an earlier release did not have; the other section is the run's all the same."""
    own = config_document(CONFIG)
    stored = {name: section if section is UNREADABLE else {**own[name], **section}
              for name, section in (("game", game), ("model", model)) if section is not None}
    if game is not None and game is not UNREADABLE:
        stored["game"]["observation"] = {**own["game"]["observation"], **game["observation"]}
    state.create(stored, "test")
    redis_client.delete(state.keys.record)
    set_up_run(state, CONFIG, "controller")
    assert state.record() == initial_record(changed(*expected))


def test_unreadable_record_is_refused_by_name(state: RunState) -> None:
    state.create(config_document(CONFIG), "test", RunRecord(revision=3, game={"a_newer_key": 1}))
    with pytest.raises(ConfigError, match=r"(?s)record of run 'laptop-1v1' \(revision 3\).*game.a_newer_key"):
        set_up_run(state, CONFIG, "controller")

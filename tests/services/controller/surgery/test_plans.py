"""Surgery plans for the API: derived from overrides, read, previewed, and made into requests."""

from typing import Any

import pytest

from five.agent.surgery import AgentSpec, Plan
from five.services.controller.surgery.plans import (
    InvalidPlan,
    agent_spec,
    derive_plan,
    model_schema,
    preview_plan,
    read_plan,
    surgery_request,
)
from rapid.store.record import RunRecord
from tests.services.optimizer_cases import GAME, MODEL

OLD = AgentSpec(GAME, MODEL)
RECORD = RunRecord(3, 2, **OLD.trees(), layout=OLD.layout.hash)


def wider(**options: Any) -> Plan:
    return derive_plan(RECORD, ["model.lstm=16"], "wider", options)


def test_schema_of_a_record_is_its_agents() -> None:
    assert model_schema(RECORD) == OLD.schema == wider().parent
    assert agent_spec(RECORD).parameters == OLD.parameters


@pytest.mark.parametrize("model", [{"lstm": "many"}, {"nothing": 1}])
def test_record_of_another_release_is_no_server_error(model: dict[str, Any]) -> None:
    unreadable = RunRecord(game=RECORD.game, model={**RECORD.model, **model})
    for use in (agent_spec, model_schema, lambda record: derive_plan(record, ["model.lstm=16"], "wider", {}),
                lambda record: preview_plan(wider(), record)):
        with pytest.raises(InvalidPlan):
            use(unreadable)


@pytest.mark.parametrize("override", ["learning.batch_samples=4", "games.mode=5v5", "model_name=x", "=1", "", "lstm=16",
                                      "x.model.lstm=16"])
def test_overrides_outside_game_and_model_are_refused(override: str) -> None:
    with pytest.raises(InvalidPlan, match="only keys of game and model are allowed"):
        derive_plan(RECORD, ["model.lstm=16", override], "wider", {})


@pytest.mark.parametrize("value", ["[&a [0, 0], [*a, *a]]", "&a 16", "!!int 16"])
def test_aliases_in_overrides_are_refused(value: str) -> None:
    """A text of 400 characters may stand for a list of 10^10 values, which an error message would print."""
    with pytest.raises(InvalidPlan, match="override .*line 1: (anchors|tags) .* are not allowed"):
        derive_plan(RECORD, [f"model.lstm={value}"], "wider", {})


@pytest.mark.parametrize(("overrides", "options"), [
    (["model.lstm"], {}), (["model.lstm=16"], {"warm_up_versions": 10_001}), (["model.lstm=16"], {"speed": 1}),
    (["model.lstm=1e400"], {}), (["game.max_game_seconds=1e400"], {})])
def test_invalid_values_are_refused(overrides: list[str], options: dict[str, Any]) -> None:
    with pytest.raises(InvalidPlan):
        derive_plan(RECORD, overrides, "wider", options)


def test_options_replace_the_plans_defaults() -> None:
    assert (wider().hold, wider().warm_up_versions) == (False, 8)
    held = wider(hold=True, warm_up_versions=2)
    assert (held.hold, held.warm_up_versions, held.steps) == (True, 2, wider().steps)


@pytest.mark.parametrize("text", ["", "- 1", "name: wider", "name: [", "name: wider\nparent: 0\nsteps: []"])
def test_unreadable_text_is_an_invalid_plan(text: str) -> None:
    with pytest.raises(InvalidPlan):
        read_plan(text)


def test_preview_counts_parameters_and_tensors() -> None:
    plan = derive_plan(RECORD, ["model.lstm=16", "game.observation.pickups=2"], "wider", {})
    found, target = preview_plan(plan, RECORD), plan.target(OLD)
    assert (found.name, found.digest, found.parent, found.epoch) == ("wider", plan.digest, OLD.schema, 2)
    assert (found.schema_, found.layout) == (target.schema, target.layout.hash)
    assert (found.parameters_before, found.parameters_after) == (OLD.parameters, target.parameters)
    assert read_plan(found.plan) == plan
    first, second = found.changes
    assert (first.number, first.parameters_before, second.number) == (1, OLD.parameters, 2)
    assert (second.parameters_before, second.parameters_after) == (first.parameters_after, target.parameters)
    assert first.tensors > 0, "a wider LSTM resizes tensors"


def test_preview_lists_game_changes_to_anneal() -> None:
    plan = Plan.from_values({"name": "older", "parent": OLD.schema, "steps": [
        {"kind": "game", "values": {"patch": "7.19"}, "anneal_versions": 40}]})
    (anneal,) = preview_plan(plan, RECORD).anneals
    assert (anneal.values, anneal.versions) == ({"patch": "7.19"}, 40)
    assert preview_plan(wider(), RECORD).anneals == []


@pytest.mark.parametrize("steps", [[{"kind": "grow_lstm", "to": 4}], [{"kind": "grow_lstm", "to": 65536}]])
def test_plan_that_does_not_fit_has_no_preview(steps: list[dict[str, Any]]) -> None:
    plan = Plan.from_values({"name": "wider", "parent": OLD.schema, "steps": steps})
    with pytest.raises(InvalidPlan):
        preview_plan(plan, RECORD)


@pytest.mark.parametrize(("planned", "requested", "hold"), [
    (False, None, False), (True, None, True), (False, True, True), (True, False, False)])
def test_request_overrides_the_plans_hold(planned: bool, requested: bool | None, hold: bool) -> None:
    plan = wider(hold=planned, warm_up_versions=3)
    request = surgery_request(plan, "# text", RECORD, {"mean_kl": 0.5}, requested)
    assert request.hold is hold and request.bounds == {"mean_kl": 0.5} and request.plan == "# text"
    assert (request.digest, request.name, request.parent) == (plan.digest, "wider", OLD.schema)
    assert (request.epoch, request.warm_up_versions) == (2, 3)
    assert surgery_request(plan, "# text", RECORD).bounds == {}

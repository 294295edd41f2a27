"""Limits of the values of a step, of which a plan with an invalid one is refused."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from five.agent.surgery import Plan
from five.agent.surgery.plan import read_step
from five.agent.surgery.steps.observations import AddObservations

FIELDS = [f"global.{i}" for i in range(3)]
VALID: list[dict[str, Any]] = [
    {"kind": "grow_lstm", "to": 4, "scale": 1.0, "seed": 0}, {"kind": "grow_lstm", "to": 65_536, "seed": 2**63 - 1},
    {"kind": "embedding", "space": "item", "to": 1}, {"kind": "embedding", "space": "item", "to": 4096},
    {"kind": "add_ids", "rows": {"item": 1, "unit": 65_535}}, {"kind": "add_ids", "rows": {"item": 65_535}},
    {"kind": "slots", "slots": {"wards": 0, "couriers": 64}}, {"kind": "slots", "slots": {"wards": 64}},
    {"kind": "game", "values": {str(i): i for i in range(64)}}, {"kind": "game", "values": {"a": 1}},
    {"kind": "game", "values": {"a": 1}, "anneal_versions": 1},
    {"kind": "game", "values": {"a": 1}, "anneal_versions": 10_000_000},
    {"kind": "add_actions", "actions": ["glyph"], "anneal_versions": 1},
    {"kind": "add_actions", "actions": ["glyph"], "anneal_versions": 10_000_000},
    {"kind": "add_observations", "fields": FIELDS[:1]},
    {"kind": "add_observations", "fields": FIELDS, "prior": {"a.b": {"mean": -1e12, "std": 1e12, "rows": 1}}},
    {"kind": "add_observations", "fields": FIELDS, "prior": {"a.b": {"mean": 1e12, "std": 1e-9, "rows": 10**9}}},
    {"kind": "remove_inputs", "fields": FIELDS[:1], "constants": {"global.0": -1e12, "global.1": 1e12}},
    *({"kind": "widen", "layer": layer, "to": to} for to, layers in {
        65_536: ("unit_hidden", "unit", "set_hidden", "set", "lstm_input", "auxiliary_hidden"),
        4096: ("conv_filters", "key"), 1: ("unit", "key")}.items() for layer in layers)]
INVALID: list[tuple[dict[str, Any], str]] = [
    ({"kind": "grow_lstm", "to": 3}, "to"), ({"kind": "grow_lstm", "to": 65_537}, "to"),
    ({"kind": "grow_lstm", "to": 8, "scale": 1.1}, "scale"), ({"kind": "grow_lstm", "to": 8, "scale": 0.0}, "scale"),
    ({"kind": "grow_lstm", "to": 8, "seed": -1}, "seed"), ({"kind": "grow_lstm", "to": 8, "seed": 2**63}, "seed"),
    ({"kind": "grow_lstm", "to": 8, "scale": float("nan")}, "scale"),
    ({"kind": "add_observations", "fields": FIELDS, "prior": {"a.b": {"std": float("nan")}}}, "std"),
    ({"kind": "grow_lstm", "to": "8"}, "to"), ({"kind": "grow_lstm", "to": 8, "exact": 1}, "exact"),
    ({"kind": "embedding", "space": "item", "to": 0}, "to"), ({"kind": "embedding", "space": "item", "to": 4097}, "to"),
    ({"kind": "add_ids", "rows": {}}, "rows"), ({"kind": "add_ids", "rows": {"item": 0}}, "rows.item"),
    ({"kind": "add_ids", "rows": {"item": 65_536}}, "rows.item"), ({"kind": "slots", "slots": {}}, "slots"),
    ({"kind": "slots", "slots": {"wards": -1}}, "slots.wards"),
    ({"kind": "slots", "slots": {"wards": 65}}, "slots.wards"), ({"kind": "game", "values": {}}, "values"),
    ({"kind": "game", "values": {str(i): i for i in range(65)}}, "values"),
    ({"kind": "game", "values": {"a": {1, 2}}}, "values: values must be numbers"),
    ({"kind": "game", "values": {"a": float("nan")}}, "values: values must be numbers"),
    ({"kind": "game", "values": {"a": 1}, "anneal_versions": 0}, "anneal_versions"),
    ({"kind": "game", "values": {"a": 1}, "anneal_versions": 10_000_001}, "anneal_versions"),
    ({"kind": "add_actions", "actions": []}, "actions"),
    ({"kind": "add_actions", "actions": ["glyph"], "anneal_versions": 0}, "anneal_versions"),
    ({"kind": "add_actions", "actions": ["glyph"], "anneal_versions": 10_000_001}, "anneal_versions"),
    ({"kind": "add_observations", "fields": []}, "fields"), ({"kind": "remove_inputs", "fields": []}, "fields"),
    *(({"kind": "add_observations", "fields": FIELDS, "prior": {"a.b": {name: value}}}, f"prior.a.b.{name}: ")
      for name, value in (("mean", 1.1e12), ("mean", -1.1e12), ("mean", float("nan")), ("std", 0.0), ("std", 1.1e12),
                          ("rows", 0), ("rows", 10**9 + 1), ("rows", "5"))),
    ({"kind": "add_observations", "fields": FIELDS, "prior": {"a.b": {"men": 1.0}}},
     "prior.a.b.men: unknown key; did you mean 'mean'"),
    ({"kind": "add_observations", "fields": FIELDS, "prior": {"a.b": {"x": 1.0}}},
     "x: unknown key; allowed: mean, std, rows"),
    ({"kind": "widen", "layer": "unit", "to": 9, "prior": 1}, "prior: unknown key; allowed: kind, layer, to"),
    ({"kind": "slots", "slots": {"wards": 1}, "slot": 1}, "slot: unknown key; did you mean 'slots'"),
    ({"kind": "x" * 50}, f"unknown kind of step '{'x' * 40}'; allowed: widen, grow_lstm, "),
    ({"kind": "remove_inputs", "fields": FIELDS, "constants": {"a": 1.1e12}}, "constants.a"),
    ({"kind": "remove_inputs", "fields": FIELDS, "constants": {"a": -float("inf")}}, "constants.a"),
    *(({"kind": "widen", "layer": layer, "to": to}, f"{layer} {to}: at most {to - 1} outputs") for to, layers in {
        65_537: ("unit_hidden", "unit", "set_hidden", "set", "lstm_input", "auxiliary_hidden"),
        4097: ("conv_filters", "key")}.items() for layer in layers),
    ({"kind": "widen", "layer": "unit", "to": 0}, "to")]


@pytest.mark.parametrize("values", VALID, ids=lambda values: json.dumps(values)[:60])
def test_step_with_values_at_their_limits_is_read(values: dict[str, Any]) -> None:
    step = read_step(values)
    assert step.model_dump(mode="json", exclude_unset=True) == values
    with pytest.raises(ValidationError, match="frozen"):
        setattr(step, "kind", "widen")  # noqa: B010 - mypy knows that it is frozen


@pytest.mark.parametrize(("values", "words"), INVALID, ids=lambda value: str(value)[:60])
def test_step_with_values_beyond_their_limits_is_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace(".", r"\.")):
        read_step(values)


def test_defaults_of_a_step() -> None:
    grow, observe = read_step({"kind": "grow_lstm", "to": 8}), read_step(
        {"kind": "add_observations", "fields": ["global.time"], "prior": {"global.time": {}}})
    assert grow.model_dump() == {"kind": "grow_lstm", "to": 8, "scale": 0.002, "seed": 0, "exact": False}
    assert isinstance(observe, AddObservations)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(observe.prior["global.time"], "mean", 1.0)  # noqa: B010
    assert observe.model_dump()["prior"] == {"global.time": {"mean": 0.0, "std": 1.0, "rows": 10_000}}
    for kind, key in (("add_actions", {"actions": ["glyph"]}), ("game", {"values": {"a": 1}})):
        assert read_step({"kind": kind, **key}).model_dump()["anneal_versions"] is None
    assert read_step({"kind": "slots", "slots": {"wards": 1}}).model_dump()["prior"] == {}


BODY: dict[str, Any] = {"name": "a", "parent": "0" * 16, "steps": [{"kind": "grow_lstm", "to": 8}]}


@pytest.mark.parametrize("values", [
    {"name": "0" + "a-" * 31}, {"steps": BODY["steps"] * 64}, {"warm_up_versions": 0}, {"warm_up_versions": 10_000},
    {"bounds": {"mean_kl": 0.0, "mean_value_change": 0.0, "max_logit_change": 0.0, "max_value_change": 0.0}},
    {"hold": True}])
def test_plan_with_values_at_their_limits_is_read(values: dict[str, Any]) -> None:
    of = Plan.from_values(BODY | values)
    for part, name in ((of, "name"), (of.bounds, "mean_kl")):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(part, name, getattr(part, name))


@pytest.mark.parametrize(("values", "words"), [
    ({"name": "-a"}, "name"), ({"name": ""}, "name"), ({"name": "a" * 64}, "name"), ({"parent": "0" * 15}, "parent"),
    ({"parent": "0" * 17}, "parent"), ({"steps": BODY["steps"] * 65}, "steps"), ({"warm_up_versions": -1}, "warm_up"),
    ({"warm_up_versions": 10_001}, "warm_up"), ({"warm_up_versions": 1.0}, "warm_up"), ({"hold": 1}, "hold"),
    *(({"bounds": {name: value}}, rf"bounds\.{name}")
      for name in ("mean_kl", "mean_value_change", "max_logit_change", "max_value_change")
      for value in (-0.1, float("inf"), "0.1"))])
def test_plan_with_values_beyond_their_limits_is_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Plan.from_values(BODY | values)


def test_defaults_of_a_plan() -> None:
    assert Plan.from_values(BODY).model_dump(exclude={"steps"}) == {
        "name": "a", "parent": "0" * 16, "hold": False, "warm_up_versions": 8, "bounds": {
            "mean_kl": 0.01, "mean_value_change": 0.05, "max_logit_change": None, "max_value_change": None}}

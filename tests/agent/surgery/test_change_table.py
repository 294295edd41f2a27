"""Rows of the table of changes: what each step changes, promises and loses, and the tensors that it touches."""

from typing import Any

import pytest

from five.agent.surgery import StepChange, changes_to_markdown, list_changes
from five.agent.surgery.change_table import TensorChange
from tests.agent.surgery.agents import agent, plan

Step = dict[str, Any]


def row(step: Step, **more: Any) -> StepChange:
    spec = agent(1, {"omit": ("global.time",)}, scripted_actions=["glyph"], **more)
    (found,) = list_changes(plan(spec, step), spec)
    return found


@pytest.mark.parametrize(("step", "words"), [
    ({"kind": "widen", "layer": "set", "to": 9}, ("set 5 to 9",)),
    ({"kind": "grow_lstm", "to": 30, "scale": 0.25}, ("lstm 24 to 30", "±0.25")),
    ({"kind": "embedding", "space": "item", "to": 7}, ("item 3 to 7",)),
    ({"kind": "add_ids", "rows": {"item": 300, "unit": 600}}, ("item 256 to 300", "unit 256 to 600")),
    ({"kind": "slots", "slots": {"wards": 3, "pickups": 0}}, ("wards 1 to 3", "pickups 2 to 0")),
    ({"kind": "split_head", "head": "unit.ally"}, ("unit", "ally")),
    ({"kind": "add_observations", "fields": ["global.time"]}, ("global.time",)),
    ({"kind": "remove_inputs", "fields": ["items", "global.day"]}, ("items, global.day",)),
    ({"kind": "add_actions", "actions": ["glyph"], "anneal_versions": 40}, ("glyph", "40 versions")),
    ({"kind": "game", "values": {"neutrals": False, "runes": False}, "anneal_versions": 7},
     ("neutrals = False, runes = False", "7 versions"))])
def test_row_names_the_values_before_and_after(step: Step, words: tuple[str, ...]) -> None:
    found = row(step)
    assert found.number == 1 and found.kind == step["kind"]
    for word in words:
        assert word in found.what


def test_row_differs_where_a_step_is_exact_or_at_once() -> None:
    for step, key in (({"kind": "grow_lstm", "to": 30}, {"exact": True}),
                      ({"kind": "add_actions", "actions": ["glyph"]}, {"anneal_versions": 4}),
                      ({"kind": "game", "values": {"neutrals": False}}, {"anneal_versions": 4})):
        plain, other = row(step), row({**step, **key})
        assert plain.what != other.what
        assert ("0.002" in plain.what) == (step["kind"] == "grow_lstm") and "0.002" not in other.what
        assert "versions" not in plain.what


@pytest.mark.parametrize(("step", "exact", "conditional"), [
    ({"kind": "grow_lstm", "to": 30}, False, False), ({"kind": "grow_lstm", "to": 30, "exact": True}, True, False),
    ({"kind": "widen", "layer": "set", "to": 9}, True, False), ({"kind": "slots", "slots": {"wards": 3}}, True, True),
    ({"kind": "embedding", "space": "item", "to": 4}, True, False),
    ({"kind": "embedding", "space": "item", "to": 2}, False, False),
    ({"kind": "add_actions", "actions": ["glyph"]}, True, True),
    ({"kind": "add_ids", "rows": {"item": 300}}, True, True),
    ({"kind": "game", "values": {"neutrals": False}}, True, True),
    ({"kind": "remove_inputs", "fields": ["items"]}, True, True),
    ({"kind": "add_observations", "fields": ["global.time"]}, True, False),
    ({"kind": "split_head", "head": "unit.ally"}, True, False)])
def test_row_says_what_the_step_promises(step: Step, exact: bool, conditional: bool) -> None:
    promise = row(step).promise
    assert promise.split(",")[0] == ("exact" if exact else "approximate")
    assert (", while " in promise) == conditional


@pytest.mark.parametrize(("step", "tolerance"), [
    ({"kind": "game", "values": {"neutrals": False}}, 0.0), ({"kind": "add_ids", "rows": {"item": 300}}, 0.0),
    ({"kind": "add_ids", "rows": {"action": 600}}, 1e-4), ({"kind": "add_actions", "actions": ["glyph"]}, 0.0),
    ({"kind": "widen", "layer": "set", "to": 9}, 1e-4), ({"kind": "split_head", "head": "unit.ally"}, 1e-4)])
def test_steps_that_change_no_product_are_bit_identical(step: Step, tolerance: float) -> None:
    spec = agent(1, scripted_actions=["glyph"])
    (one,) = plan(spec, step).steps
    assert one.promise(spec).tolerance == tolerance


def test_row_lists_the_tensors_that_change() -> None:
    found = row({"kind": "embedding", "space": "pickup", "to": 4})
    width = agent(1).tensor_shapes()["trunk.sets.pickups.first.weight"][1]
    rows = agent(1).tensor_shapes()["embeddings.tables.pickup"][0]
    assert set(found.tensors) == {
        TensorChange("embeddings.tables.pickup", (rows, 2), (rows, 4)),
        TensorChange("trunk.sets.pickups.first.weight", (7, width), (7, width + 2))}
    assert found.parameters_after - found.parameters_before == 2 * rows + 14 and found.lossy == ""
    counts = f"| {found.parameters_before:,} | {found.parameters_after:,} | +{2 * rows + 14:,} |"
    assert counts in changes_to_markdown([found])
    gone = row({"kind": "slots", "slots": {"pickups": 0}})
    assert {t.after for t in gone.tensors if t.name.startswith("trunk.sets.pickups")} == {None} and gone.lossy

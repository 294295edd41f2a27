import itertools
from typing import Any

import numpy as np
import pytest

from five.agent.surgery import AgentSpec, Plan, changes_to_markdown, derive_plan, lint_plan, list_changes
from five.agent.surgery.check import check_plan
from tests.agent.surgery.agents import agent, kinds, plan, recorded, trained

FROM = agent(5, {"omit": ("global.time", "units.position"), "pickups": 0}, scripted_actions=["glyph"], buyback=False)
TO = agent(
    5, {"omit": ("units.animation",), "pickups": 3, "allied_creeps": 8, "mirror_dire": True},
    {"unit": 12, "key": 10, "unit_hidden": 20, "lstm": 40, "item_embedding": 6, "split_heads": ("unit.ally",),
     "id_rows": {"item": 300}, "precision": "bfloat16"}, buyback=True, neutrals=False)


def test_derived_plan_reaches_the_target() -> None:
    of = derive_plan(FROM, TO, "derived")
    assert of.target(FROM).schema == TO.schema and of.target(FROM).game == TO.game
    assert kinds(of) == ["widen", "widen", "widen", "embedding", "add_ids", "split_head", "grow_lstm", "remove_inputs",
                         "slots", "add_observations", "add_actions", "game"]
    assert Plan.from_yaml(of.to_yaml()).digest == of.digest
    report = check_plan(of, FROM, trained(FROM), recorded(FROM))
    assert all(step.holds for step in report.steps)


Keys = dict[str, Any]


@pytest.mark.parametrize(("before", "after", "expected"), [
    ({"buyback": False, "scripted_actions": []}, {"neutrals": False}, [("game", ["neutrals"])]),
    ({"buyback": False, "scripted_actions": []}, {"buyback": True}, [("add_actions", ["buyback"])]),
    ({"buyback": False, "scripted_actions": ["buyback"]}, {"buyback": True, "scripted_actions": []},
     [("add_actions", ["buyback"])]),
    ({"buyback": True, "scripted_actions": ["buyback"]}, {"scripted_actions": []}, [("add_actions", ["buyback"])]),
    ({"buyback": False, "scripted_actions": ["buyback"]}, {"buyback": True}, [("game", ["buyback"])]),
    ({"buyback": True, "scripted_actions": []}, {"buyback": False}, [("game", ["buyback"])]),
    ({"buyback": True, "scripted_actions": []}, {"scripted_actions": ["glyph"]}, [("game", ["scripted_actions"])]),
    ({"buyback": False, "scripted_actions": ["shrine", "glyph"]}, {"buyback": True, "scripted_actions": []},
     [("add_actions", ["buyback", "glyph", "shrine"])])])
def test_actions_that_are_offered(before: Keys, after: Keys, expected: list[tuple[str, list[str]]]) -> None:
    old, new = agent(1, **before), agent(1, **before | after)
    of = derive_plan(old, new, "actions")
    assert of.target(old).game == new.game
    assert [(step.kind, list(step.model_dump().get("actions", step.model_dump().get("values")))) for step in of.steps
            ] == expected


@pytest.mark.parametrize(("lstm", "scale"), [(24, 0.01), (100, 0.005)])
def test_scale_of_new_lstm_weights_is_a_share_of_the_layers(lstm: int, scale: float) -> None:
    (step,) = derive_plan(agent(1, model={"lstm": lstm}), agent(1, model={"lstm": 128}), "core").steps
    assert step.model_dump() == {"kind": "grow_lstm", "to": 128, "scale": scale, "seed": 0, "exact": False}


RESIZED: list[dict[str, Any]] = [
    {"kind": "remove_inputs", "fields": ["nearby_map"]},
    {"kind": "game", "values": {"observation.nearby_map": 5}}, {"kind": "add_observations", "fields": ["nearby_map"]}]


@pytest.mark.parametrize(("old", "new", "steps"), [
    ({"minimap": 6}, {"minimap": 5}, [{"kind": "remove_inputs", "fields": ["minimap"]},
                                      {"kind": "game", "values": {"observation.minimap": 5}},
                                      {"kind": "add_observations", "fields": ["minimap"]}]),
    ({"minimap": 6, "omit": ("minimap",)}, {"minimap": 5, "omit": ()}, [
        {"kind": "game", "values": {"observation.minimap": 5}}, {"kind": "add_observations", "fields": ["minimap"]}]),
    ({"minimap": 6}, {"minimap": 5, "omit": ("minimap",)}, [
        {"kind": "remove_inputs", "fields": ["minimap"]}, {"kind": "game", "values": {"observation.minimap": 5}}]),
    ({"omit": ("items.charges",)}, {"omit": ("items",)}, [{"kind": "remove_inputs", "fields": ["items"]}]),
    ({"omit": ("items",)}, {"omit": ()}, [{"kind": "add_observations", "fields": ["items"]}]),
    ({"omit": ("items",)}, {"omit": ("items.charges",)}, [
        {"kind": "add_observations", "fields": ["items"]}, {"kind": "remove_inputs", "fields": ["items.charges"]}]),
    ({"omit": ("nearby_map.area",)}, {"nearby_map": 5}, [
        *RESIZED, {"kind": "remove_inputs", "fields": ["nearby_map.area"]}]),
    ({}, {"nearby_map": 5, "omit": ("nearby_map.area",)}, [
        *RESIZED, {"kind": "remove_inputs", "fields": ["nearby_map.area"]}]),
    ({"omit": ("nearby_map.area",)}, {"nearby_map": 5, "omit": ()}, RESIZED),
    ({"wards": 1, "pickups": 2}, {"wards": 2, "pickups": 0}, [{"kind": "slots", "slots": {"wards": 2, "pickups": 0}}]),
])
def test_steps_of_changed_observations(old: Keys, new: Keys, steps: list[dict[str, Any]]) -> None:
    before, after = agent(1, old), agent(1, old | new)
    of = derive_plan(before, after, "observed")
    assert [step.model_dump(mode="json", exclude_unset=True) for step in of.steps] == steps
    assert of.target(before).schema == after.schema


def test_all_unsupported_changes_are_named_with_their_values() -> None:
    new = agent(1, model={"input_clip": 4.0, "cross_hero_share": 0.5, "set": 9})
    with pytest.raises(ValueError, match="no surgery step can change") as error:
        derive_plan(agent(1), new, "wrong")
    assert "model.input_clip to 4.0" in str(error.value) and "model.cross_hero_share to 0.5" in str(error.value)
    assert "model.set " not in str(error.value), "a layer can be widened"


def test_resized_map_is_removed_and_added_again() -> None:
    to = agent(1, {"minimap": 4, "passability": 5})
    of = derive_plan(agent(1), to, "maps")
    assert kinds(of) == ["remove_inputs", "game", "add_observations"]
    assert of.target(agent(1)).schema == to.schema
    assert [f.code for f in lint_plan(of, agent(1)) if f.code == "lossy"] == ["lossy"]


@pytest.mark.parametrize(("to", "words"), [
    (agent(1), "do not differ"), (agent(1, model={"precision": "bfloat16"}), "do not differ"),
    (agent(1, model={"unit": 7}), "can only grow"),
    (agent(1, model={"input_clip": 4.0}), "model.input_clip to 4.0"),
    (agent(1, model={"cross_hero_share": 0.5}), "model.cross_hero_share to 0.5"),
    (agent(1, model={"id_rows": {"item": 200}}), "do not differ"),  # the default has more
    (agent(5), "heroes_per_team"),
])
def test_unsupported_changes_are_named(to: AgentSpec, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        derive_plan(agent(1), to, "wrong")


def test_embedding_rows_cannot_be_removed() -> None:
    wide = agent(1, model={"id_rows": {"item": 300}})
    for to in (agent(1), agent(1, model={"lstm": 128})):
        with pytest.raises(ValueError, match="no surgery step can change model.rows of item to 256"):
            derive_plan(wide, to, "narrow")


def test_change_table_counts_parameters() -> None:
    rows = list_changes(derive_plan(FROM, TO, "derived"), FROM)
    assert rows[0].parameters_before == FROM.parameters and rows[-1].parameters_after == TO.parameters
    for one, two in itertools.pairwise(rows):
        assert one.parameters_after == two.parameters_before
    assert FROM.parameters == sum(int(np.prod(x.shape)) for x in FROM.labels.values() if x.trained)
    grown = next(row for row in rows if row.kind == "grow_lstm")
    assert ("core.lstm.weight_hh_l0", (96, 24), (160, 40)) in grown.tensors and grown.promise == "approximate"
    new = next(row for row in rows if row.kind == "slots")
    assert [t.before for t in new.tensors if t.name == "trunk.sets.pickups.first.weight"] == [None]
    text = changes_to_markdown(rows)
    assert len(text.splitlines()) == len(rows) + 2 and f"{TO.parameters:,}" in text


def codes(of: Plan, spec: AgentSpec, **more) -> list[tuple[str, str, int]]:
    return [(f.level, f.code, f.step) for f in lint_plan(of, spec, **more)]


def test_lint_findings_by_code() -> None:
    spec = agent(1, {"omit": ("units.position", "global.time")}, scripted_actions=["glyph"])
    clean = plan(spec, {"kind": "add_observations", "fields": ["global.time"], "prior": {"global.time": {"std": 2}}},
                 {"kind": "add_actions", "actions": ["glyph"], "anneal_versions": 10},
                 {"kind": "grow_lstm", "to": 30, "scale": 0.01})
    assert codes(clean, spec) == [("note", "memory", 0)]
    bad = plan(spec, {"kind": "remove_inputs", "fields": ["units.vector"]},
               {"kind": "add_actions", "actions": ["glyph"]},
               {"kind": "add_observations", "fields": ["units.position"]},
               {"kind": "grow_lstm", "to": 30, "scale": 0.2}, {"kind": "game", "values": {"neutrals": False}},
               {"kind": "slots", "slots": {"wards": 0}}, {"kind": "game", "values": {"observation.mirror_dire": True}},
               warm_up_versions=0)
    assert codes(bad, spec) == [
        ("warning", "lossy", 1), ("warning", "no-anneal", 2), ("warning", "no-prior", 3), ("warning", "lstm-scale", 4),
        ("warning", "no-anneal", 5), ("warning", "lossy", 6), ("warning", "meaning", 7), ("warning", "warm-up", 0),
        ("note", "memory", 0)]
    settles = plan(spec, {"kind": "add_observations", "fields": ["units.position"]})
    assert codes(settles, spec) == [("note", "no-prior", 1), ("note", "memory", 0)]
    big = {name: array * 100 for name, array in trained(spec).items()}
    assert ("warning", "lstm-scale", 4) not in codes(bad, spec, tensors=big)
    (memory,) = [f for f in lint_plan(clean, spec) if f.code == "memory"]
    assert f"{spec.version_bytes:,} bytes" in memory.message


def test_spec_bytes_equal_the_arrays() -> None:
    spec = agent(5)
    assert spec.version_bytes == sum(array.nbytes for array in trained(spec).values())
    assert AgentSpec.from_json(spec.to_json()).schema == spec.schema
    with pytest.raises(ValueError, match="not an agent's specification"):
        AgentSpec.from_json("{}")

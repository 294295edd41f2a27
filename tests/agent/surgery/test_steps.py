from typing import Any

import pytest

from five.agent.surgery.check import check_plan
from tests.agent.surgery.agents import agent, plan, recorded, trained

OMITTED = {"omit": ("units.animation", "units.position", "heroes.in_line", "global.time", "nearby_map.area_effect",
                    "previous_action.offsets", "previous_action.action", "allied_heroes.next_item", "items",
                    "minimap")}
NONE = {"neutral_creeps": 0, "unit_modifiers": 0, "hero_modifiers": 0, "pickups": 0, "couriers": 0}
# Name: observation and model before, the step, whether parameters grow (1), stay (0) or shrink (-1).
STEPS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], int]] = {
    **{f"widen {layer}": ({}, {}, {"kind": "widen", "layer": layer, "to": to}, 1)
       for layer, to in {"unit_hidden": 19, "unit": 11, "set_hidden": 12, "set": 9, "lstm_input": 27,
                         "conv_filters": 7, "auxiliary_hidden": 13, "key": 8}.items()},
    "widen key to the unit's width": ({}, {"key": 5}, {"kind": "widen", "layer": "key", "to": 8}, 1),
    "widen pooled half": ({}, {"cross_hero_share": 0.5}, {"kind": "widen", "layer": "lstm_input", "to": 31}, 1),
    "grow lstm": ({}, {}, {"kind": "grow_lstm", "to": 48, "scale": 0.005}, 1),
    "grow lstm exactly": ({}, {}, {"kind": "grow_lstm", "to": 48, "exact": True}, 1),
    **{f"embedding of {space}": ({}, {}, {"kind": "embedding", "space": space, "to": 7}, 1)
       for space in ("unit", "animation", "modifier", "ability", "item", "pickup", "build", "area")},
    "observe fields": (OMITTED, {}, {"kind": "add_observations", "fields": [
        f for f in OMITTED["omit"] if "." in f], "prior": {"global.time": {"mean": 0.5, "std": 2.0}}}, 1),
    "observe blocks": (OMITTED, {}, {"kind": "add_observations", "fields": ["items", "minimap"]}, 1),
    "more slots": ({}, {}, {"kind": "slots", "slots": {"allied_creeps": 9, "wards": 3, "neutral_creeps": 5,
                                                       "buildings": 6}}, 1),
    "new groups and sets": (NONE, {}, {"kind": "slots", "slots": {name: 1 for name in NONE}}, 1),
    "fewer slots": ({}, {}, {"kind": "slots", "slots": {name: 0 for name in NONE}}, -1),
    "remove fields": ({}, {}, {"kind": "remove_inputs", "fields": [
        "units.animation", "units.position", "units.vector", "heroes.in_line", "global.time", "nearby_map.area_effect",
        "nearby_map.elevation", "previous_action.offsets", "previous_action.action", "allied_heroes.next_item",
        "allied_heroes.passability", "minimap.visible", "items.charges"]}, -1),
    "remove at constants": ({}, {}, {
        "kind": "remove_inputs", "fields": ["units.position", "units.vector", "global.time", "minimap.visible",
                                            "nearby_map.area", "items.charges", "heroes.gold", "pickups.location",
                                            "previous_action.offsets"],
        "constants": {"units.position": 0.7, "units.vector": -0.4, "global.time": 40.0, "minimap.visible": 1.0,
                      "nearby_map.area": 0.3, "items.charges": 1.5, "heroes.gold": 0.2, "pickups.location": -1.0,
                      "previous_action.offsets": 1.0}}, -1),
    "remove blocks": ({}, {}, {"kind": "remove_inputs", "fields": ["minimap", "nearby_map", "items", "abilities"],
                               "constants": {"minimap.creeps": 1.0, "nearby_map.elevation": 0.5}}, -1),
    "remove what is left of a block": ({"omit": ("minimap.visible",)}, {},
                                       {"kind": "remove_inputs", "fields": ["minimap"]}, -1),
    "add ids": ({}, {}, {"kind": "add_ids", "rows": {"item": 300, "unit": 260}}, 1),
    "add ids of actions": ({}, {}, {"kind": "add_ids", "rows": {"action": 600}}, 1),
    "add an action": ({}, {}, {"kind": "add_actions", "actions": ["glyph"]}, 0),
    **{f"split {head}": ({}, {}, {"kind": "split_head", "head": head}, 1)
       for head in ("unit.attack", "unit.enemy", "unit.ally", "offset.move", "offset.follow")},
    "split another": ({}, {"split_heads": ("unit.ally", "offset.move")},
                      {"kind": "split_head", "head": "unit.enemy"}, 1),
    "change the game": ({}, {}, {"kind": "game", "values": {"neutrals": False, "randomisation.stats": 0.1,
                                                            "observation.mirror_dire": True}}, 0),
}


@pytest.mark.parametrize("heroes", [1, 5])
@pytest.mark.parametrize("name", STEPS)
def test_step_keeps_its_promise(name: str, heroes: int) -> None:
    observation, model, step, more = STEPS[name]
    spec = agent(heroes, observation, model, scripted_actions=["glyph"])
    of = plan(spec, step, bounds={"mean_kl": 100.0, "mean_value_change": 100.0})
    report = check_plan(of, spec, trained(spec), recorded(spec))
    (one,) = report.steps
    assert report.ok and one.holds, report.problems
    change = report.parameters_after - report.parameters_before
    assert (change > 0) - (change < 0) == more
    assert one.exact == (name != "grow lstm")
    if one.exact:
        assert one.difference.max_logit_change <= 3e-5 and one.difference.max_value_change <= 3e-5
    else:
        assert one.difference.max_logit_change > 1e-5 and one.difference.mean_kl < 1e-3
    assert report.difference.largest > 1, "a policy without opinions proves little"

import numpy as np
import pytest

from five.agent.model.input_structure import id_rows
from five.agent.surgery import convert_observations, convert_state
from five.agent.surgery.observation_labels import SPACES, cell_labels, slot_labels
from five.agent.surgery.observations import convert
from tests.agent.model_cases import random_arrays
from tests.agent.surgery.agents import agent, plan
from tests.dota.watching import read


@pytest.mark.parametrize("heroes", [1, 5])
def test_every_entry_of_a_team_step_has_a_label(heroes: int) -> None:
    layout = agent(heroes).layout
    for array, labels in cell_labels(layout).items():
        assert len(labels) == layout.array_specs()[array][0][-1] == len(set(labels))
    ids = {f"{b.name}.{f.name}" for b in layout.blocks.values() for f in b.fields if f.array.endswith("ids")}
    assert ids == set(SPACES)


def test_shared_entries_move_and_new_ones_are_empty() -> None:
    spec = agent(5, {"omit": ("heroes.gold", "items", "previous_action.action"), "pickups": 1})
    of = plan(spec, {"kind": "add_observations", "fields": ["heroes.gold", "items", "previous_action.action"]},
              {"kind": "slots", "slots": {"allied_creeps": 7, "unit_modifiers": 3, "pickups": 4}},
              {"kind": "remove_inputs", "fields": ["units.facing", "global.day"]})
    after = of.target(spec)
    arrays = random_arrays(spec.layout, 2, 3, seed=4)
    made = convert_observations(of, spec, arrays)
    noisy = convert_observations(of, spec, arrays, "random", seed=1)
    for name, (shape, dtype) in after.layout.array_specs().items():
        assert made[name].shape == (2, 3, *shape) and made[name].dtype == dtype
    old, new = spec.layout, after.layout
    for block in ("global", "heroes", "allied_heroes", "abilities", "hero_modifiers", "nearby_map"):
        for field in new.blocks[block].fields:
            if field.array == "model" or not old.blocks[block].has(field.name):
                continue
            for lead in ((0, 0), (1, 2)):
                for hero in (0, 4):
                    np.testing.assert_array_equal(read(new, made, block, field.name, lead, hero),
                                                  read(old, arrays, block, field.name, lead, hero))
    creeps = [read(x.layout, a, "units", "position", (1, 1))[x.layout.groups["enemy_creeps"].start:][:5]
              for x, a in ((spec, arrays), (after, made))]
    np.testing.assert_array_equal(*creeps)
    for x in (made, noisy):
        assert not read(new, x, "units", "unit", (1, 1))[new.groups["allied_creeps"].start + 5:][:2].any()
    assert not read(new, made, "heroes", "gold", (0, 0)).any() and read(new, noisy, "heroes", "gold", (0, 0)).all()
    assert not read(new, made, "items", "item", (0, 0)).any() and read(new, noisy, "items", "item", (0, 0)).any()


def test_targets_follow_their_slots() -> None:
    spec = agent(1)
    of = plan(spec, {"kind": "slots", "slots": {"allied_creeps": 7, "neutral_creeps": 0}})
    after = of.target(spec).layout
    arrays = random_arrays(spec.layout, 1, 1, seed=2)
    tower, neutral = spec.layout.groups["enemy_buildings"].start + 1, spec.layout.groups["neutral_creeps"].start
    arrays["actions"] = np.zeros((1, 1, 1, 6), np.int16)
    arrays["actions"][..., 2], arrays["actions"][..., 3] = tower, neutral
    arrays["target_mask"][:] = 0
    arrays["target_mask"][..., tower] = 1
    previous = spec.layout.blocks["previous_action"]
    place = previous.offset["private_ids"] + previous.field("target_slot").offset
    arrays["private_ids"][..., place] = tower + 1
    made = convert_observations(of, spec, arrays)
    now = after.groups["enemy_buildings"].start + 1
    assert now != tower and made["actions"][0, 0, 0, 2] == now and made["actions"][0, 0, 0, 3] == 0
    assert list(np.flatnonzero(made["target_mask"][0, 0, 0, 0])) == [now]
    previous = after.blocks["previous_action"]
    place = previous.offset["private_ids"] + previous.field("target_slot").offset
    assert made["private_ids"][0, 0, 0, place] == now + 1


def test_changed_slots_are_no_targets() -> None:
    spec = agent(1)
    of = plan(spec, {"kind": "slots", "slots": {"allied_creeps": 7, "neutral_creeps": 0}})
    after = of.target(spec).layout
    arrays = random_arrays(spec.layout, 1, 1, seed=2)
    arrays["target_mask"][:] = 1
    old, new = spec.layout.blocks["previous_action"], after.blocks["previous_action"]
    at, now = (block.offset["private_ids"] + block.field("target_slot").offset for block in (old, new))
    slots = list(slot_labels(after))
    for i, label in enumerate(slot_labels(spec.layout)):
        arrays["private_ids"][..., at] = i + 1
        made = convert_observations(of, spec, arrays)
        assert made["private_ids"][0, 0, 0, now] == (slots.index(label) + 1 if label in slots else 0), label
    arrays["private_ids"][..., at] = 0
    assert convert_observations(of, spec, arrays)["private_ids"][0, 0, 0, now] == 0, "no target stays no target"
    mask = made["target_mask"][0, 0, 0]
    assert (mask == [label in slot_labels(spec.layout) for label in slots]).all(), "an added slot is empty"


@pytest.mark.parametrize("heroes", [1, 2])
def test_modifiers_follow_their_owners(heroes: int) -> None:
    spec = agent(heroes, {"unit_modifiers": 2})
    of = plan(spec, {"kind": "slots", "slots": {"allied_creeps": 7, "wards": 0, "neutral_creeps": 1,
                                                "unit_modifiers": 3, "hero_modifiers": 4}})
    after = of.target(spec)
    arrays = random_arrays(spec.layout, 1, 1, seed=6)
    made = convert_observations(of, spec, arrays)
    slots, new_slots = (list(slot_labels(x.layout)) for x in (spec, after))
    for block, first, each in (("hero_modifiers", 0, 3), ("unit_modifiers", 2 * heroes, 2)):
        old, new = (read(x.layout, a, block, "modifier", (0, 0)) for x, a in ((spec, arrays), (after, made)))
        owned = [slot for slot in slots if slot in new_slots and block.startswith("hero") == ("heroes" in slot)]
        assert len(owned) > heroes and old.any()
        for slot in owned:
            was, now = (slots.index(slot) - first) * each, (new_slots.index(slot) - first) * (each + 1)
            np.testing.assert_array_equal(new[now:now + each], old[was:was + each], err_msg=f"{block} of {slot}")
            assert not new[now + each].any(), "the new row of an owner is empty"


def test_random_ids_fit_into_their_tables() -> None:
    omitted = ("units.animation", "previous_action.target_slot", "previous_action.action", "allied_heroes.build")
    spec = agent(1, {"omit": omitted})
    of = plan(spec, {"kind": "add_observations", "fields": list(omitted)})
    after = of.target(spec)
    arrays = random_arrays(spec.layout, 60, 30, seed=3)
    made = convert_observations(of, spec, arrays, "random")
    highest = {"animation": id_rows(after.model, "animation"), "target_slot": after.layout.units + 1,
               "action": id_rows(after.model, "action"), "build": id_rows(after.model, "build")}
    for name in omitted:
        block, field = name.split(".")
        found = np.concatenate([read(after.layout, made, block, field, (t, b)).ravel() for t in range(60)
                                for b in range(30)])
        assert 0.8 * highest[field] < found.max() < highest[field] and found.min() == 0, name
        assert field != "target_slot" or found.max() == after.layout.units, "the last slot is a target, too"
        assert 0.4 < (found == 0).mean() < 0.9, f"{name}: about half is empty"
    other = convert_observations(of, spec, arrays, "random", seed=1)
    again = convert_observations(of, spec, arrays, "random", seed=0)
    assert not np.array_equal(made["shared_ids"], other["shared_ids"])
    np.testing.assert_array_equal(made["shared_ids"], again["shared_ids"])


def test_new_numbers_are_random_in_every_row() -> None:
    spec = agent(1, {"omit": ("units.position",)})
    of = plan(spec, {"kind": "add_observations", "fields": ["units.position"]})
    made = convert_observations(of, spec, random_arrays(spec.layout, 20, 10, seed=3), "random")
    rows = np.array([read(of.target(spec).layout, made, "units", "position", (t, 0)) for t in range(20)])
    assert rows.std() == pytest.approx(1, abs=0.1) and abs(rows.mean()) < 0.1
    assert (rows[0] != rows[1]).all() and (rows[:, 0] != rows[:, 1]).all()


def test_game_with_other_heroes_is_refused() -> None:
    with pytest.raises(ValueError, match="observations of 1 heroes cannot be converted to 2 heroes"):
        convert(agent(1), agent(2), {})


def test_arrays_that_are_missing_stay_missing() -> None:
    spec = agent(1)
    of = plan(spec, {"kind": "slots", "slots": {"wards": 3}})
    arrays = random_arrays(spec.layout, 1)
    assert convert_observations(of, spec, {"shared": arrays["shared"]}).keys() == {"shared"}
    same = plan(spec, {"kind": "widen", "layer": "set", "to": 9})
    assert all(array is arrays[name] for name, array in convert_observations(same, spec, arrays).items())


def test_state_of_a_narrower_model_is_cut() -> None:
    state = {"h": np.arange(60, dtype=np.float32).reshape(2, 1, 30)}
    made = convert_state(agent(1, model={"lstm": 30}), agent(1), state)
    np.testing.assert_array_equal(made["h"], state["h"][..., :24])
    assert made["h"].dtype == np.float32


def test_new_state_units_begin_at_zero() -> None:
    spec = agent(1)
    after = plan(spec, {"kind": "grow_lstm", "to": 30}, {"kind": "widen", "layer": "key", "to": 8}).target(spec)
    state = {"h": np.ones((2, 1, 24), np.float32), "target_embedding": np.ones((2, 1, 6), np.float32)}
    made = convert_state(spec, after, state)
    assert made["h"].shape == (2, 1, 30) and made["h"].sum() == 48 and made["target_embedding"].sum() == 12


def test_arrays_of_another_layout_are_rejected() -> None:
    spec = agent(1)
    of = plan(spec, {"kind": "slots", "slots": {"wards": 3}})
    with pytest.raises(ValueError, match="of layout"):
        convert_observations(of, spec, random_arrays(agent(1, {"wards": 4}).layout, 1))

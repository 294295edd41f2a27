"""Samples in which removed inputs have their constants, the reference for their removal."""

import numpy as np
import pytest

from five.agent.surgery.removed_inputs import replace_removed_inputs
from five.agent.surgery.steps.remove import RemoveInputs
from tests.agent.surgery.agents import agent, recorded, trained
from tests.dota.watching import read

SPEC = agent(2)
LAYOUT = SPEC.layout


def mean_of(version: dict[str, np.ndarray], label: str) -> float:
    return float(version["normaliser.mean"][SPEC.labels["normaliser.mean"].axes[0].labels.index(label)])


def test_numbers_get_their_constant_or_the_mean_of_their_group() -> None:
    version, arrays = trained(SPEC), recorded(SPEC).observation
    step = RemoveInputs(fields=("units.position", "heroes.gold", "global.time", "minimap.visible"),
                        constants={"heroes.gold": 0.25})
    shown = replace_removed_inputs(step, SPEC, version, arrays)
    units = read(LAYOUT, shown, "units", "position", (0, 0))
    for group, tower in (("allied_heroes", "allied_heroes"), ("enemy_heroes", "enemy_heroes"),
                         ("allied_creeps", "allied_units"), ("enemy_buildings", "enemy_units"),
                         ("neutral_creeps", "neutrals")):
        expected = [np.float32(mean_of(version, f"units:{tower}:units.position[{k}]")) for k in range(units.shape[1])]
        assert units[LAYOUT.groups[group].start].tolist() == expected, group
    assert (read(LAYOUT, shown, "heroes", "gold", (0, 0)) == 0.25).all()
    time = np.float32(mean_of(version, "global::global.time[0]"))
    assert read(LAYOUT, shown, "global", "time", (0, 0)).item() == time
    assert (read(LAYOUT, shown, "minimap", "visible", (0, 0)) == np.float32(
        mean_of(version, "minimap::minimap.visible[0]"))).all()
    for block, field in (("units", "vector"), ("heroes", "level"), ("global", "day")):
        if LAYOUT.blocks[block].has(field):
            np.testing.assert_array_equal(read(LAYOUT, shown, block, field, (1, 1)),
                                          read(LAYOUT, arrays, block, field, (1, 1)))


def test_ids_become_none_and_other_arrays_stay() -> None:
    version, arrays = trained(SPEC), recorded(SPEC).observation
    assert read(LAYOUT, arrays, "units", "animation", (0, 0)).any()
    shown = replace_removed_inputs(RemoveInputs(fields=("units.animation",)), SPEC, version, arrays)
    assert not read(LAYOUT, shown, "units", "animation", (0, 0)).any()
    np.testing.assert_array_equal(read(LAYOUT, shown, "units", "unit", (0, 0)),
                                  read(LAYOUT, arrays, "units", "unit", (0, 0)))
    assert shown["shared_ids"].dtype == arrays["shared_ids"].dtype
    assert all(shown[name] is arrays[name] for name in arrays if name != "shared_ids")


@pytest.mark.parametrize(("count", "expected"), [(0.0, 0.0), (1.0, 7.5)])
def test_mean_of_inputs_without_data_is_zero(count: float, expected: float) -> None:
    version, arrays = trained(SPEC), recorded(SPEC).observation
    version["normaliser.count"][:] = count
    version["normaliser.mean"][:] = 7.5
    shown = replace_removed_inputs(RemoveInputs(fields=("global.time",)), SPEC, version, arrays)
    assert read(LAYOUT, shown, "global", "time", (0, 0)).item() == expected
    assert shown["shared"].dtype == np.float32, "a mean may not be a float16"
    assert shown["private"] is arrays["private"]


def test_missing_arrays_stay_missing() -> None:
    version, arrays = trained(SPEC), recorded(SPEC).observation
    step = RemoveInputs(fields=("global.time", "nearby_map.elevation"))
    shown = replace_removed_inputs(step, SPEC, version, {"shared": arrays["shared"]})
    assert shown.keys() == {"shared"} and not np.array_equal(shown["shared"], arrays["shared"])

"""Borders of the findings on a plan, and the values that they name."""

from typing import Any

import pytest

from five.agent.surgery import AgentSpec, LintFinding, lint_plan
from tests.agent.surgery.agents import agent, plan, trained

OMITTED = ("units.position", "global.time", "items")


def findings(spec: AgentSpec, *steps: dict[str, Any], code: str, **more: Any) -> list[LintFinding]:
    return [found for found in lint_plan(plan(spec, *steps, **more), spec) if found.code == code]


@pytest.mark.parametrize(("scale", "warned"), [(0.0408, False), (0.0409, True), (0.002, False), (1.0, True)])
def test_lstm_scale_of_a_fifth_of_a_new_layers_is_the_largest(scale: float, warned: bool) -> None:
    """A layer of 24 units starts uniform on ± 24 ** -0.5, which is 0.204."""
    found = findings(agent(1), {"kind": "grow_lstm", "to": 30, "scale": scale}, code="lstm-scale")
    assert len(found) == warned
    if warned:
        assert f"{scale / 3**0.5:.2g}" in found[0].message and f"{24**-0.5 / 3**0.5:.2g}" in found[0].message
    assert not findings(agent(1), {"kind": "grow_lstm", "to": 30, "scale": scale, "exact": True}, code="lstm-scale")


def test_lstm_scale_is_compared_with_a_versions_weights() -> None:
    spec = agent(1)
    version = trained(spec)
    deviation = float(version["core.lstm.weight_hh_l0"].std())
    for scale, warned in ((0.199, False), (0.201, True)):
        of = plan(spec, {"kind": "grow_lstm", "to": 30, "scale": scale * deviation * 3**0.5})
        found = [f for f in lint_plan(of, spec, version) if f.code == "lstm-scale"]
        assert len(found) == warned and all(f"{deviation:.2g}" in f.message for f in found)


@pytest.mark.parametrize(("versions", "warned"), [(0, True), (3, True), (4, False)])
def test_new_parameters_need_four_warm_up_versions(versions: int, warned: bool) -> None:
    grown = {"kind": "widen", "layer": "set", "to": 9}, {"kind": "game", "values": {"neutrals": False}}
    assert len(findings(agent(1), *grown, code="warm-up", warm_up_versions=versions)) == warned
    for step in ({"kind": "remove_inputs", "fields": ["items"]}, {"kind": "game", "values": {"neutrals": False}}):
        assert not findings(agent(1), step, code="warm-up", warm_up_versions=versions)


@pytest.mark.parametrize("mirrored", [False, True])
def test_mirrored_dire_changes_the_meaning(mirrored: bool) -> None:
    spec = agent(1, {"mirror_dire": mirrored})
    (found,) = lint_plan(plan(spec, {"kind": "game", "values": {"observation.mirror_dire": not mirrored}}), spec)[:1]
    assert (found.level, found.code, found.step) == ("warning", "meaning", 1)


@pytest.mark.parametrize(("kind", "key"), [("game", {"values": {"neutrals": False}}),
                                           ("add_actions", {"actions": ["glyph"]})])
def test_change_of_all_games_at_once_is_warned_of(kind: str, key: dict[str, Any]) -> None:
    spec = agent(1, scripted_actions=["glyph"])
    step = {"kind": kind, **key}
    assert [f.level for f in findings(spec, step, code="no-anneal")] == ["warning"]
    assert not findings(spec, {**step, "anneal_versions": 5}, code="no-anneal")


def test_no_anneal_is_advised_for_what_all_games_share() -> None:
    spec = agent(1)
    step = {"kind": "game", "values": {"frameskip": 2 * spec.game.frameskip}}
    assert not findings(spec, step, code="no-anneal")


@pytest.mark.parametrize(("versions", "level"), [(0, "warning"), (1, "note")])
def test_six_fields_without_a_prior_are_named(versions: int, level: str) -> None:
    spec = agent(1, {"omit": OMITTED})
    items = [f"items.{field.name}" for field in agent(1).layout.blocks["items"].fields if field.array == "shared"]
    assert len(items) > 6
    (found,) = findings(spec, {"kind": "add_observations", "fields": ["items"]}, code="no-prior",
                        warm_up_versions=versions)
    assert found.level == level and [name in found.message for name in items] == [i < 6 for i in range(len(items))]
    assert f"and {len(items) - 6} more" in found.message
    known = {name: {"mean": 1.0} for name in items[6:]}
    (found,) = findings(spec, {"kind": "add_observations", "fields": ["items"], "prior": known}, code="no-prior")
    assert " more" not in found.message and all(name in found.message for name in items[:6])


def test_slots_of_a_new_group_have_no_prior() -> None:
    spec = agent(1, {"neutral_creeps": 0})
    (found,) = findings(spec, {"kind": "slots", "slots": {"neutral_creeps": 2}}, code="no-prior")
    assert "units.position" in found.message
    assert not findings(spec, {"kind": "slots", "slots": {"allied_creeps": 7}}, code="no-prior")
    assert not findings(spec, {"kind": "remove_inputs", "fields": ["items"]}, code="no-prior")


def test_memory_of_both_schemas() -> None:
    spec = agent(5)
    of = plan(spec, {"kind": "widen", "layer": "unit", "to": 20}, {"kind": "grow_lstm", "to": 64})
    after = of.target(spec)
    (found,) = findings(spec, {"kind": "widen", "layer": "unit", "to": 20}, {"kind": "grow_lstm", "to": 64},
                        code="memory")
    assert found.level == "note" and found.step == 0
    for count in (spec.version_bytes, after.version_bytes, spec.learner_bytes, after.learner_bytes,
                  spec.learner_bytes + after.learner_bytes):
        assert f"{count / 1_000_000:,.1f} MB ({count:,} bytes)" in found.message
    assert spec.learner_bytes == spec.version_bytes + 12 * spec.parameters


@pytest.mark.parametrize(("step", "lost"), [
    ({"kind": "embedding", "space": "item", "to": 2}, ["item"]), ({"kind": "embedding", "space": "item", "to": 4}, []),
    ({"kind": "slots", "slots": {"wards": 0, "buildings": 6, "pickups": 1}}, ["wards", "pickups"]),
    ({"kind": "slots", "slots": {"wards": 3}}, []), ({"kind": "remove_inputs", "fields": ["items"]}, ["items"]),
    ({"kind": "widen", "layer": "set", "to": 9}, []), ({"kind": "split_head", "head": "unit.ally"}, [])])
def test_permanent_losses_are_named(step: dict[str, Any], lost: list[str]) -> None:
    found = findings(agent(1), step, code="lossy")
    assert len(found) == bool(lost)
    for one in found:
        assert one.level == "warning" and one.step == 1 and "buildings" not in one.message
        assert all(name in one.message for name in lost)

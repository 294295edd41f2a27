from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from five.agent.surgery import check, migrate_policy
from five.agent.surgery.check import CheckReport, PolicyDifference, RecordedSamples, check_plan, compare_policies
from five.agent.surgery.remap import TensorRemap
from five.agent.surgery.steps.observations import AddObservations
from five.agent.surgery.steps.widen import WidenLayer
from tests.agent.surgery.agents import agent, load, plan, recorded, trained


def test_report_is_complete_json() -> None:
    spec = agent(1)
    of = plan(spec, {"kind": "grow_lstm", "to": 48, "scale": 0.02}, {"kind": "widen", "layer": "set", "to": 9})
    report = check_plan(of, spec, trained(spec), recorded(spec))
    assert CheckReport.model_validate_json(report.model_dump_json()) == report
    assert report.digest == of.digest and report.parent == spec.schema and report.target == of.target(spec).schema
    assert [step.exact for step in report.steps] == [False, True] and report.ok and report.hero_steps == 15
    assert report.parameters_before == spec.parameters < report.parameters_after == of.target(spec).parameters
    assert report.difference.mean_kl == pytest.approx(report.steps[0].difference.mean_kl, abs=1e-6)


def test_larger_scale_exceeds_the_bounds() -> None:
    spec = agent(5)
    version, play = trained(spec), recorded(spec)
    kl = []
    for scale in (0.001, 0.01, 0.1, 1.0):
        of = plan(spec, {"kind": "grow_lstm", "to": 48, "scale": scale})
        report = check_plan(of, spec, version, play)
        kl.append(report.difference.mean_kl)
    assert kl == sorted(kl) and kl[0] < 1e-6 < kl[-1]
    assert not report.ok and any(name in " ".join(report.problems) for name in ("mean_kl", "mean_value_change"))
    tight = plan(spec, {"kind": "grow_lstm", "to": 48, "scale": 0.01}, bounds={"max_logit_change": 1e-9})
    report = check_plan(tight, spec, version, play)
    assert not report.ok and report.problems[0].startswith("max_logit_change")


@pytest.mark.parametrize(("layer", "to", "tensor"), [
    ("unit_hidden", 14, "trunk.towers.allied_heroes.second.weight"),
    ("auxiliary_hidden", 14, "auxiliary.win_probability.2.weight")])
def test_broken_promise_is_reported(monkeypatch: pytest.MonkeyPatch, layer: str, to: int,
                                    tensor: str) -> None:
    spec = agent(1)
    of = plan(spec, {"kind": "game", "values": {"neutrals": False}}, {"kind": "widen", "layer": layer, "to": to},
              {"kind": "widen", "layer": "set", "to": 9})

    def finish_tensor(self: WidenLayer, name: str, remap: object, array: np.ndarray) -> None:
        if name == tensor and self.layer == layer:
            array[:, 12:] = 0.02

    monkeypatch.setattr(WidenLayer, "finish_tensor", finish_tensor)
    report = check_plan(of, spec, trained(spec), recorded(spec, 2))
    assert not report.ok and [step.holds for step in report.steps] == [True, False, True]
    (problem,) = (problem for problem in report.problems if "promises to be exact" in problem)
    assert problem.startswith(f"step 2 (widen {layer} ")


@pytest.mark.parametrize("step", [{"kind": "widen", "layer": "set", "to": 9}, {"kind": "grow_lstm", "to": 48}])
def test_values_that_are_not_finite_exceed_the_bounds(step: dict[str, Any]) -> None:
    spec = agent(1)
    version = trained(spec)
    version["value.bias"] = np.full_like(version["value.bias"], np.nan)
    report = check_plan(plan(spec, step), spec, version, recorded(spec, 2))
    assert not report.ok and any("mean_value_change" in problem for problem in report.problems)


def test_weights_on_new_inputs_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The promise is for all values of the inputs, so the check shows the policy random ones."""
    spec = agent(1, {"omit": ("units.position",)})
    of = plan(spec, {"kind": "add_observations", "fields": ["units.position"]})

    def finish_tensor(self: AddObservations, name: str, remap: TensorRemap, array: np.ndarray) -> None:
        if name.startswith("trunk.towers.allied_heroes.first."):
            array[:, remap.new[1]] = 0.5

    monkeypatch.setattr(AddObservations, "finish_tensor", finish_tensor)
    report = check_plan(of, spec, trained(spec), recorded(spec))
    assert [step.holds for step in report.steps] == [False]


@pytest.mark.parametrize(("change", "largest", "holds"), [
    (1e-4, 0.1, True), (1.01e-4, 0.1, False), (1e-2, 100.0, True), (1.01e-2, 100.0, False)])
@pytest.mark.parametrize("changed", ["max_logit_change", "max_value_change", "max_auxiliary_change"])
def test_tolerance_is_relative_to_the_largest_value(monkeypatch: pytest.MonkeyPatch, changed: str, change: float,
                                                    largest: float, holds: bool) -> None:
    none = dict.fromkeys(PolicyDifference.model_fields, 0.0)
    measured = PolicyDifference(**none | {"largest": largest, changed: change})
    monkeypatch.setattr(check, "compare_policies", lambda *arguments: measured)
    spec = agent(1)
    report = check_plan(plan(spec, {"kind": "widen", "layer": "set", "to": 9}), spec, trained(spec), recorded(spec, 1))
    assert [step.holds for step in report.steps] == [holds] and report.ok == holds


def test_report_cannot_be_changed() -> None:
    spec = agent(1)
    report = check_plan(plan(spec, {"kind": "widen", "layer": "set", "to": 9}), spec, trained(spec), recorded(spec, 1))
    for part, name in ((report, "ok"), (report.steps[0], "holds"), (report.difference, "mean_kl")):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(part, name, getattr(part, name))


BOUNDS = ("mean_kl", "mean_value_change", "max_logit_change", "max_value_change")


def test_total_may_reach_its_bounds_and_not_exceed_them() -> None:
    spec = agent(1)
    version, play = trained(spec), recorded(spec, 2)

    def report(bounds: dict[str, float]) -> CheckReport:
        of = plan(spec, {"kind": "remove_inputs", "fields": ["units.position", "items"]}, bounds=bounds)
        return check_plan(of, spec, version, play)

    measured = report({}).difference.model_dump(include=set(BOUNDS))
    assert all(value > 0 for value in measured.values()) and report(measured).ok
    for name in BOUNDS:
        over = report(measured | {name: measured[name] * 0.999})
        assert not over.ok and [problem.split()[0] for problem in over.problems] == [name]


def test_report_lists_each_step() -> None:
    spec = agent(5)
    of = plan(spec, {"kind": "widen", "layer": "set", "to": 9}, {"kind": "grow_lstm", "to": 30},
              {"kind": "game", "values": {"neutrals": False}}, {"kind": "slots", "slots": {"wards": 0}})
    play = recorded(spec)
    play.observation["available"][0, 0, 1:] = 0
    report = check_plan(of, spec, trained(spec), play)
    assert [(step.number, step.kind, step.exact, step.tolerance) for step in report.steps] == [
        (1, "widen", True, 1e-4), (2, "grow_lstm", False, 0.0), (3, "game", True, 0.0), (4, "slots", True, 1e-4)]
    counts = [spec.parameters, *(stage.after.parameters for stage in of.stages(spec))]
    assert [step.parameters_before for step in report.steps] == counts[:-1]
    assert [step.parameters_after for step in report.steps] == counts[1:]
    assert report.parameters_after == counts[-1] and report.hero_steps == 5 * 3 * 5 - 4
    assert report.steps[2].difference.max_logit_change == 0 and report.problems == ()


def test_removing_a_used_input_is_measured() -> None:
    spec = agent(1)
    of = plan(spec, {"kind": "remove_inputs", "fields": ["units.position", "units.vector", "items"]},
              bounds={"max_logit_change": 1e-3})
    report = check_plan(of, spec, trained(spec), recorded(spec))
    (step,) = report.steps
    assert step.holds and step.difference.max_logit_change < 1e-4
    assert report.difference.max_logit_change > 1e-2
    assert not report.ok and report.problems[0].startswith("max_logit_change")


def test_check_changes_no_argument_or_random_state() -> None:
    spec = agent(1)
    version, play = trained(spec), recorded(spec)
    copies = {name: array.copy() for name, array in version.items()}
    seen = {name: array.copy() for name, array in play.observation.items()}
    of = plan(spec, {"kind": "remove_inputs", "fields": ["units.position"], "constants": {"units.position": 1.0}},
              {"kind": "slots", "slots": {"wards": 0}}, {"kind": "grow_lstm", "to": 30})
    torch.manual_seed(5)
    np.random.seed(5)
    before = torch.get_rng_state()
    one = check_plan(of, spec, version, play)
    assert torch.equal(before, torch.get_rng_state())
    for name, array in copies.items():
        np.testing.assert_array_equal(array, version[name])
    for name, array in seen.items():
        np.testing.assert_array_equal(array, play.observation[name])
    assert check_plan(of, spec, version, play) == one, "measured twice, it is the same"


def test_buffer_batch_becomes_recorded_samples() -> None:
    spec = agent(1)
    play = recorded(spec)
    batch = {**play.observation, "actions": play.actions, "resets": play.resets, "returns": np.zeros((5, 3, 1)),
             **{f"state/{n}": a for n, a in play.state.items()}}
    again = RecordedSamples.from_batch(batch)
    assert again.observation.keys() == play.observation.keys() and again.state.keys() == play.state.keys()


@pytest.mark.parametrize("heroes", [1, 5])
def test_bfloat16_version_keeps_its_function(heroes: int) -> None:
    spec = agent(heroes, {"omit": ("units.position",)}, {"precision": "bfloat16"})
    version, play = trained(spec), recorded(spec)
    of = plan(spec, {"kind": "widen", "layer": "unit_hidden", "to": 20}, {"kind": "grow_lstm", "to": 32, "exact": True},
              {"kind": "split_head", "head": "unit.ally"}, {"kind": "widen", "layer": "key", "to": 8})
    after = of.target(spec)
    assert after.model.precision == "bfloat16"
    assert check_plan(of, spec, version, play).ok, "the check computes in float32"
    state = {"h": 32, "c": 32, "target_embedding": 8}
    grown = {n: np.pad(a, ((0, 0), (0, 0), (0, state[n] - a.shape[-1]))) for n, a in play.state.items()}

    def scores(policy, memory):
        return policy.scores({n: torch.from_numpy(a) for n, a in play.observation.items()},
                             torch.from_numpy(play.actions), {n: torch.from_numpy(a) for n, a in memory.items()},
                             torch.from_numpy(play.resets))

    one, two = scores(load(spec, version), play.state), scores(load(after, migrate_policy(of, spec, version)), grown)
    difference = compare_policies(one, two, spec, after)
    assert difference.max_logit_change < 2**-5 * difference.largest, "some roundings of 8 bits"
    assert difference.mean_kl < 1e-3


def test_mismatched_arguments_are_rejected() -> None:
    spec = agent(1)
    of = plan(spec, {"kind": "widen", "layer": "set", "to": 9})
    version = trained(spec)
    with pytest.raises(ValueError, match="observation arrays|of layout"):
        check_plan(of, spec, version, recorded(agent(1, {"wards": 4})))
    with pytest.raises(ValueError, match=r"value\.weight has shape \[1, 2\], expected \[1, 24\]"):
        check_plan(of, spec, {**version, "value.weight": np.zeros((1, 2), np.float32)}, recorded(spec))

"""Measurement of each kind of surgery step: ``python -m five.agent.surgery.step_table`` prints the table of the docs.

The model has five heroes and the paper's slots, with synthetic trained weights and random samples. Logits are all those
that the samples could choose from.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from dota.config import GameConfig, ObservationConfig
from five.agent.config import ModelConfig
from five.agent.surgery.check import CheckReport, check_plan
from five.agent.surgery.fixtures import make_random_samples, make_trained_version
from five.agent.surgery.plan import Plan
from five.agent.surgery.spec import AgentSpec

SIZES = ModelConfig(
    lstm=256, lstm_input=256, key=32, unit_hidden=64, unit=64, set_hidden=32, set=32, unit_embedding=16,
    animation_embedding=4, modifier_embedding=16, ability_embedding=16, item_embedding=16, pickup_embedding=4,
    build_embedding=4, area_embedding=4, conv_filters=8, auxiliary_hidden=32)
LEFT_OUT = ("global.roshan_spawn_min", "global.roshan_spawn_max", "heroes.in_line", "allied_heroes.next_item", "items",
            "nearby_map.area", "nearby_map.area_effect")


class Case(NamedTuple):
    """A table row: the observation settings before, and the steps."""

    name: str
    steps: tuple[Mapping[str, Any], ...]
    observation: Mapping[str, Any]


def cases() -> Iterator[Case]:
    """Yield the rows, at least one for each kind of step."""
    wider = {"unit_hidden": 128, "unit": 128, "set_hidden": 64, "set": 64, "lstm_input": 512, "conv_filters": 16,
             "auxiliary_hidden": 64, "key": 64}
    for layer, to in wider.items():
        yield Case(f"`widen` {layer}", ({"kind": "widen", "layer": layer, "to": to},), {})
    for scale in (0.0005, 0.002, 0.01):
        yield Case(f"`grow_lstm` to twice, scale {scale:g}", ({"kind": "grow_lstm", "to": 512, "scale": scale},), {})
    yield Case("`grow_lstm` to twice, `exact`", ({"kind": "grow_lstm", "to": 512, "exact": True},), {})
    yield Case("`embedding` of items", ({"kind": "embedding", "space": "item", "to": 32},), {})
    yield Case("`embedding` of items, to three quarters", ({"kind": "embedding", "space": "item", "to": 12},), {})
    yield Case("`add_observations` numbers and ids", (
        {"kind": "add_observations", "fields": [field for field in LEFT_OUT if "." in field]},), {"omit": LEFT_OUT})
    yield Case("`add_observations` a block", ({"kind": "add_observations", "fields": ["items"]},), {"omit": LEFT_OUT})
    yield Case("`slots` of creeps and pickups", (
        {"kind": "slots", "slots": {"allied_creeps": 30, "pickups": 6}},), {"allied_creeps": 20, "pickups": 4})
    yield Case("`slots` of a new group and a new set", (
        {"kind": "slots", "slots": {"neutral_creeps": 15, "unit_modifiers": 2}},),
        {"neutral_creeps": 0, "unit_modifiers": 0})
    yield Case("`remove_inputs` at their means", (
        {"kind": "remove_inputs", "fields": ["heroes.gold", "units.since_attack", "units.animation"]},), {})
    yield Case("`remove_inputs` at constants", (
        {"kind": "remove_inputs", "fields": ["heroes.gold", "minimap"],
         "constants": {"heroes.gold": 0.5, "minimap.visible": 1.0}},), {})
    yield Case("`add_ids`", ({"kind": "add_ids", "rows": {"item": 512, "unit": 512}},), {})
    yield Case("`add_actions`", ({"kind": "add_actions", "actions": ["glyph"]},), {})
    yield Case("`split_head` of targets", ({"kind": "split_head", "head": "unit.ally"},), {})
    yield Case("`split_head` of offsets", ({"kind": "split_head", "head": "offset.move"},), {})
    yield Case("`game`", ({"kind": "game", "values": {"randomisation.stats": 0.1}},), {})


def spec_and_plan(case: Case) -> tuple[AgentSpec, Plan]:
    """Return the agent and the plan of one row."""
    game = GameConfig(observation=ObservationConfig.model_validate(dict(case.observation)), scripted_actions=["glyph"])
    spec = AgentSpec(game, SIZES)
    plan = Plan.from_values({"name": "table", "parent": spec.schema, "steps": list(case.steps),
                             "bounds": {"mean_kl": 1e6, "mean_value_change": 1e6}})
    return spec, plan


def measure(case: Case, steps: int = 8, teams: int = 4) -> CheckReport:
    """Return the check of one row."""
    spec, plan = spec_and_plan(case)
    return check_plan(plan, spec, make_trained_version(spec), make_random_samples(spec, steps, teams))


def markdown() -> Iterator[str]:
    """Yield the lines of the table, with the differences under each step's promise."""
    yield "| step | promise | max \\|Δlogit\\| | max \\|Δvalue\\| | mean KL | parameters before | after |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for case in cases():
        report = measure(case)
        (step,) = report.steps
        found = step.difference
        promise = ("exact" if step.exact else "approximate") + (f", while {step.while_}" if step.while_ else "")
        assert step.holds, f"{case.name}: {report.problems}"
        yield (f"| {case.name} | {promise} | {_number(found.max_logit_change)} | {_number(found.max_value_change)} | "
               f"{_number(found.mean_kl)} | {report.parameters_before:,} | {report.parameters_after:,} |")


def _number(value: float) -> str:
    return "0" if value == 0 else f"{value:.1e}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    argparse.ArgumentParser(prog="python -m five.agent.surgery.step_table", description=__doc__).parse_args(arguments)
    torch.set_num_threads(1)  # sums in one order
    for line in markdown():
        print(line, flush=True)


if __name__ == "__main__":
    main()

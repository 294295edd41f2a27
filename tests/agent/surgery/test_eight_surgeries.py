"""Eight surgeries of the kinds that OpenAI Five went through (Berner et al. 2019, table 1), one after another.

The small model that comes out is larger by far, sees and does more, and where it must it has the function of the first:
on games that show nothing of what was added, its logits and values are those of the model that they all began with.
"""

from functools import cache
from typing import Any

import numpy as np
import torch

from five.agent.surgery import (
    AgentSpec,
    MigrationChain,
    Plan,
    changes_to_markdown,
    convert_observations,
    convert_state,
    migrate_policy,
)
from five.agent.surgery import list_changes as table
from five.agent.surgery.check import RecordedSamples, check_plan, compare_policies
from five.agent.surgery.removed_inputs import replace_removed_inputs
from five.agent.surgery.steps.remove import RemoveInputs
from tests.agent.surgery.agents import agent, load, recorded, trained

LEFT_OUT = ("global.roshan_spawn_min", "global.roshan_spawn_max", "global.stock", "allied_heroes.empty_slots",
            "allied_heroes.next_item", "heroes.in_line", "hero_modifiers.remaining", "nearby_map.area",
            "nearby_map.area_effect", "items.treads", "items.enable_time", "items.disabled", "heroes.teleporting")

# Date and change as in the paper's table.
SURGERIES: list[tuple[str, list[dict[str, Any]]]] = [
    ("2018-08-17 Dota 7.19", [{"kind": "game", "values": {"patch": "7.21d"}}]),
    ("2018-08-18 single courier; cheating observations removed", [
        {"kind": "slots", "slots": {"couriers": 1}},
        {"kind": "remove_inputs", "fields": ["global.enemy_courier_unseen"]}]),
    ("2018-08-26 LSTM doubled, further layers enlarged", [
        {"kind": "grow_lstm", "to": 48, "exact": True}, {"kind": "widen", "layer": "lstm_input", "to": 32},
        {"kind": "widen", "layer": "unit_hidden", "to": 24}, {"kind": "widen", "layer": "unit", "to": 16},
        {"kind": "widen", "layer": "key", "to": 12}, {"kind": "split_head", "head": "offset.move"}]),
    ("2018-10-03 Roshan spawn timing", [
        {"kind": "add_observations", "fields": ["global.roshan_spawn_min", "global.roshan_spawn_max"],
         "prior": {"global.roshan_spawn_min": {"mean": 4, "std": 3}}}]),
    ("2018-10-19 stock counts; obsolete observations removed", [
        {"kind": "add_observations", "fields": ["global.stock"]},
        {"kind": "remove_inputs", "fields": ["units.shrine_cooldown", "minimap.cell"]}]),
    ("2018-12-10 modifiers on non-heroes", [
        {"kind": "slots", "slots": {"unit_modifiers": 2}}, {"kind": "embedding", "space": "modifier", "to": 8}]),
    ("2018-12-14 line of sight, next item, buyback action", [
        {"kind": "add_observations", "fields": ["heroes.in_line", "allied_heroes.next_item"]},
        {"kind": "add_actions", "actions": ["buyback"], "anneal_versions": 100}]),
    ("2019-01-23 area effects, modifier duration, Power Treads; more ids", [
        {"kind": "add_observations", "fields": ["nearby_map.area", "nearby_map.area_effect", "items.treads",
                                                "hero_modifiers.remaining"]},
        {"kind": "add_ids", "rows": {"item": 300, "modifier": 1100}}]),
]
REMOVED = ("global.enemy_courier_unseen", "units.shrine_cooldown", "minimap.cell")


def first(heroes: int) -> AgentSpec:
    return agent(heroes, {"omit": LEFT_OUT, "couriers": 0, "unit_modifiers": 0}, patch="7.19", buyback=False)


@cache
def apply_all(heroes: int) -> tuple[MigrationChain, AgentSpec, dict[str, np.ndarray]]:
    """Apply and check the surgeries of the first agent. Return the chain, the last agent and its version."""
    spec, chain = first(heroes), MigrationChain([])
    version = trained(spec)
    for i, (what, steps) in enumerate(SURGERIES, 1):
        of = Plan.from_values({"name": f"surgery-{i}", "parent": spec.schema, "steps": steps,
                               "bounds": {"mean_kl": 5.0, "mean_value_change": 5.0}})
        report = check_plan(of, spec, version, recorded(spec, seed=i))
        assert report.ok, f"{what}: {report.problems}"
        chain = chain.append(of, spec)
        version = migrate_policy(of, spec, version)
        spec = of.target(spec)
    return chain, spec, version


def at_constants(spec: AgentSpec, version: dict[str, np.ndarray]) -> RecordedSamples:
    """Return samples in which the inputs removed later have their means."""
    play = recorded(spec, seed=42)
    shown = replace_removed_inputs(RemoveInputs(fields=REMOVED), spec, version, play.observation)
    return RecordedSamples(shown, play.actions, play.state, play.resets)


def scores(spec: AgentSpec, version: dict[str, np.ndarray], play: RecordedSamples) -> dict[str, torch.Tensor]:
    """Return a version's outputs on recorded samples."""
    def on(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}

    return load(spec, version).scores(on(play.observation), torch.from_numpy(play.actions), on(play.state),
                                      torch.from_numpy(play.resets))


def test_last_model_keeps_the_function_of_the_first() -> None:
    for heroes in (1, 5):
        start = first(heroes)
        version = trained(start)
        chain, end, newest = apply_all(heroes)
        assert end.parameters > 2 * start.parameters and len(chain.links) == 8
        play = at_constants(start, version)
        arrays = {**play.observation, "actions": play.actions}
        state = play.state
        for link in chain.links:
            arrays = convert_observations(link.plan, link.old, arrays, "random")
            state = convert_state(link.old, link.new, state)
        actions = arrays.pop("actions")

        one = scores(start, version, play)
        two = scores(end, newest, RecordedSamples(arrays, actions, state, play.resets))
        difference = compare_policies(one, two, start, end)
        assert difference.largest > 1
        assert difference.max_logit_change < 1e-4 and difference.max_value_change < 1e-4
        assert difference.mean_kl < 1e-9


def test_any_old_opponent_migrates_to_the_newest_schema() -> None:
    start = first(1)
    version = trained(start)
    chain, end, newest = apply_all(1)
    for name, array in chain.migrate_to_newest(version, start.schema).items():
        np.testing.assert_array_equal(array, newest[name], err_msg=name)
    assert chain.newest == end.schema


def test_surgery_log_matches_the_papers_table() -> None:
    spec, rows = first(1), []
    for i, (_, steps) in enumerate(SURGERIES, 1):
        of = Plan.from_values({"name": f"surgery-{i}", "parent": spec.schema, "steps": steps})
        rows += table(of, spec)
        spec = of.target(spec)
    changes = [row.parameters_after - row.parameters_before for row in rows]
    assert min(changes) < 0 < max(changes) and 0 in changes
    assert "grow lstm 24 to 48" in changes_to_markdown(rows)

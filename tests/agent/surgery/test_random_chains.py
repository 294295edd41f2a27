"""Random chains of steps on random small models keep every promise."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dota.omission import NEEDED, WHOLE_BLOCKS
from dota.spaces import Layout
from five.agent.model.input_structure import id_rows
from five.agent.surgery import AgentSpec, AppliedMigration, MigrationChain, Plan, migrate_policy
from five.agent.surgery.check import check_plan
from five.agent.surgery.plan import read_step
from five.agent.surgery.steps.embedding import Space
from five.agent.surgery.steps.slots import Count
from five.agent.surgery.steps.widen import Layer
from tests.agent.surgery.agents import agent, recorded, trained

FULL = Layout(agent(2).game)
FIELDS = tuple(f"{b.name}.{f.name}" for b in FULL.blocks.values() for f in b.fields
               if f"{b.name}.{f.name}" not in NEEDED)
HEADS = ("unit.attack", "unit.enemy", "unit.ally", "offset.move", "offset.follow")


@st.composite
def agents(draw: st.DrawFn) -> AgentSpec:
    """Draw a small agent of 1 to 3 heroes with some inputs left out."""
    size = st.integers(4, 12)
    omit = draw(st.lists(st.sampled_from((*FIELDS, *WHOLE_BLOCKS)), max_size=6, unique=True))
    unit = draw(size)
    model = {"unit": unit, "key": draw(st.integers(4, unit)), "unit_hidden": draw(size), "set": draw(size),
             "set_hidden": draw(size), "lstm": draw(st.integers(6, 20)), "lstm_input": draw(size),
             "conv_filters": draw(st.integers(1, 4)), "cross_hero_share": draw(st.sampled_from((0.0, 0.25, 0.4, 1.0)))}
    observation = {"omit": [f for f in omit if f in WHOLE_BLOCKS or f.split(".")[0] not in omit],
                   "neutral_creeps": draw(st.integers(0, 2)), "pickups": draw(st.integers(0, 2)),
                   "unit_modifiers": draw(st.integers(0, 1)), "minimap": draw(st.sampled_from((2, 3, 5, 6)))}
    return agent(draw(st.integers(1, 3)), observation, model, scripted_actions=["glyph", "shrine"])


def step_for(draw: st.DrawFn, spec: AgentSpec) -> dict[str, Any]:
    """Draw a step that may not fit."""
    more = st.integers(1, 4)
    model, o = spec.model, spec.game.observation
    match draw(st.sampled_from(("widen", "widen", "grow_lstm", "embedding", "add_observations", "remove_inputs",
                                "slots", "add_ids", "split_head", "add_actions", "game"))):
        case "widen":
            layer = draw(st.sampled_from(get_args(Layer)))
            return {"kind": "widen", "layer": layer, "to": getattr(model, layer) + draw(more)}
        case "grow_lstm":
            return {"kind": "grow_lstm", "to": model.lstm + draw(more), "exact": True}
        case "embedding":
            space = draw(st.sampled_from(get_args(Space)))
            return {"kind": "embedding", "space": space, "to": getattr(model, f"{space}_embedding") + draw(more)}
        case "add_observations":
            return {"kind": "add_observations", "fields": [draw(st.sampled_from(o.omit or ("global.time",)))]}
        case "remove_inputs":
            field = draw(st.sampled_from((*FIELDS, *WHOLE_BLOCKS)))
            block, _, name = field.partition(".")
            number = name and FULL.blocks[block].field(name).array in ("shared", "private")
            constants = {field: draw(st.floats(-2, 2))} if number and draw(st.booleans()) else {}
            return {"kind": "remove_inputs", "fields": [field], "constants": constants}
        case "slots":
            count = draw(st.sampled_from(get_args(Count)))
            return {"kind": "slots", "slots": {count: max(0, getattr(o, count) + draw(st.sampled_from((-1, 1, 2))))}}
        case "add_ids":
            space = draw(st.sampled_from(("item", "unit", "action")))
            return {"kind": "add_ids", "rows": {space: id_rows(model, space) + draw(more)}}
        case "split_head":
            return {"kind": "split_head", "head": draw(st.sampled_from(HEADS))}
        case "add_actions":
            return {"kind": "add_actions", "actions": [draw(st.sampled_from(("glyph", "shrine")))]}
        case _:
            return {"kind": "game", "values": {"neutrals": not spec.game.neutrals,
                                               "observation.mirror_dire": not o.mirror_dire}}


@st.composite
def chains(draw: st.DrawFn) -> tuple[AgentSpec, list[dict[str, Any]]]:
    """Draw an agent and up to six steps that fit."""
    first = spec = draw(agents())
    steps = []
    for _ in range(draw(st.integers(2, 7))):
        values = step_for(draw, spec)
        try:
            after = read_step(values).apply(spec)
        except ValueError:
            continue
        if after.layout.units < 3:
            continue
        steps.append(values)
        spec = after
    return first, steps or [{"kind": "widen", "layer": "set", "to": spec.model.set + 1}]


@pytest.mark.runs
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(chain=chains(), seed=st.integers(0, 2**16))
def test_chain_keeps_the_promise_of_each_step(chain: tuple[AgentSpec, list[dict[str, Any]]], seed: int) -> None:
    spec, steps = chain
    of = Plan.from_values({"name": "random", "parent": spec.schema, "steps": steps,
                           "bounds": {"mean_kl": 1e6, "mean_value_change": 1e6}})
    version = trained(spec, seed)
    report = check_plan(of, spec, version, recorded(spec, steps=3, teams=2, seed=seed))
    assert report.ok, report.problems

    # One plan per step gives the same configuration and shapes.
    links, now, made = [], spec, version
    for i, values in enumerate(steps):
        one = Plan.from_values({"name": f"step-{i}", "parent": now.schema, "steps": [values]})
        links.append(AppliedMigration(one, now))
        made = migrate_policy(one, now, made)
        now = one.target(now)
    assert now.schema == of.target(spec).schema and now.parameters == report.parameters_after
    chain_of = MigrationChain(links)
    for name, array in chain_of.migrate_to_newest(version, spec.schema).items():
        assert array.shape == now.tensor_shapes()[name] and np.isfinite(array).all()

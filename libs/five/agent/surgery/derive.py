"""Derivation of a plan from two agent specifications."""

from collections.abc import Collection, Iterable
from typing import Any, get_args

from dota.omission import left_out
from five.agent.config import IdSpace, ModelConfig
from five.agent.model.input_structure import id_rows
from five.agent.surgery.plan import Plan, read_step
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps import AnyStep
from five.agent.surgery.steps.actions import Scripted
from five.agent.surgery.steps.embedding import Space
from five.agent.surgery.steps.slots import Count
from five.agent.surgery.steps.widen import Layer

LSTM_SCALE_SHARE = 0.05  # scale of new LSTM weights as a share of the LSTM's own initial scale
MAPS = {"minimap": "minimap", "nearby_map": "nearby_map", "passability": "allied_heroes.passability"}


def derive_plan(old: AgentSpec, new: AgentSpec, name: str) -> Plan:
    """Return the plan from ``old`` to ``new``, with its steps in a valid order. ``precision`` is ignored.

    Raise ValueError naming every key that no step can change, or as `Plan.stages` does.
    """
    builder = _PlanBuilder(old, new)
    builder.model()
    builder.observation()
    builder.game()
    if wrong := _remaining_differences(builder.spec, new):
        raise ValueError(f"no surgery step can change {'; '.join(wrong)}")
    if not builder.steps:
        raise ValueError("the specifications do not differ in anything that surgery changes")
    plan = Plan(name=name, parent=old.schema, steps=tuple(builder.steps))
    plan.target(old)
    return plan


class _PlanBuilder:
    """Steps so far, with the specification ``spec`` after them."""

    def __init__(self, old: AgentSpec, new: AgentSpec) -> None:
        self.spec, self.new = old, new
        self.steps: list[AnyStep] = []

    def add(self, **values: Any) -> None:
        step = read_step(values)
        self.steps.append(step)
        self.spec = step.apply(self.spec)

    def model(self) -> None:
        old, new = self.spec.model, self.new.model
        for layer in get_args(Layer):  # a unit's width first, because its key is a slice of it
            if getattr(new, layer) != getattr(old, layer):
                self.add(kind="widen", layer=layer, to=getattr(new, layer))
        for space in get_args(Space):
            if getattr(new, f"{space}_embedding") != getattr(old, f"{space}_embedding"):
                self.add(kind="embedding", space=space, to=getattr(new, f"{space}_embedding"))
        rows = {space: id_rows(new, space) for space in new.id_rows if id_rows(new, space) != id_rows(old, space)}
        if rows:
            self.add(kind="add_ids", rows=rows)
        for head in new.split_heads:
            if head not in old.split_heads:
                self.add(kind="split_head", head=head)
        if new.lstm != old.lstm:
            self.add(kind="grow_lstm", to=new.lstm, scale=float(f"{LSTM_SCALE_SHARE * old.lstm**-0.5:.2g}"))

    def observation(self) -> None:
        old, new = self.spec.game.observation, self.new.game.observation
        before, after = left_out(old.omit, old.generation), left_out(new.omit, new.generation)
        sides = {key: getattr(new, key) for key in MAPS if getattr(new, key) != getattr(old, key)}
        # A map of another size has other cells: it is removed and added again, untrained.
        resized = [MAPS[key] for key in sides if MAPS[key] not in (*before, *after)]
        removed, added = _uncovered(after, (*before, *resized)), _uncovered(before, (*after, *resized))
        if removed or resized:
            self.add(kind="remove_inputs", fields=[*removed, *resized])
        if sides:
            self.add(kind="game", values={f"observation.{key}": side for key, side in sides.items()})
        slots = {key: getattr(new, key) for key in get_args(Count) if getattr(new, key) != getattr(old, key)}
        if slots:
            self.add(kind="slots", slots=slots)
        if added or resized:
            self.add(kind="add_observations", fields=[*added, *resized])
        now = self.spec.game.observation
        left = left_out(now.omit, now.generation)
        if unwanted := [field for field in after if field not in left]:  # of blocks, which are added whole
            self.add(kind="remove_inputs", fields=unwanted)

    def game(self) -> None:
        old, new = self.spec.game, self.new.game
        offered = [a for a in old.scripted_actions if a not in new.scripted_actions]
        if new.buyback and not old.buyback and "buyback" not in new.scripted_actions:
            offered = [*(a for a in offered if a != "buyback"), "buyback"]
        if offered:
            self.add(kind="add_actions", actions=[a for a in get_args(Scripted) if a in offered])
        values = _changed_keys(self.spec.game.model_dump(mode="json"), new.model_dump(mode="json"))
        values = {key: value for key, value in values.items()
                  if not key.startswith("observation.") or key == "observation.mirror_dire"}
        if values:
            self.add(kind="game", values=values)


def _uncovered(fields: Iterable[str], others: Collection[str]) -> list[str]:
    """Return the fields that are not in ``others``, neither themselves nor their block."""
    return [field for field in fields if field not in others and field.partition(".")[0] not in others]


def _changed_keys(old: dict[str, Any], new: dict[str, Any], at: str = "") -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for key, value in new.items():
        if isinstance(value, dict):
            changed |= _changed_keys(old[key], value, f"{at}{key}.")
        elif value != old[key]:
            changed[f"{at}{key}"] = value
    return changed


def _remaining_differences(reached: AgentSpec, wanted: AgentSpec) -> list[str]:
    """Return the keys that still differ, with their wanted values."""
    changed = []
    pairs = [("model", _comparable_model(reached.model), _comparable_model(wanted.model)),
             ("game", _comparable_game(reached), _comparable_game(wanted))]
    for section, one, two in pairs:
        changed += [f"{section}.{key} to {value}" for key, value in _changed_keys(one, two).items()]
    return changed


def _comparable_model(model: ModelConfig) -> dict[str, Any]:
    """Return the model's values with the same keys for every model: ``id_rows`` by its effective numbers of rows."""
    values = model.model_dump(mode="json", exclude={"precision", "id_rows"})
    return values | {f"rows of {space}": id_rows(model, space) for space in get_args(IdSpace)}


def _comparable_game(spec: AgentSpec) -> dict[str, Any]:
    values = spec.game.model_dump(mode="json")
    values["observation"] |= {"omit": sorted(spec.layout.omitted), "generation": 0}
    return values

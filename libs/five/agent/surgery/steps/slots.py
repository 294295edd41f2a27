"""Step that changes the number of slots for units, modifiers or pickups."""

from typing import Annotated, Literal

from pydantic import Field

from five.agent.surgery.remap import Array, TensorRemap
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import Promise, SurgeryStep, format_changes, replace_observation
from five.agent.surgery.steps.prior import InputPrior, write_priors

Count = Literal["allied_creeps", "neutral_creeps", "buildings", "wards", "couriers", "hero_modifiers",
                "unit_modifiers", "pickups"]


class ResizeSlots(SurgeryStep):
    """Set the observation's numbers of slots (``allied_creeps`` counts for the enemy's too).

    Exact while the added or removed slots are empty, because the units of a group share weights. A group or set that
    had no slots gets new layers, on which all weights start at zero.
    """

    kind: Literal["slots"] = "slots"
    slots: dict[Count, Annotated[int, Field(ge=0, le=64)]] = Field(min_length=1)
    prior: dict[str, InputPrior] = Field({}, description="Statistics of the fields of new groups and sets.")

    def apply(self, spec: AgentSpec) -> AgentSpec:
        for name, count in self.slots.items():
            if getattr(spec.game.observation, name) == count:
                raise ValueError(f"slots: {name} is {count} already")
        return replace_observation(spec, **self.slots)

    def promise(self, spec: AgentSpec) -> Promise:
        return Promise(exact=True, new_inputs="empty", while_="the changed slots are empty")

    def describe(self, spec: AgentSpec) -> str:
        return "slots: " + format_changes({n: (getattr(spec.game.observation, n), c) for n, c in self.slots.items()})

    def lossy(self, spec: AgentSpec) -> str:
        fewer = [n for n, count in self.slots.items() if count < getattr(spec.game.observation, n)]
        return f"units in the {', '.join(fewer)} slots that are removed are no longer observed" if fewer else ""

    def finish_tensor(self, name: str, remap: TensorRemap, array: Array) -> None:
        write_priors(self.prior, name, remap, array)

"""What every kind of step has: the specification that it leads to, the rule for new weights, and its promise."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from dota.config import GameConfig
from five.agent.config import ModelConfig
from five.agent.surgery.remap import Array, EntryInitializers, TensorRemap
from five.agent.surgery.spec import AgentSpec

# Matrix products over more columns add up in another order: sums of float32 differ in their last bits, and a deep
# network carries that on. Measured in docs/surgery-plans.md; a mistake of one weight shows in the first decimals.
ROUNDING = 1e-4


class Promise(NamedTuple):
    """What a step holds, compared with the policy before it.

    ``exact``: logits and values are equal, up to ``tolerance`` times the larger of 1 and the largest of them (0: to the
    bit). Not exact: the change is measured and held to the plan's bounds. ``new_inputs``: "any" when that holds
    whatever the inputs show that the step adds, "empty" while they are empty. ``while_``: the condition in words.
    """

    exact: bool
    tolerance: float = ROUNDING
    new_inputs: Literal["any", "empty"] = "any"
    while_: str = ""


class SurgeryStep(BaseModel):
    """One step of a plan. Subclasses have a ``kind`` and the fields of their YAML."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def apply(self, spec: AgentSpec) -> AgentSpec:
        """The specification after the step. Raises ValueError saying what does not fit."""
        raise NotImplementedError

    def promise(self, spec: AgentSpec) -> Promise:
        """What it holds when it is applied to ``spec``."""
        raise NotImplementedError

    def describe(self, spec: AgentSpec) -> str:
        """What changes, in a few words, with the values before and after."""
        raise NotImplementedError

    def lossy(self, spec: AgentSpec) -> str:
        """What is lost for good; '' when nothing is."""
        return ""

    def prepare(self, spec: AgentSpec, tensors: dict[str, Array]) -> dict[str, Array]:
        """The old version's tensors before they are moved; ``tensors`` may be changed as a mapping, its arrays not."""
        return tensors

    def fill(self, name: str, move: TensorRemap) -> EntryInitializers:
        """What the new entries of a tensor are drawn from."""
        return EntryInitializers(move.labelled.initial)

    def finish(self, name: str, move: TensorRemap, array: Array) -> None:
        """Last word on a tensor with new entries; changes it in place."""

    def forget(self, spec: AgentSpec, moments: dict[str, Array]) -> dict[str, Array]:
        """Moments before they are moved, by tensor: those of weights that `prepare` makes others of at zero. Arrays may
        not be changed."""
        return moments


def replace_game(spec: AgentSpec, **changes: Any) -> AgentSpec:
    """``spec`` with other keys of its game. Raises ValueError when the values do not fit together."""
    return AgentSpec(GameConfig.model_validate(spec.game.model_dump() | changes), spec.model)


def replace_observation(spec: AgentSpec, **changes: Any) -> AgentSpec:
    """``spec`` with other keys of its observation."""
    return replace_game(spec, observation=spec.game.observation.model_dump() | changes)


def replace_model(spec: AgentSpec, **changes: Any) -> AgentSpec:
    """``spec`` with other keys of its model."""
    return AgentSpec(spec.game, ModelConfig.model_validate(spec.model.model_dump() | changes))


def format_changes(names: Mapping[str, tuple[Any, Any]]) -> str:
    """ "a 1 to 2, b 3 to 4". """
    return ", ".join(f"{name} {old} to {new}" for name, (old, new) in names.items())

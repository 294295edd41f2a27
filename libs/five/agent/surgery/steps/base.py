"""Interface of a surgery step."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from dota.config import GameConfig
from five.agent.config import ModelConfig
from five.agent.surgery.remap import Array, EntryInitializers, TensorRemap
from five.agent.surgery.spec import AgentSpec

# Matrix products over more columns add up in another order, so float32 sums differ in their last bits. Measured in
# docs/surgery-plans.md; a single wrong weight changes the first decimals.
ROUNDING = 1e-4


class Promise(NamedTuple):
    """Guarantee of a step: how far the policy after it equals the policy before.

    ``exact``: logits and values are equal up to ``tolerance`` times max(1, largest of them); 0 means bit-identical.
    Otherwise the change is measured and checked against the plan's bounds. ``new_inputs``: "any" if this holds for all
    values of the added inputs, "empty" if only while they are empty. ``while_``: the condition in words.
    """

    exact: bool
    tolerance: float = ROUNDING
    new_inputs: Literal["any", "empty"] = "any"
    while_: str = ""


class SurgeryStep(BaseModel):
    """Base class of the steps of a plan. Subclasses have a ``kind`` and the fields of their YAML."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def apply(self, spec: AgentSpec) -> AgentSpec:
        """Return the specification after the step. Raise ValueError if the step does not fit."""
        raise NotImplementedError

    def promise(self, spec: AgentSpec) -> Promise:
        """Return what the step preserves when it is applied to ``spec``."""
        raise NotImplementedError

    def describe(self, spec: AgentSpec) -> str:
        """Return a short description of the change, with the values before and after."""
        raise NotImplementedError

    def lossy(self, spec: AgentSpec) -> str:
        """Return what is lost permanently, or ''."""
        return ""

    def prepare_tensors(self, spec: AgentSpec, tensors: dict[str, Array]) -> dict[str, Array]:
        """Return the old version's tensors as they are before remapping. ``tensors`` may be modified, its arrays may
        not."""
        return tensors

    def initializers(self, name: str, remap: TensorRemap) -> EntryInitializers:
        """Return the initializers of a tensor's new entries."""
        return EntryInitializers(remap.labelled.initial)

    def finish_tensor(self, name: str, remap: TensorRemap, array: Array) -> None:
        """Adjust a tensor with new entries in place, after remapping."""

    def prepare_moments(self, spec: AgentSpec, moments: dict[str, Array]) -> dict[str, Array]:
        """Return moments by tensor as they are before remapping. Moments of weights that `prepare_tensors` replaces are
        zero.

        Arrays may not be modified.
        """
        return moments


def replace_game(spec: AgentSpec, **changes: Any) -> AgentSpec:
    """Return ``spec`` with other values of game keys. Raise ValueError if they are inconsistent."""
    return AgentSpec(GameConfig.model_validate(spec.game.model_dump() | changes), spec.model)


def replace_observation(spec: AgentSpec, **changes: Any) -> AgentSpec:
    """Return ``spec`` with other values of observation keys."""
    return replace_game(spec, observation=spec.game.observation.model_dump() | changes)


def replace_model(spec: AgentSpec, **changes: Any) -> AgentSpec:
    """Return ``spec`` with other values of model keys."""
    return AgentSpec(spec.game, ModelConfig.model_validate(spec.model.model_dump() | changes))


def format_changes(names: Mapping[str, tuple[Any, Any]]) -> str:
    """Return "a 1 to 2, b 3 to 4"."""
    return ", ".join(f"{name} {old} to {new}" for name, (old, new) in names.items())

"""Kinds of surgery steps. Each changes an agent's specification and promises what it preserves."""

from typing import Annotated

from pydantic import Field

from five.agent.surgery.steps.actions import AddActions
from five.agent.surgery.steps.base import Promise, SurgeryStep
from five.agent.surgery.steps.embedding import ResizeEmbedding
from five.agent.surgery.steps.game import ChangeGame
from five.agent.surgery.steps.grow_lstm import GrowLstm
from five.agent.surgery.steps.ids import AddIds
from five.agent.surgery.steps.observations import AddObservations
from five.agent.surgery.steps.remove import RemoveInputs
from five.agent.surgery.steps.slots import ResizeSlots
from five.agent.surgery.steps.split_head import SplitHead
from five.agent.surgery.steps.widen import WidenLayer

AnyStep = Annotated[
    WidenLayer | GrowLstm | ResizeEmbedding | AddObservations | RemoveInputs | ResizeSlots | AddIds | AddActions
    | SplitHead | ChangeGame,
    Field(discriminator="kind")]

STEPS: dict[str, type[SurgeryStep]] = {
    step.model_fields["kind"].default: step
    for step in (WidenLayer, GrowLstm, ResizeEmbedding, AddObservations, RemoveInputs, ResizeSlots, AddIds,
                 AddActions, SplitHead, ChangeGame)}

__all__ = ["STEPS", "AnyStep", "Promise", "SurgeryStep"]

"""The kinds of steps of a plan. Each changes an agent's specification and says what it holds."""

from typing import Annotated

from pydantic import Field

from five.agent.surgery.steps.actions import AddActions
from five.agent.surgery.steps.base import Promise, Step
from five.agent.surgery.steps.embedding import Embedding
from five.agent.surgery.steps.game import ChangeGame
from five.agent.surgery.steps.grow_lstm import GrowLstm
from five.agent.surgery.steps.ids import AddIds
from five.agent.surgery.steps.observations import AddObservations
from five.agent.surgery.steps.remove import RemoveInputs
from five.agent.surgery.steps.slots import Slots
from five.agent.surgery.steps.split_head import SplitHead
from five.agent.surgery.steps.widen import Widen

AnyStep = Annotated[
    Widen | GrowLstm | Embedding | AddObservations | RemoveInputs | Slots | AddIds | AddActions | SplitHead
    | ChangeGame,
    Field(discriminator="kind")]

STEPS: dict[str, type[Step]] = {
    step.model_fields["kind"].default: step
    for step in (Widen, GrowLstm, Embedding, AddObservations, RemoveInputs, Slots, AddIds, AddActions, SplitHead,
                 ChangeGame)}

__all__ = ["STEPS", "AnyStep", "Promise", "Step"]

"""Another width for an id space's embedding."""

from typing import Annotated, Literal

from pydantic import Field

from five.surgery.spec import AgentSpec
from five.surgery.steps.base import Promise, Step, before_and_after, model_with

Space = Literal["unit", "animation", "modifier", "ability", "item", "pickup", "build", "area"]


class Embedding(Step):
    """The embedding of ``space`` gets the width ``to``. New columns are random and read with zero weights: exact.

    An action's embedding is as wide as a key: widen ``key`` instead.
    """

    kind: Literal["embedding"] = "embedding"
    space: Space
    to: Annotated[int, Field(ge=1, le=4096)]

    def apply(self, spec: AgentSpec) -> AgentSpec:
        """See `Step`."""
        width = self._width(spec)
        if self.to <= width:
            raise ValueError(f"embedding of {self.space} to {self.to}: it is {width} wide, and only grows")
        return model_with(spec, **{f"{self.space}_embedding": self.to})

    def promise(self, spec: AgentSpec) -> Promise:
        """See `Step`."""
        return Promise(exact=True)

    def describe(self, spec: AgentSpec) -> str:
        """See `Step`."""
        return "embedding of " + before_and_after({self.space: (self._width(spec), self.to)})

    def _width(self, spec: AgentSpec) -> int:
        width: int = getattr(spec.model, f"{self.space}_embedding")
        return width

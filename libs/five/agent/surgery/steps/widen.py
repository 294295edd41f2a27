"""Widen a layer (Berner et al. 2019, equation 6): new outputs random, and nothing reads them yet."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import Promise, SurgeryStep, format_changes, replace_model

# Nothing is allocated before the parameters are counted, but labels are made to count them.
WIDEST = {"unit_hidden": 65536, "unit": 65536, "set_hidden": 65536, "set": 65536, "lstm_input": 65536,
          "conv_filters": 4096, "auxiliary_hidden": 65536, "key": 4096}

Layer = Literal["unit_hidden", "unit", "set_hidden", "set", "lstm_input", "conv_filters", "auxiliary_hidden", "key"]


class WidenLayer(SurgeryStep):
    """``layer`` of the model gets ``to`` outputs, the old ones first; of the LSTM's input the pooled ones stay pooled.

    Exact: what reads a new output does so with zero weights. A wider ``key`` gives each unit's embedding and each
    action's a longer vector to be scored by; the queries' new rows are zero instead.
    """

    kind: Literal["widen"] = "widen"
    layer: Layer
    to: Annotated[int, Field(ge=1)]

    @model_validator(mode="after")
    def _bounded(self) -> "WidenLayer":
        if self.to > WIDEST[self.layer]:
            raise ValueError(f"{self.layer} may have {WIDEST[self.layer]} outputs at most, not {self.to}")
        return self

    def apply(self, spec: AgentSpec) -> AgentSpec:
        """See `SurgeryStep`."""
        width = getattr(spec.model, self.layer)
        if self.to <= width:
            raise ValueError(f"widen {self.layer} to {self.to}: it has {width} outputs, and a layer only grows")
        return replace_model(spec, **{self.layer: self.to})

    def promise(self, spec: AgentSpec) -> Promise:
        """See `SurgeryStep`."""
        return Promise(exact=True)

    def describe(self, spec: AgentSpec) -> str:
        """See `SurgeryStep`."""
        return "widen " + format_changes({self.layer: (getattr(spec.model, self.layer), self.to)})

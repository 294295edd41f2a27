"""Step that widens a layer with random new outputs that nothing reads yet (Berner et al. 2019, equation 6)."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import Promise, SurgeryStep, format_changes, replace_model

# Labels are generated to count the parameters before any tensor is allocated, so widths are bounded.
MAX_WIDTHS = {"unit_hidden": 65536, "unit": 65536, "set_hidden": 65536, "set": 65536, "lstm_input": 65536,
              "conv_filters": 4096, "auxiliary_hidden": 65536, "key": 4096}

Layer = Literal["unit_hidden", "unit", "set_hidden", "set", "lstm_input", "conv_filters", "auxiliary_hidden", "key"]


class WidenLayer(SurgeryStep):
    """Give ``layer`` of the model ``to`` outputs, the old ones first. The LSTM input keeps its pooled outputs in the
    pooled share.

    Exact: weights on new outputs start at zero. A wider ``key`` lengthens the vectors that score units and actions;
    there the queries' new rows start at zero instead.
    """

    kind: Literal["widen"] = "widen"
    layer: Layer
    to: Annotated[int, Field(ge=1)]

    @model_validator(mode="after")
    def _check_width(self) -> "WidenLayer":
        if self.to > MAX_WIDTHS[self.layer]:
            raise ValueError(f"{self.layer} {self.to}: at most {MAX_WIDTHS[self.layer]} outputs are allowed")
        return self

    def apply(self, spec: AgentSpec) -> AgentSpec:
        width = getattr(spec.model, self.layer)
        if self.to <= width:
            raise ValueError(f"widen {self.layer} to {self.to}: it has {width} outputs and can only grow")
        return replace_model(spec, **{self.layer: self.to})

    def promise(self, spec: AgentSpec) -> Promise:
        return Promise(exact=True)

    def describe(self, spec: AgentSpec) -> str:
        return "widen " + format_changes({self.layer: (getattr(spec.model, self.layer), self.to)})

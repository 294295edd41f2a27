"""Step that grows the LSTM, with small random new weights (Berner et al. 2019, appendix B)."""

from typing import Annotated, Literal

from pydantic import Field

from five.agent.surgery.remap import ZERO, Array, EntryInitializers, TensorRemap
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import Promise, SurgeryStep, format_changes, replace_model
from five.agent.surgery.tensor_labels import Initializer


class GrowLstm(SurgeryStep):
    """Grow the LSTM to ``to`` units.

    By default all new weights are uniform on ± ``scale``, far below the present ones, as OpenAI Five did in August
    2018. That is approximate, because state flows from the new units back into the old ones. With ``exact`` the old
    units and the heads have zero weights on the new units, which start at the layer's own scale (``scale`` is ignored).
    The gradient then reaches the new columns first and the new rows after them. New forget gates start open, as in a
    new model.
    """

    kind: Literal["grow_lstm"] = "grow_lstm"
    to: Annotated[int, Field(ge=4, le=65536)]
    scale: Annotated[float, Field(gt=0, le=1)] = 0.002
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    exact: bool = False

    def apply(self, spec: AgentSpec) -> AgentSpec:
        if self.to <= spec.model.lstm:
            raise ValueError(f"grow the LSTM to {self.to}: it has {spec.model.lstm} units and can only grow")
        return replace_model(spec, lstm=self.to)

    def promise(self, spec: AgentSpec) -> Promise:
        return Promise(exact=self.exact)

    def describe(self, spec: AgentSpec) -> str:
        how = "zero weights on the new units" if self.exact else f"new weights within ±{self.scale:g}"
        return "grow " + format_changes({"lstm": (spec.model.lstm, self.to)}) + f", {how}"

    def initializers(self, name: str, remap: TensorRemap) -> EntryInitializers:
        if self.exact:
            return EntryInitializers(remap.labelled.initial, ZERO)
        small = Initializer("uniform", self.scale)
        return EntryInitializers(ZERO if name == "core.lstm.bias_hh_l0" else small, small)

    def finish_tensor(self, name: str, remap: TensorRemap, array: Array) -> None:
        if name == "core.lstm.bias_ih_l0":
            (axis,), (new,) = remap.labelled.axes, remap.new
            array[[i for i in new if axis.labels[i].startswith("f:")]] = 1.0

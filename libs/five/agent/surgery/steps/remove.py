"""Step that removes inputs by folding a constant into biases."""

from typing import Literal

import numpy as np
from pydantic import Field

from dota.config import FIELDS
from dota.omission import WHOLE_BLOCKS, left_out
from five.agent.surgery.remap import Array
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import Promise, SurgeryStep, replace_observation
from five.agent.surgery.steps.prior import Finite
from five.agent.surgery.tensor_labels import Axis, TensorLabels, field_of


class RemoveInputs(SurgeryStep):
    """Leave ``fields`` (``block.field``, or a whole block) out of the observation.

    The policy then behaves as if each number were at its running mean, an id were "none", and a set had no rows.
    ``constants`` gives other values for numeric fields, in the observation's units. The contribution of the constant is
    added to the bias of the layer that read the field, and the field's weights are removed. This is exact compared with
    the old policy on the constant. The change on real observations is measured and checked against the plan's bounds.
    """

    kind: Literal["remove_inputs"] = "remove_inputs"
    fields: tuple[str, ...] = Field(min_length=1, strict=False)
    constants: dict[str, Finite] = Field(default_factory=dict)

    def apply(self, spec: AgentSpec) -> AgentSpec:
        now = spec.game.observation
        omitted = left_out(now.omit, now.generation)
        if twice := [field for field in self.fields if field in omitted or field.partition(".")[0] in omitted]:
            raise ValueError(f"remove inputs: {twice[0]} is left out already")
        # Removing a block removes its fields.
        kept = tuple(f for f in omitted if f.split(".")[0] not in self.fields)
        after = replace_observation(spec, omit=(*kept, *self.fields), generation=FIELDS)
        fields = {name for name in after.layout.omitted if name not in spec.layout.omitted}
        numbers = {f"{b.name}.{f.name}" for b in spec.layout.blocks.values() for f in b.fields
                   if f.array in ("shared", "private")}
        if wrong := sorted(set(self.constants) - (fields & numbers)):
            raise ValueError(f"remove inputs: constant for {wrong[0]}, which is not a removed numeric field")
        return after

    def promise(self, spec: AgentSpec) -> Promise:
        return Promise(exact=True, while_="the removed inputs equal their constants")

    def describe(self, spec: AgentSpec) -> str:
        return f"no longer observe {', '.join(self.fields)}"

    def lossy(self, spec: AgentSpec) -> str:
        return f"everything the policy learned from {', '.join(self.fields)}"

    def prepare_tensors(self, spec: AgentSpec, tensors: dict[str, Array]) -> dict[str, Array]:
        after = self.apply(spec).labels
        constants = _Constants(self, spec, tensors)
        folded: dict[str, Array] = {}
        for name, labelled in spec.labels.items():
            if not labelled.bias or name not in after:
                continue
            ins = labelled.axes[1]
            left = set(after[name].axes[1].labels)
            gone = [i for i, label in enumerate(ins.labels) if label not in left]
            values = np.array([constants.of(ins, i) for i in gone])
            if values.any():
                share = np.tensordot(tensors[name].astype(np.float64).reshape(*labelled.shape[:2], -1).sum(2)[:, gone],
                                     values, 1)
                bias = folded.get(labelled.bias, tensors[labelled.bias].astype(np.float64))
                folded[labelled.bias] = bias + share
        return tensors | {name: bias.astype(tensors[name].dtype) for name, bias in folded.items()}


class _Constants:
    """Values of a layer's inputs while the fields have their constants: after the normaliser, or after the layers of a
    map."""

    def __init__(self, step: RemoveInputs, spec: AgentSpec, tensors: dict[str, Array]) -> None:
        self.step, self.spec, self.tensors = step, spec, tensors
        self.statistic_index = {label: i for i, label in enumerate(spec.labels["normaliser.mean"].axes[0].labels)}
        self.maps: dict[str, Array] = {}

    def of(self, ins: Axis, index: int) -> float:
        """Return the constant of one input; 0 for ids (none), pools of sets (no rows) and numbers at their mean."""
        label, reads = ins.labels[index], ins.reads[index] if ins.reads else ""
        if reads.startswith("embedding:"):
            return 0.0
        if reads:
            return self._normalise(reads)
        name = label.partition("/")[0]
        if name in WHOLE_BLOCKS:
            return float(self._map(name)[int(label.partition("[")[2].partition("]")[0])])
        return 0.0

    def _normalise(self, statistic: str) -> float:
        field = field_of(statistic)
        if field not in self.step.constants:
            return 0.0
        i = self.statistic_index[statistic]
        count, mean, squares = (float(self.tensors[f"normaliser.{k}"][i]) for k in ("count", "mean", "squares"))
        if count == 0:
            mean, scale = 0.0, 1.0
        else:
            scale = (squares / max(count, 1.0) + 1e-6) ** -0.5
        clip = self.spec.model.input_clip
        return min(max((self.step.constants[field] - mean) * scale, -clip), clip)

    def _map(self, name: str) -> Array:
        """Return the output of each filter of a map's last layer when every cell holds the constants."""
        if name not in self.maps:
            first: TensorLabels = self.spec.labels[f"trunk.{name}.first.weight"]
            values = np.array([self.of(first.axes[1], i) for i in range(len(first.axes[1]))])
            for layer in ("first", "second"):
                weight = self.tensors.get(f"trunk.{name}.{layer}.weight")
                if weight is not None:
                    bias = self.tensors[f"trunk.{name}.{layer}.bias"].astype(np.float64)
                    values = np.maximum(weight.astype(np.float64).sum((2, 3)) @ values + bias, 0.0)
            self.maps[name] = values
        return self.maps[name]

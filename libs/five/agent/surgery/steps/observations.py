"""Step that adds observations with zero weights (Berner et al. 2019, equation 9)."""

from typing import Literal

from pydantic import Field

from dota.config import FIELDS
from dota.omission import left_out
from five.agent.surgery.remap import Array, TensorRemap
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import Promise, SurgeryStep, replace_observation
from five.agent.surgery.steps.prior import InputPrior, write_priors


class AddObservations(SurgeryStep):
    """Show ``fields`` (``block.field``, or a whole block) to the policy that ``observation.omit`` or an older release
    left out.

    Exact for any values: all weights on the fields start at zero. The layers of a new block are random, and the weights
    on their outputs start at zero. ``prior`` gives the initial normalisation statistics of a field.
    """

    kind: Literal["add_observations"] = "add_observations"
    fields: tuple[str, ...] = Field(min_length=1, strict=False)
    prior: dict[str, InputPrior] = Field(default_factory=dict)

    def apply(self, spec: AgentSpec) -> AgentSpec:
        now = spec.game.observation
        omit = list(left_out(now.omit, now.generation))
        for field in self.fields:
            if field not in omit:
                raise ValueError(f"add observations: {field}: only what is left out can be added: "
                                 f"{', '.join(omit) or 'nothing'}")
            omit.remove(field)
        after = replace_observation(spec, omit=tuple(omit), generation=FIELDS)
        known = {f"{block.name}.{field.name}" for block in after.layout.blocks.values() for field in block.fields}
        if unknown := sorted(set(self.prior) - known):
            raise ValueError(f"add observations: prior for {unknown[0]}, which is not a field of the observation")
        return after

    def promise(self, spec: AgentSpec) -> Promise:
        return Promise(exact=True)

    def describe(self, spec: AgentSpec) -> str:
        return f"observe {', '.join(self.fields)}"

    def finish_tensor(self, name: str, remap: TensorRemap, array: Array) -> None:
        write_priors(self.prior, name, remap, array)

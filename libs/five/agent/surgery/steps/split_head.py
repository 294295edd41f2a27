"""Step that splits a head into two with equal parameters."""

from typing import Literal

from five.agent.config import SplitHead as Name
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import Promise, SurgeryStep, replace_model


class SplitHead(SurgeryStep):
    """Give ``head`` its own parameters, cloned with their moments from the head that it shared. Exact.

    OpenAI Five split its offset head because wards, which shared it with moves, were placed in the walking direction.
    """

    kind: Literal["split_head"] = "split_head"
    head: Name

    def apply(self, spec: AgentSpec) -> AgentSpec:
        if self.head in spec.model.split_heads:
            raise ValueError(f"split head {self.head}: it has its own parameters already")
        return replace_model(spec, split_heads=(*spec.model.split_heads, self.head))

    def promise(self, spec: AgentSpec) -> Promise:
        return Promise(exact=True)

    def describe(self, spec: AgentSpec) -> str:
        kind, _, name = self.head.partition(".")
        return f"split the {kind} head: {name} gets its own"

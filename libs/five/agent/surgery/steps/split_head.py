"""Split a head in two with equal parameters, which then learn apart."""

from typing import Literal

from five.agent.config import SplitHead as Name
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import Promise, SurgeryStep, replace_model


class SplitHead(SurgeryStep):
    """``head`` gets parameters of its own, cloned from the head that it shared, moments included. Exact.

    OpenAI Five did so when wards kept landing in the direction of walking: a shared head for offsets became two.
    """

    kind: Literal["split_head"] = "split_head"
    head: Name

    def apply(self, spec: AgentSpec) -> AgentSpec:
        """See `SurgeryStep`."""
        if self.head in spec.model.split_heads:
            raise ValueError(f"split head {self.head}: it is one of its own already")
        return replace_model(spec, split_heads=(*spec.model.split_heads, self.head))

    def promise(self, spec: AgentSpec) -> Promise:
        """See `SurgeryStep`."""
        return Promise(exact=True)

    def describe(self, spec: AgentSpec) -> str:
        """See `SurgeryStep`."""
        kind, _, name = self.head.partition(".")
        return f"split the {kind} head: {name} gets its own"

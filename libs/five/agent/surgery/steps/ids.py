"""Step that adds embedding rows."""

from typing import Annotated, Literal

from pydantic import Field

from five.agent.config import IdSpace
from five.agent.model.input_structure import id_rows
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import ROUNDING, Promise, SurgeryStep, format_changes, replace_model


class AddIds(SurgeryStep):
    """Add rows to embeddings. A new row is random and unused until its id appears.

    It is needed only if ids outnumber rows. An id that a release adds to the registry takes a spare row without
    surgery, and `five.agent.model.embeddings` refuses to start without a spare row.
    """

    kind: Literal["add_ids"] = "add_ids"
    rows: dict[IdSpace, Annotated[int, Field(ge=1, le=65535)]] = Field(min_length=1)

    def apply(self, spec: AgentSpec) -> AgentSpec:
        for space, rows in self.rows.items():
            if rows <= (now := id_rows(spec.model, space)):
                raise ValueError(f"add ids: {space} has {now} rows and can only get more, not {rows}")
        return replace_model(spec, id_rows=dict(spec.model.id_rows) | dict(self.rows))

    def promise(self, spec: AgentSpec) -> Promise:
        # All actions are scored in one matrix product, whose shape changes.
        return Promise(exact=True, tolerance=ROUNDING if "action" in self.rows else 0.0,
                       while_="no id of a new row appears")

    def describe(self, spec: AgentSpec) -> str:
        return "rows of " + format_changes({s: (id_rows(spec.model, s), n) for s, n in self.rows.items()})

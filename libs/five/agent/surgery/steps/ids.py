"""Room for more categorical ids."""

from typing import Annotated, Literal

from pydantic import Field

from five.agent.config import IdSpace
from five.agent.model.input_structure import id_rows
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import ROUNDING, Promise, SurgeryStep, format_changes, replace_model


class AddIds(SurgeryStep):
    """Embeddings get more rows. A new row is random, and unreachable until its id appears.

    Needed only where there are more ids than rows: an id that a release adds to the registry takes a spare row without
    any surgery. `five.agent.model.embeddings` refuses to start where one has none.
    """

    kind: Literal["add_ids"] = "add_ids"
    rows: dict[IdSpace, Annotated[int, Field(ge=1, le=65535)]] = Field(min_length=1)

    def apply(self, spec: AgentSpec) -> AgentSpec:
        """See `SurgeryStep`."""
        for space, rows in self.rows.items():
            if rows <= (now := id_rows(spec.model, space)):
                raise ValueError(f"add ids: {space} has {now} rows, and only gets more, not {rows}")
        return replace_model(spec, id_rows=dict(spec.model.id_rows) | dict(self.rows))

    def promise(self, spec: AgentSpec) -> Promise:
        """See `SurgeryStep`."""
        # The whole vocabulary of actions is scored in one product, which is then another one.
        return Promise(exact=True, tolerance=ROUNDING if "action" in self.rows else 0.0,
                       while_="no id of a new row appears")

    def describe(self, spec: AgentSpec) -> str:
        """See `SurgeryStep`."""
        return "rows of " + format_changes({s: (id_rows(spec.model, s), n) for s, n in self.rows.items()})

"""Step that offers actions of `game.scripted_actions`, which nobody takes before."""

from typing import Annotated, Literal

from pydantic import Field

from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import Promise, SurgeryStep, replace_game

Scripted = Literal["buyback", "glyph", "shrine"]


class AddActions(SurgeryStep):
    """Offer ``actions`` to the policy. Their rows are in the vocabulary but were never trained.

    Exact while none of them is offered. Once offered, a new action takes probability from the others, and an untrained
    policy misuses it (Berner et al. 2019, section 4.1 on buyback). With ``anneal_versions`` the switch is not part of
    the surgery but annealed in after it, over that many versions.
    """

    kind: Literal["add_actions"] = "add_actions"
    actions: tuple[Scripted, ...] = Field(min_length=1, strict=False)
    anneal_versions: Annotated[int, Field(ge=1, le=10**7)] | None = None

    def apply(self, spec: AgentSpec) -> AgentSpec:
        changes = self.switches(spec)
        return spec if self.anneal_versions else replace_game(spec, **changes)

    def switches(self, spec: AgentSpec) -> dict[str, object]:
        """Return the game's keys that offer the actions. Raise ValueError for an action that is offered already."""
        scripted = list(spec.game.scripted_actions)
        changes: dict[str, object] = {}
        for action in self.actions:
            if action in scripted:
                scripted.remove(action)
            elif action != "buyback" or spec.game.buyback:
                raise ValueError(f"add action {action}: it is offered already")
            if action == "buyback" and not spec.game.buyback:
                changes["buyback"] = True
        return changes | {"scripted_actions": scripted}

    def promise(self, spec: AgentSpec) -> Promise:
        return Promise(exact=True, tolerance=0.0, while_="none of the new actions is offered")

    def describe(self, spec: AgentSpec) -> str:
        how = f"annealed in over {self.anneal_versions} versions" if self.anneal_versions else "in all games at once"
        return f"offer {', '.join(self.actions)}, {how}"

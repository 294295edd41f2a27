"""Change the game that is played: a patch, a switch, a randomisation. No weight changes."""

import json
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import Promise, SurgeryStep, replace_game


class ChangeGame(SurgeryStep):
    """Keys of the game, dotted (``randomisation.stats``), get other values, the observation's form excepted.

    The policy's function is the same to the bit; the game that it plays is not. With ``anneal_versions`` the change is
    not part of the surgery but annealed in behind it, from none to all games over that many versions.
    """

    kind: Literal["game"] = "game"
    values: dict[str, Any] = Field(min_length=1, max_length=64)
    anneal_versions: Annotated[int, Field(ge=1, le=10**7)] | None = None

    @field_validator("values")
    @classmethod
    def _is_json(cls, values: dict[str, Any]) -> dict[str, Any]:
        try:
            text = json.dumps(values, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"values are numbers, texts, lists and mappings: {error}") from error
        kept: dict[str, Any] = json.loads(text)
        return kept

    def apply(self, spec: AgentSpec) -> AgentSpec:
        """See `SurgeryStep`."""
        after = self.changed(spec)
        if self.anneal_versions:
            if after.layout.hash != spec.layout.hash:
                raise ValueError(f"game: {', '.join(self.values)} cannot be annealed: games of both kinds have to "
                                 "share one layout")
            return spec
        return after

    def changed(self, spec: AgentSpec) -> AgentSpec:
        """The specification with the new values. Raises ValueError for keys that need another kind of step."""
        tree = spec.game.model_dump()
        for path, value in self.values.items():
            if path == "heroes_per_team":
                raise ValueError("game: heroes_per_team changes what every array is; train another run")
            *sections, key = path.split(".")
            place = tree
            for section in sections:
                place = place.get(section, {}) if isinstance(place, dict) else {}
            if not isinstance(place, dict) or key not in place:
                raise ValueError(f"game: there is no key {path}")
            place[key] = value
        after = replace_game(spec, **tree)
        if after.game == spec.game:
            raise ValueError(f"game: {', '.join(self.values)} already have these values")
        if {n: x.axes for n, x in after.labels.items()} != {n: x.axes for n, x in spec.labels.items()}:
            raise ValueError(f"game: {', '.join(self.values)} change what the network reads; use the steps for slots "
                             "and observations (a map of another size is removed, changed, and added again)")
        return after

    def promise(self, spec: AgentSpec) -> Promise:
        """See `SurgeryStep`."""
        return Promise(exact=True, tolerance=0.0, while_="given the same observations; the game itself differs")

    def describe(self, spec: AgentSpec) -> str:
        """See `SurgeryStep`."""
        how = f", annealed in over {self.anneal_versions} versions" if self.anneal_versions else ""
        return "game: " + ", ".join(f"{k} = {v}" for k, v in self.values.items()) + how

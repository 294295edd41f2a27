"""Step that changes the game (patch, switches, randomisation) and no weight."""

import json
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from five.agent.surgery.observation_labels import cell_labels
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import Promise, SurgeryStep, replace_game


class ChangeGame(SurgeryStep):
    """Set dotted keys of the game (``randomisation.stats``), except those that change the observation's shape.

    The policy's function is bit-identical; the game that it plays changes. With ``anneal_versions`` the change is not
    part of the surgery but annealed in after it, from none to all games over that many versions.
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
            raise ValueError(f"values must be numbers, strings, lists and mappings: {error}") from error
        kept: dict[str, Any] = json.loads(text)
        return kept

    def apply(self, spec: AgentSpec) -> AgentSpec:
        after = self._set_values(spec)
        if self.anneal_versions:
            if after.layout.hash != spec.layout.hash:
                raise ValueError(f"game: {', '.join(self.values)} cannot be annealed, because it changes the "
                                 "observation's layout")
            if after.game.frameskip != spec.game.frameskip:
                raise ValueError("game: frameskip cannot be annealed, because all games of a run share it")
            return spec
        return after

    def _set_values(self, spec: AgentSpec) -> AgentSpec:
        """Return the specification with the new values. Raise ValueError for keys that need another kind of step."""
        tree = spec.game.model_dump()
        for path, value in self.values.items():
            if path == "heroes_per_team":
                raise ValueError("game: heroes_per_team changes the shape of every array; start a new run")
            *sections, key = path.split(".")
            section_tree = tree
            for section in sections:
                section_tree = section_tree.get(section, {}) if isinstance(section_tree, dict) else {}
            if not isinstance(section_tree, dict) or key not in section_tree:
                raise ValueError(f"game: unknown key {path}")
            section_tree[key] = value
        after = replace_game(spec, **tree)
        if after.game == spec.game:
            raise ValueError(f"game: {', '.join(self.values)} already have these values")
        if _inputs(after) != _inputs(spec):
            raise ValueError(f"game: {', '.join(self.values)} change the network's inputs; use the steps for slots "
                             "and observations (to resize a map, remove it, change it, and add it again)")
        return after

    def promise(self, spec: AgentSpec) -> Promise:
        return Promise(exact=True, tolerance=0.0, while_="given the same observations")

    def describe(self, spec: AgentSpec) -> str:
        how = f", annealed in over {self.anneal_versions} versions" if self.anneal_versions else ""
        return "game: " + ", ".join(f"{k} = {v}" for k, v in self.values.items()) + how


def _inputs(spec: AgentSpec) -> tuple[object, object]:
    """Return the labels of the network's tensors and of the observation's entries."""
    return {name: labelled.axes for name, labelled in spec.labels.items()}, cell_labels(spec.layout)

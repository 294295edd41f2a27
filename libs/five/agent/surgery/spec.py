"""Specification of an agent: the game and the model, which surgery changes together."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dota.config import GameConfig
from dota.spaces import Layout
from five.agent.config import ModelConfig
from five.agent.model.schema import ModelSchema, TensorSpec
from five.agent.surgery.tensor_labels import TensorLabels, policy_labels
from rapid.malformed import MALFORMED


@dataclass(frozen=True)
class AgentSpec:
    """Game and model of a run, which determine the arrays its agents observe and the tensors of its versions.

    Names and shapes come from labels, without torch and without allocating tensors.
    """

    game: GameConfig
    model: ModelConfig

    @classmethod
    def from_trees(cls, game: Mapping[str, Any], model: Mapping[str, Any]) -> "AgentSpec":
        """Read a run record's trees; a model without ``precision`` gets the default. Raise ValueError."""
        return cls(GameConfig.model_validate(dict(game)), ModelConfig.model_validate(dict(model)))

    @classmethod
    def from_json(cls, text: str) -> "AgentSpec":
        """Read the result of ``to_json``. Raise ValueError for other text."""
        try:
            values = json.loads(text)
            return cls.from_trees(values["game"], values["model"])
        except MALFORMED as error:
            raise ValueError(f"not an agent's specification: {error}") from error

    def to_json(self) -> str:
        """Return JSON text that ``from_json`` reads."""
        return json.dumps(self.trees(), sort_keys=True)

    def trees(self) -> dict[str, Any]:
        """Return ``game`` and ``model`` as JSON values of a run record, without ``precision``."""
        return {"game": self.game.model_dump(mode="json"),
                "model": self.model.model_dump(mode="json", exclude={"precision"})}

    @cached_property
    def layout(self) -> Layout:
        """Layout of the observation."""
        return Layout(self.game)

    @cached_property
    def labels(self) -> dict[str, TensorLabels]:
        """Labels of every tensor of a version, in state-dict order."""
        return policy_labels(self.layout, self.model)

    @cached_property
    def schema(self) -> str:
        """Schema id of this agent's versions, 16 hex digits: `five.agent.model.schema.ModelSchema.id`."""
        tensors = tuple(TensorSpec(name, x.shape, x.dtype) for name, x in self.labels.items())
        return ModelSchema(tensors, self.layout.hash, self.model).id

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of a version's tensors by name."""
        return {name: labelled.shape for name, labelled in self.labels.items()}

    @cached_property
    def parameters(self) -> int:
        """Number of trained parameters, without statistics."""
        return sum(labelled.size for labelled in self.labels.values() if labelled.trained)

    @cached_property
    def version_bytes(self) -> int:
        """Bytes of a version's tensors."""
        return sum(labelled.size * (8 if labelled.dtype == "float64" else 4) for labelled in self.labels.values())

    @cached_property
    def learner_bytes(self) -> int:
        """Bytes of a checkpoint's tensors: the version, Adam's two moments and the clip's second moment."""
        return self.version_bytes + 3 * 4 * self.parameters

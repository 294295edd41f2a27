"""What surgery changes: the game that is played and the model that plays it, as one value."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dota.config import GameConfig
from dota.spaces import Layout
from five.agent.config import ModelConfig
from five.agent.model.schema import Schema, TensorSpec
from five.agent.surgery.tensor_labels import TensorLabels, policy_labels


@dataclass(frozen=True)
class AgentSpec:
    """A run's game and model: all that says which arrays its agents see and which tensors its versions have.

    Nothing is allocated and torch is not needed: names and shapes come from the labels.
    """

    game: GameConfig
    model: ModelConfig

    @classmethod
    def of(cls, game: Mapping[str, Any], model: Mapping[str, Any]) -> "AgentSpec":
        """From a run record's trees; a model without ``precision`` gets the default. Raises ValueError."""
        return cls(GameConfig.model_validate(dict(game)), ModelConfig.model_validate(dict(model)))

    @classmethod
    def from_json(cls, text: str) -> "AgentSpec":
        """Reads ``to_json``. Raises ValueError when it is no agent's specification."""
        try:
            values = json.loads(text)
            return cls.of(values["game"], values["model"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not an agent's specification: {error}") from error

    def to_json(self) -> str:
        """JSON text that ``from_json`` reads."""
        return json.dumps(self.trees(), sort_keys=True)

    def trees(self) -> dict[str, Any]:
        """``game`` and ``model`` as JSON values, as a run record keeps them (without ``precision``)."""
        return {"game": self.game.model_dump(mode="json"),
                "model": self.model.model_dump(mode="json", exclude={"precision"})}

    @cached_property
    def layout(self) -> Layout:
        """The observation's layout."""
        return Layout(self.game)

    @cached_property
    def labels(self) -> dict[str, TensorLabels]:
        """The labels of every tensor of a version, in the order of its state dict."""
        return policy_labels(self.layout, self.model)

    @cached_property
    def schema(self) -> str:
        """Schema id of this agent's versions, 16 hex digits: `five.agent.model.schema.Schema.id`."""
        tensors = tuple(TensorSpec(name, x.shape, x.dtype) for name, x in self.labels.items())
        return Schema(tensors, self.layout.hash, self.model).id

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of a version's tensors by name."""
        return {name: labelled.shape for name, labelled in self.labels.items()}

    @cached_property
    def parameters(self) -> int:
        """Trained numbers; statistics are not counted."""
        return sum(labelled.size for labelled in self.labels.values() if labelled.trained)

    @cached_property
    def version_bytes(self) -> int:
        """Bytes of a version's tensors."""
        return sum(labelled.size * (8 if labelled.dtype == "float64" else 4) for labelled in self.labels.values())

    @cached_property
    def learner_bytes(self) -> int:
        """Bytes of a checkpoint's tensors: the version, Adam's two moments and the clip's second moment."""
        return self.version_bytes + 3 * 4 * self.parameters

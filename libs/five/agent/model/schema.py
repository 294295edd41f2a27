"""Schema of a model: the tensors of its versions, the observation layout and the configuration."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from five.agent.config import ModelConfig
from rapid.malformed import MALFORMED

if TYPE_CHECKING:  # readers of a schema may lack torch
    from torch import Tensor

    from five.agent.model.policy import Policy


_OMITTED_IF_EMPTY = ("split_heads", "fixed_delay", "id_rows")


class TensorSpec(NamedTuple):
    """Parameter or buffer of a model; ``dtype`` is its torch name ("float32")."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class ModelSchema:
    """Tensors in the order of the state dict, the layout's hash, and the model's configuration.

    It excludes ``precision``, which does not change the contents of a version.
    """

    tensors: tuple[TensorSpec, ...]
    layout: str
    config: ModelConfig

    @classmethod
    def of(cls, policy: "Policy") -> "ModelSchema":
        """Return the schema of a policy's versions."""
        tensors = tuple(TensorSpec(name, tuple(tensor.shape), _dtype(tensor))
                        for name, tensor in policy.state_dict().items())
        return cls(tensors, policy.layout.hash, policy.config)

    @classmethod
    def from_json(cls, text: str) -> "ModelSchema":
        """Parse ``to_json``. Raises ValueError for anything else."""
        try:
            values = json.loads(text)
            tensors = tuple(TensorSpec(str(name), tuple(int(n) for n in shape), str(dtype))
                            for name, shape, dtype in values["tensors"])
            return cls(tensors, str(values["layout"]), ModelConfig(**values["config"]))
        except MALFORMED as error:
            raise ValueError(f"not a model schema: {error}") from error

    def to_json(self) -> str:
        """Return JSON text that ``from_json`` parses."""
        return json.dumps(self._values())

    @property
    def id(self) -> str:
        """Return 16 hex digits, equal for interchangeable versions."""
        return hashlib.sha256(json.dumps(self._values(), sort_keys=True).encode()).hexdigest()[:16]

    def differences(self, other: "ModelSchema") -> list[str]:
        """Return the differences of ``other``, one line each; empty for equal ids."""
        lines = []
        if self.layout != other.layout:
            lines.append(f"layout {other.layout} instead of {self.layout}")
        mine, theirs = ({t.name: t for t in schema.tensors} for schema in (self, other))
        lines += [f"{name} is missing" for name in mine if name not in theirs]
        lines += [f"{name} is new" for name in theirs if name not in mine]
        lines += [f"{name} is {theirs[name].dtype} {list(theirs[name].shape)} instead of "
                  f"{spec.dtype} {list(spec.shape)}"
                  for name, spec in mine.items() if name in theirs and theirs[name] != spec]
        if not lines and self.id != other.id:
            ours, its = self._values()["config"], other._values()["config"]
            lines += [f"model.{key} is {its.get(key)} instead of {ours.get(key)}" for key in {**ours, **its}
                      if its.get(key) != ours.get(key)]
            lines = lines or ["the order of the tensors differs"]
        return lines

    def check(self, tensors: Mapping[str, "Tensor"]) -> None:
        """Raise ValueError naming every tensor that is missing, unknown or of another shape or dtype."""
        given = ModelSchema(tuple(TensorSpec(name, tuple(t.shape), _dtype(t)) for name, t in tensors.items()),
                            self.layout, self.config)
        by_name = (tuple(sorted(schema.tensors)) for schema in (self, given))
        if len(set(by_name)) > 1:
            wrong = self.differences(given)
            more = f" and {len(wrong) - 10} more" if len(wrong) > 10 else ""
            raise ValueError(f"the version does not fit model schema {self.id}: {'; '.join(wrong[:10])}{more}")

    def _values(self) -> dict[str, Any]:
        config = self.config.model_dump(mode="json", exclude={"precision"})
        for key in _OMITTED_IF_EMPTY:
            # Versions that are older than the key keep their id.
            if not config[key]:
                del config[key]
        return {"tensors": [list(t) for t in self.tensors], "layout": self.layout, "config": config}


def _dtype(tensor: "Tensor") -> str:
    return str(tensor.dtype).removeprefix("torch.")

"""Step that changes the width of an id space's embedding."""

from collections import defaultdict
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from five.agent.surgery.remap import Array
from five.agent.surgery.spec import AgentSpec
from five.agent.surgery.steps.base import Promise, SurgeryStep, format_changes, replace_model

Space = Literal["unit", "animation", "modifier", "ability", "item", "pickup", "build", "area"]


class ResizeEmbedding(SurgeryStep):
    """Change the width of the embedding of ``space`` to ``to``.

    Wider is exact: new columns are random and read with zero weights. Narrower is approximate: the embedding and the
    weights that read it are replaced by the best approximation of their products at that width (a truncated singular
    value decomposition over all readers), and their moments become zero.

    An action's embedding is as wide as a key: widen ``key`` instead.
    """

    kind: Literal["embedding"] = "embedding"
    space: Space
    to: Annotated[int, Field(ge=1, le=4096)]

    def apply(self, spec: AgentSpec) -> AgentSpec:
        if self.to == self._width(spec):
            raise ValueError(f"embedding of {self.space}: its width is {self.to} already")
        return replace_model(spec, **{f"{self.space}_embedding": self.to})

    def promise(self, spec: AgentSpec) -> Promise:
        return Promise(exact=self.to > self._width(spec))

    def describe(self, spec: AgentSpec) -> str:
        return "embedding of " + format_changes({self.space: (self._width(spec), self.to)})

    def lossy(self, spec: AgentSpec) -> str:
        width = self._width(spec)
        if self.to >= width:
            return ""
        return f"information of the {width} columns of {self.space} that does not fit into {self.to}"

    def prepare_tensors(self, spec: AgentSpec, tensors: dict[str, Array]) -> dict[str, Array]:
        if self.to > self._width(spec):
            return tensors
        table = tensors[self._table].astype(np.float64)
        readers = [(name, columns) for name, all_columns in self._readers(spec).items() for columns in all_columns]
        if not readers:  # the layout leaves its fields out
            return tensors
        # All weights that read the embedding as rows, with outputs and kernel cells: [readers * outputs, width].
        weights = [np.moveaxis(tensors[name].astype(np.float64)[:, columns], 1, -1) for name, columns in readers]
        stacked = np.concatenate([w.reshape(-1, w.shape[-1]) for w in weights])
        (left, one), (right, two) = np.linalg.qr(table), np.linalg.qr(stacked)
        u, s, v = np.linalg.svd(one @ two.T)
        rank = min(self.to, len(s))
        made = dict(tensors)
        made[self._table] = np.zeros_like(tensors[self._table])
        made[self._table][:, :rank] = left @ u[:, :rank] * np.sqrt(s[:rank])
        made[self._table][0] = 0  # row "none" is exactly zero despite rounding
        nearest = right @ v[:rank].T * np.sqrt(s[:rank])
        start = 0
        for (name, columns), weight in zip(readers, weights, strict=True):
            rows = weight.size // weight.shape[-1]
            share = np.zeros_like(weight)
            share.reshape(rows, -1)[:, :rank] = nearest[start:start + rows]
            if made[name] is tensors[name]:
                made[name] = tensors[name].copy()
            made[name][:, columns] = np.moveaxis(share, -1, 1)
            start += rows
        return made

    def prepare_moments(self, spec: AgentSpec, moments: dict[str, Array]) -> dict[str, Array]:
        if self.to > self._width(spec):
            return moments
        made = moments | {self._table: np.zeros_like(moments[self._table])}
        for name, all_columns in self._readers(spec).items():
            made[name] = moments[name].copy()
            for columns in all_columns:
                made[name][:, columns] = 0
        return made

    @property
    def _table(self) -> str:
        return f"embeddings.tables.{self.space}"

    def _width(self, spec: AgentSpec) -> int:
        width: int = getattr(spec.model, f"{self.space}_embedding")
        return width

    def _readers(self, spec: AgentSpec) -> dict[str, list[list[int]]]:
        """Return the layers that read the embedding, with the input columns of each occurrence."""
        found: dict[str, list[list[int]]] = {}
        for name, labelled in spec.labels.items():
            occurrences: dict[str, list[int]] = defaultdict(list)
            for axis in labelled.axes:
                for i, reads in enumerate(axis.reads):
                    if reads.startswith(f"embedding:{self.space}:"):
                        occurrences[axis.labels[i].rpartition(":")[0]].append(i)
            if occurrences:
                found[name] = list(occurrences.values())
        return found

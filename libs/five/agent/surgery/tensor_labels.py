"""Labels of all indices of all tensors of a policy, which surgery uses to move weights.

An axis is a list of labels ("units.position[0]", "f:lstm[17]", "item:17"). Entries with equal labels correspond in two
models, wherever they are in the arrays. Labels follow from the layout and the configuration, without torch. A test
compares them with `Policy.state_dict()` by name, order, shape and dtype, so a tensor without labels fails by its name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Literal

from dota.spaces import OFFSETS, Array, Layout
from five.agent.config import ModelConfig
from five.agent.model.head_names import DELAYS, PARENT_PAIR, offset_pairs, unit_splits
from five.agent.model.input_structure import (
    UnitWeightGroup,
    embedding_widths,
    feature_streams,
    id_rows,
    map_sizes,
    sets,
    unit_groups,
)
from five.agent.surgery.id_labels import id_labels

POLICY_SCALE = 0.1  # as in five.agent.model.heads: the initial policy is close to uniform
KERNEL = 2
_FIELD = re.compile(r"\w+\.\w+")

# Initialization of a new index. "out": the slice is random, as in a new layer. "in": zero, so that old outputs do not
# read it. "query": zero, because it is multiplied with a nonzero key. "fixed": new indices do not occur.
Role = Literal["out", "in", "query", "fixed"]


@dataclass(frozen=True)
class Axis:
    """Labels of one dimension of a tensor.

    ``parents`` maps a label that was split off another to its original. ``reads`` gives, for every label of an input,
    the normaliser's label of its field, or "space:field:column" of an embedding; it is empty if inputs are not fields.
    """

    labels: tuple[str, ...]
    role: Role
    parents: Mapping[str, str] | None = None
    reads: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Initializer:
    """Initial distribution of a layer: "uniform" on ± ``scale``, "normal" with that deviation, or "zero"."""

    kind: Literal["uniform", "normal", "zero"]
    scale: float = 0.0


@dataclass(frozen=True)
class TensorLabels:
    """A tensor's axes.

    ``bias`` names the tensor that absorbs inputs that become constant. ``clone_of`` names the tensor that it was split
    from. If ``none``, row 0 stays zero. ``trained`` is False for statistics.
    """

    axes: tuple[Axis, ...]
    initial: Initializer
    dtype: str = "float32"
    bias: str = ""
    clone_of: str = ""
    none: bool = False
    trained: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of entries."""
        return prod(self.shape)


@lru_cache(maxsize=256)
def numbered(name: str, count: int) -> tuple[str, ...]:
    """Return name[0], name[1], ..."""
    return tuple(f"{name}[{i}]" for i in range(count))


def field_labels(layout: Layout, block: str, array: Array) -> tuple[str, ...]:
    """Return a label for each number of a block's row in ``array``."""
    # Cells of grids of different sizes do not correspond.
    sides = {"passability": layout.observation.passability}
    names = {name: f"{block}.{name}/{side}" for name, side in sides.items()}
    return tuple(label for field in layout.blocks[block].fields if field.array == array
                 for label in numbered(names.get(field.name, f"{block}.{field.name}"), field.count))


def field_of(label: str) -> str:
    """Return the field ("block.field") of a label that names one of its numbers, ids or statistics."""
    found = _FIELD.search(label)
    assert found, f"label {label!r} names no field"
    return found.group()


def _linear(outs: Axis, ins: Axis, fan_in: int, scale: float = 1.0, bias: str = "") -> TensorLabels:
    return TensorLabels((outs, ins), Initializer("uniform", scale * fan_in**-0.5), bias=bias)


class _InputLabels:
    """Labels of concatenated inputs, with the statistic or embedding that each one reads."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.reads: list[str] = []

    def fields(self, layout: Layout, block: str, array: Array, stream: str, group: str = "") -> "_InputLabels":
        """Add the numbers of a block's row."""
        for label in field_labels(layout, block, array):
            self.labels.append(label)
            self.reads.append(f"{stream}:{group}:{label}")
        return self

    def embedded(self, layout: Layout, block: str, field: str, space: str, width: int) -> "_InputLabels":
        """Add the embeddings of a categorical field, if the layout has it."""
        if layout.blocks[block].has(field):
            for i in range(layout.blocks[block].field(field).count):
                for k in range(width):
                    self.labels.append(f"{block}.{field}[{i}]:embedding[{k}]")
                    self.reads.append(f"embedding:{space}:{k}")
        return self

    def plain(self, *labels: Iterable[str]) -> "_InputLabels":
        """Add inputs that are not fields."""
        for more in labels:
            for label in more:
                self.labels.append(label)
                self.reads.append("")
        return self

    def axis(self) -> Axis:
        """Return the input axis of a layer."""
        return Axis(tuple(self.labels), "in", reads=tuple(self.reads))


def policy_labels(layout: Layout, config: ModelConfig) -> dict[str, TensorLabels]:
    """Return the labels of every tensor of `Policy.state_dict()`, in its order."""
    return dict(_LabelBuilder(layout, config).tensors())


class _LabelBuilder:
    def __init__(self, layout: Layout, config: ModelConfig) -> None:
        self.layout, self.config = layout, config
        self.widths = {str(space): width for space, width in embedding_widths(config).items()}
        self.sets, self.unit_groups, self.streams = sets(layout), unit_groups(layout), feature_streams(layout)

    def tensors(self) -> Iterator[tuple[str, TensorLabels]]:
        yield from self._embeddings()
        yield from self._trunk()
        yield from self._statistics("normaliser", tuple(
            f"{name}:{group}:{label}" for name, stream in self.streams.items() for group in stream.groups
            for label in field_labels(self.layout, stream.block.name, stream.array)))
        yield from self._statistics("rewards", ("reward",))
        yield from self._join()
        yield from self._core()
        yield from self._heads()
        yield from self._layer("value", Axis(("value",), "fixed"), self._lstm(), self.config.lstm)
        yield from self._auxiliary()

    def _lstm(self) -> Axis:
        return Axis(numbered("lstm", self.config.lstm), "in")

    def _layer(self, name: str, outs: Axis, ins: Axis, fan_in: int, scale: float = 1.0
               ) -> Iterator[tuple[str, TensorLabels]]:
        yield f"{name}.weight", _linear(outs, ins, fan_in, scale, bias=f"{name}.bias")
        yield f"{name}.bias", TensorLabels((outs,), Initializer("uniform", scale * fan_in**-0.5))

    def _embeddings(self) -> Iterator[tuple[str, TensorLabels]]:
        for space, width in embedding_widths(self.config).items():
            rows = Axis(id_labels(space, id_rows(self.config, space)), "out")
            columns = Axis(numbered("key" if space == "action" else "embedding", width), "out")
            yield f"embeddings.tables.{space}", TensorLabels((rows, columns), Initializer("normal", 1.0), none=True)

    def _trunk(self) -> Iterator[tuple[str, TensorLabels]]:
        c = self.config
        if "minimap" in self.streams:
            yield from self._map("minimap", _InputLabels().fields(self.layout, "minimap", "shared", "minimap"))
        if "nearby_map" in self.streams:
            features = _InputLabels().fields(self.layout, "nearby_map", "private", "nearby_map")
            yield from self._map("nearby_map", features.embedded(
                self.layout, "nearby_map", "area_effect", "area", self.widths["area"]))
        for name, spec in self.sets.items():
            features = _InputLabels().fields(self.layout, spec.block.name, "shared", name).embedded(
                self.layout, spec.block.name, spec.space, spec.space, self.widths[spec.space])
            hidden = Axis(numbered("set_hidden", c.set_hidden), "out")
            yield from self._layer(f"trunk.sets.{name}.first", hidden, features.axis(), len(features.labels))
            yield from self._layer(f"trunk.sets.{name}.second", Axis(numbered("set", c.set), "out"),
                                   Axis(hidden.labels, "in"), c.set_hidden)
        for tower in self.unit_groups:
            yield from self._tower(tower)

    def _map(self, name: str, features: _InputLabels) -> Iterator[tuple[str, TensorLabels]]:
        kernel = Axis(numbered("kernel", KERNEL), "fixed")
        ins = features.axis()
        filters = Axis(numbered("filter", self.config.conv_filters), "out")
        yield from self._convolution(f"trunk.{name}.first", filters, ins, kernel)
        if map_sizes(self._side(name)).second:
            yield from self._convolution(f"trunk.{name}.second", filters, Axis(filters.labels, "in"), kernel)

    def _convolution(self, name: str, outs: Axis, ins: Axis, kernel: Axis) -> Iterator[tuple[str, TensorLabels]]:
        initial = Initializer("uniform", (len(ins) * KERNEL**2)**-0.5)
        yield f"{name}.weight", TensorLabels((outs, ins, kernel, kernel), initial, bias=f"{name}.bias")
        yield f"{name}.bias", TensorLabels((outs,), initial)

    def _side(self, name: str) -> int:
        side: int = getattr(self.layout.observation, name)
        return side

    def _map_out(self, name: str) -> tuple[str, ...]:
        if name not in self.streams:
            return ()
        side = map_sizes(self._side(name)).side
        return tuple(f"{name}/{self._side(name)}:filter[{f}]@{y},{x}" for f in range(self.config.conv_filters)
                     for y in range(side) for x in range(side))

    def _tower(self, tower: UnitWeightGroup) -> Iterator[tuple[str, TensorLabels]]:
        c, name, layout = self.config, tower.name, self.layout
        shared = _InputLabels().fields(layout, "units", "shared", "units", name)
        shared.embedded(layout, "units", "unit", "unit", self.widths["unit"])
        shared.embedded(layout, "units", "animation", "animation", self.widths["animation"])
        private = _InputLabels().fields(layout, "units", "private", "units/private", name)
        if name in ("allied_heroes", "enemy_heroes"):
            shared.fields(layout, "heroes", "shared", "heroes", name)
            shared.plain(*(numbered(f"set:{s}", c.set) for s in self.sets if s.startswith("hero_")))
            private.fields(layout, "heroes", "private", "heroes/private", name)
        elif "unit_modifiers" in self.sets:
            shared.plain(numbered("set:unit_modifiers", c.set))
        if name == "allied_heroes":
            shared.fields(layout, "allied_heroes", "shared", "allied_heroes")
            shared.embedded(layout, "allied_heroes", "build", "build", self.widths["build"])
            shared.embedded(layout, "allied_heroes", "next_item", "item", self.widths["item"])
        hidden = Axis(numbered("unit_hidden", c.unit_hidden), "out")
        yield from self._split_layer(f"trunk.towers.{name}.first", hidden, shared, private)
        yield from self._layer(f"trunk.towers.{name}.second", Axis(numbered("unit", c.unit), "out"),
                               Axis(hidden.labels, "in"), c.unit_hidden)

    def _split_layer(self, name: str, outs: Axis, shared: _InputLabels, private: _InputLabels
                     ) -> Iterator[tuple[str, TensorLabels]]:
        fan_in, bias = len(shared.labels) + len(private.labels), f"{name}.shared.bias"
        yield f"{name}.shared.weight", _linear(outs, shared.axis(), fan_in, bias=bias)
        yield bias, TensorLabels((outs,), Initializer("uniform", fan_in**-0.5))
        yield f"{name}.private.weight", _linear(outs, private.axis(), fan_in, bias=bias)

    def _statistics(self, name: str, labels: tuple[str, ...]) -> Iterator[tuple[str, TensorLabels]]:
        for kind in ("count", "mean", "squares"):
            yield f"{name}.{kind}", TensorLabels((Axis(labels, "out"),), Initializer("zero"), "float64", trained=False)

    def _join(self) -> Iterator[tuple[str, TensorLabels]]:
        c, layout = self.config, self.layout
        shared = _InputLabels().fields(layout, "global", "shared", "global").plain(self._map_out("minimap"))
        if "pickups" in self.sets:
            shared.plain(numbered("set:pickups", c.set))
        private = _InputLabels().plain(self._map_out("nearby_map"),
                                       *(numbered(f"pool:{tower.name}", c.unit) for tower in self.unit_groups),
                                       numbered("own", c.unit))
        private.fields(layout, "previous_action", "private", "previous_action").plain(numbered("target", c.key))
        private.embedded(layout, "previous_action", "action", "action", c.key)
        yield from self._split_layer("join", Axis(self._joined(), "out"), shared, private)

    def _joined(self) -> tuple[str, ...]:
        # Outputs that are pooled over the heroes stay pooled, wherever the pooled share ends.
        pooled = self.config.pooled
        return numbered("join:pooled", pooled) + numbered("join:own", self.config.lstm_input - pooled)

    def _core(self) -> Iterator[tuple[str, TensorLabels]]:
        c = self.config
        gates = Axis(tuple(f"{gate}:lstm[{i}]" for gate in "ifgo" for i in range(c.lstm)), "out")
        initial = Initializer("uniform", c.lstm**-0.5)
        yield "core.lstm.weight_ih_l0", TensorLabels((gates, Axis(self._joined(), "in")), initial)
        yield "core.lstm.weight_hh_l0", TensorLabels((gates, self._lstm()), initial)
        yield "core.lstm.bias_ih_l0", TensorLabels((gates,), initial)
        yield "core.lstm.bias_hh_l0", TensorLabels((gates,), Initializer("zero"))

    def _heads(self) -> Iterator[tuple[str, TensorLabels]]:
        c, lstm = self.config, self._lstm()
        query = Axis(numbered("key", c.key), "query")

        def head(name: str, outs: Axis, clone_of: str = "") -> Iterator[tuple[str, TensorLabels]]:
            for tensor, labelled in self._layer(f"heads.{name}", outs, lstm, c.lstm, POLICY_SCALE):
                origin = clone_of and tensor.replace(f"heads.{name}", f"heads.{clone_of}")
                yield tensor, TensorLabels(labelled.axes, labelled.initial, clone_of=origin)

        for name in ("primary", "unit", "teleport"):
            yield from head(name, query)
        actions = Axis(id_labels("action", id_rows(c, "action")), "out")
        yield "heads.gate.weight", TensorLabels((actions, Axis(query.labels, "out")), Initializer("zero"), none=True)
        yield from head("delay", Axis(numbered("delay", DELAYS), "fixed"))
        pairs = [(pair, axis, i) for pair in offset_pairs(c) for axis in "xy" for i in range(OFFSETS)]
        parents = {f"{pair}:{axis}[{i}]": f"{PARENT_PAIR[pair]}:{axis}[{i}]" for pair, axis, i in pairs
                   if pair in PARENT_PAIR}
        yield from head("offsets", Axis(tuple(f"{pair}:{axis}[{i}]" for pair, axis, i in pairs), "out", parents))
        for name in unit_splits(c):
            yield from head(f"unit_splits.{name}", query, clone_of="unit")

    def _auxiliary(self) -> Iterator[tuple[str, TensorLabels]]:
        c = self.config
        outs = {"win_probability": ("win",), "net_worth_rank": numbered("rank", 5),
                "building_events": numbered("building", self.layout.observation.buildings)}
        hidden = Axis(numbered("auxiliary_hidden", c.auxiliary_hidden), "out")
        for name, labels in outs.items():
            yield from self._layer(f"auxiliary.{name}.0", hidden, self._lstm(), c.lstm)
            yield from self._layer(f"auxiliary.{name}.2", Axis(labels, "out"), Axis(hidden.labels, "in"),
                                   c.auxiliary_hidden)

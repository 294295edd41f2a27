"""Native CPU actor: a policy's forward pass in one native call, with a copy of its parameters.

For a few team-steps PyTorch's cost is two hundred small operator calls, each of which releases and takes the
interpreter's lock. The native code evaluates the whole network in one call and releases the lock once.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from dota.spaces import MAX_AVAILABLE, OFFSETS, ActionPart, Block, MaskClass
from five.agent.model.distribution import ActionTable
from five.agent.model.embeddings import Embeddings
from five.agent.model.heads import ActionHeads, AuxiliaryHeads
from five.agent.model.inputs import InputReader
from five.agent.model.map_encoder import MapEncoder
from five.agent.model.native_reader import columns_of, row_layout_of
from five.agent.model.normaliser import Normaliser, RewardStatistics
from five.agent.model.policy import Array, OutputArrays, Policy
from five.agent.model.process_set import ProcessSet, SplitLinear, UnitSet
from five.agent.model.recurrent_core import RecurrentCore
from five.agent.model.trunk import Trunk
from five.native import Actor

MAX_UNITS = 1024  # of an LSTM: a library's products are as fast for larger layers, and use several threads
SMALL_HEADS = 3  # delay, x and y
RANKS = 5
DTYPES = {"shared": np.float16, "private": np.float16, "shared_ids": np.uint16, "private_ids": np.uint16,
          "available": np.uint16, "target_mask": np.uint8}
# Every module class that the actor evaluates, or that acting does not use. Parameters are checked module by module.
EVALUATED: tuple[type[nn.Module], ...] = (
    Policy, Trunk, InputReader, Embeddings, ProcessSet, UnitSet, SplitLinear, MapEncoder, Normaliser, RewardStatistics,
    RecurrentCore, ActionHeads, ActionTable, AuxiliaryHeads, nn.ModuleDict, nn.ParameterDict, nn.Sequential, nn.Linear,
    nn.Conv2d, nn.Embedding, nn.LSTM, nn.ReLU)
Layer = tuple[Array, Array | None]


def freeze(policy: Policy) -> bool:
    """Compile the policy's present parameters and statistics into its ``actor``, which `Policy.act` then calls.

    Call it again after a parameter changed. Return whether the native actor supports the policy; if not, ``actor``
    becomes None. Actions are the same, numbers differ by rounding only.
    """
    policy.actor = NativeActor(policy) if is_supported(policy) else None
    return policy.actor is not None


def is_supported(policy: Policy) -> bool:
    """Return whether the policy is on the CPU, in float32, small, not dense, and PyTorch uses one thread.

    The native actor computes in float32 in every precision of the model.
    """
    parameters = list(policy.parameters())
    return (all(p.device.type == "cpu" and p.dtype is torch.float32 for p in parameters)
            and not policy.dense and max(policy.config.lstm, policy.config.lstm_input) <= MAX_UNITS
            and torch.get_num_threads() == 1)


class NativeActor:
    """A policy's forward pass with the parameters and statistics that it had at construction (`PolicyActor`).

    Any number of threads may call it. ``instructions`` is 'portable' or 'avx2' in place of the widest instruction set
    that the CPU has. Raises ValueError naming modules of the policy that the native code does not evaluate.

    Attributes: ``nbytes``, the size of the copied parameters.
    """

    def __init__(self, policy: Policy, instructions: str = "") -> None:
        layout, config = policy.layout, policy.config
        self._heroes, self._units = layout.heroes, layout.units
        self._lstm, self._key = config.lstm, config.key
        self._buildings = layout.observation.buildings
        self._reader = policy.trunk.reader
        self.nbytes = sum(p.numel() * p.element_size() for p in policy.parameters())
        with torch.no_grad():
            self._native = Actor(_Export(policy).network(), instructions)

    def __deepcopy__(self, memo: dict[int, Any]) -> "NativeActor":
        return self  # It is immutable.

    def accepts(self, obs: Mapping[str, Array]) -> bool:
        """Return whether the observation arrays have the dtypes that games write."""
        return all(obs[name].dtype == dtype for name, dtype in DTYPES.items())

    def __call__(self, obs: Mapping[str, Array], state: Mapping[str, Array], generator: torch.Generator | None = None,
                 greedy: bool = False) -> OutputArrays:
        """Choose one action per hero, as `Policy.act` does. The arrays are only read.

        Raises ValueError for arrays of other sizes and IndexError for an id without an embedding.
        """
        steps = len(obs["shared"])
        lead = (steps, self._heroes)
        seen = {name: np.ascontiguousarray(array) for name, array in (*obs.items(), *state.items())}
        self._reader.require_widths(seen["shared"], seen["private"])
        for name in ("shared", "private"):
            seen[name] = seen[name].view(np.uint16)
        if not greedy:
            seen |= self._uniform(steps, generator)
        out = {"actions": np.empty((*lead, len(ActionPart)), np.int16)}
        for name, shape in (("logp", ()), ("values", ()), ("h", (self._lstm,)), ("c", (self._lstm,)),
                            ("target_embedding", (self._key,)), ("win", ()), ("rank", (RANKS,)),
                            ("buildings", (self._buildings,)), ("primary", (MAX_AVAILABLE,)), ("unit", (self._units,))):
            out[name] = np.empty((*lead, *shape), np.float32)
        self._native.act(seen, out)
        return OutputArrays(
            out["actions"], out["logp"], out["values"],
            {"win_probability": out["win"], "net_worth_rank": out["rank"], "building_events": out["buildings"]},
            {name: out[name] for name in ("h", "c", "target_embedding")}, out["primary"], out["unit"])

    def _uniform(self, steps: int, generator: torch.Generator | None) -> dict[str, Array]:
        """Return the uniform numbers that `five.agent.model.distribution.sample` would draw in its three calls."""
        rows = steps * self._heroes
        first, second = rows * MAX_AVAILABLE, rows * (MAX_AVAILABLE + SMALL_HEADS * OFFSETS)
        numbers = torch.rand(second + rows * self._units, generator=generator).numpy()
        return {"uniform_primary": numbers[:first], "uniform_small": numbers[first:second],
                "uniform_unit": numbers[second:]}


class _Export:
    """Export of a policy to the native code; it records which parameters were copied."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._reader = policy.trunk.reader
        self._scale, self._shift = (x.numpy() for x in policy.normaliser.scale_and_shift())
        self._copied: set[int] = set()

    def network(self) -> dict[str, Any]:
        """Return sizes, offsets, layers and tables by name. Raises ValueError as `NativeActor` does."""
        network = self._network()
        missing = [name for name, module in self._policy.named_modules() if not isinstance(module, EVALUATED) or (
            (own := list(module.parameters(recurse=False))) and not any(id(p) in self._copied for p in own))]
        if missing:
            raise ValueError(f"five.native does not evaluate these modules of the policy: {', '.join(missing)}")
        return network

    def _network(self) -> dict[str, Any]:
        policy = self._policy
        layout, config, reader, trunk = policy.layout, policy.config, self._reader, policy.trunk
        blocks, table, heads = layout.blocks, policy.heads.table, policy.heads
        numbers, embedded = self._numbers, self._embedded
        sets, groups = self._sets(), self._unit_groups()
        join, join_private = self._split_layers(policy.join)
        from_input, from_state, input_bias, state_bias = policy.core.lstm.parameters()
        aux = policy.auxiliary
        auxiliary = (aux.win_probability, aux.net_worth_rank, aux.building_events)
        on_state = [heads.primary, heads.unit, heads.teleport, heads.delay, heads.offsets, *heads.unit_splits.values(),
                    policy.value, *(head[0] for head in auxiliary)]
        previous = blocks["previous_action"]
        return {
            "heroes": layout.heroes, "units": layout.units, "available": MAX_AVAILABLE,
            "mask_classes": len(MaskClass), "teleport_class": int(MaskClass.TELEPORT),
            "shared": layout.shared, "private": layout.private, "shared_ids": layout.shared_ids,
            "private_ids": layout.private_ids,
            "cross_hero_pooled": config.pooled, "offset_pairs": heads.pairs, "clip": policy.normaliser.clip,
            "fixed_delay": config.fixed_delay,
            "columns": columns_of(reader), "owner_slots": reader.owner_slots.tolist(),
            "group_slots": reader.group_slots.tolist(),
            "global": numbers("global"), "previous_action": numbers("previous_action"),
            "units/shared": numbers("units"),
            "units/private": numbers("units/private"), "heroes/shared": numbers("heroes"),
            "heroes/private": numbers("heroes/private"), "allied_heroes": numbers("allied_heroes"),
            "unit": embedded(blocks["units"], "unit", "unit"),
            "animation": embedded(blocks["units"], "animation", "animation"),
            "build": embedded(blocks["allied_heroes"], "build", "build"),
            "next_item": embedded(blocks["allied_heroes"], "next_item", "item"),
            "last_action": embedded(previous, "action", "action", "private_ids"),
            "action": (0, 0, self._copy(policy.embeddings.table("action"))),
            "minimap": self._map("minimap", trunk.minimap), "nearby_map": self._map("nearby_map", trunk.nearby_map),
            "sets": sets, "unit_groups": groups, "join": join, "join_private": join_private,
            "gates": (np.concatenate((self._copy(from_input), self._copy(from_state)), 1),
                      self._copy(input_bias) + self._copy(state_bias)),
            "heads": self._stack_layers(on_state),
            "win": self._layer(auxiliary[0][2]), "rank": self._layer(auxiliary[1][2]),
            "buildings": self._layer(auxiliary[2][2]),
            "gate": torch.from_numpy(self._copy(heads.gate.weight)).sigmoid().numpy(),
            **{name: getattr(table, name).to(torch.int64).tolist() for name in (
                "mask_class", "offset_pair", "unit_split", "reads_unit", "reads_teleport", "reads_offset")}}

    def _numbers(self, name: str) -> tuple[tuple[int, ...], Array, Array]:
        """Return a stream's position in its array, and its scale and shift."""
        block, array, _ = self._reader.streams[name]
        start, groups, fields = self._policy.normaliser.columns[name]
        span = slice(start, start + groups * fields)
        return (tuple(row_layout_of(self._reader, block, array)), self._copy(self._scale[span]),
                self._copy(self._shift[span]))

    def _embedded(self, block: Block, field: str, space: str, array: Any = "shared_ids"
                  ) -> tuple[int, int, Array] | None:
        """Return a categorical field's offset, the width of its rows and its table; None if the layout lacks it."""
        if not block.has(field):
            return None
        return (block.offset[array] + block.field(field).offset, block.width(array),
                self._copy(self._policy.embeddings.table(space)))

    def _sets(self) -> list[dict[str, Any]]:
        owners = {"hero_": "hero", "unit_m": "unit", "pickup": "team"}
        found = []
        for name, spec in self._reader.sets.items():
            net = cast(ProcessSet, self._policy.trunk.sets[name])
            found.append({
                "owner": next(owner for start, owner in owners.items() if name.startswith(start)),
                "columns": spec.block.instances, "numbers": self._numbers(name),
                "id": (spec.block.offset["shared_ids"], spec.block.width("shared_ids"),
                       self._copy(self._policy.embeddings.table(spec.space))),
                "first": self._layer(net.first), "second": self._layer(net.second)})
        return found

    def _unit_groups(self) -> list[dict[str, Any]]:
        found = []
        for group in self._reader.unit_groups:
            unit = cast(UnitSet, self._policy.trunk.towers[group.name])
            first, private = self._split_layers(unit.first)
            found.append({"columns": len(group.slots), "first": first, "private": private,
                          "second": self._layer(unit.second)})
        return found

    def _map(self, name: str, net: MapEncoder | None) -> dict[str, Any] | None:
        if net is None:
            return None
        policy, reader = self._policy, self._reader
        block, array, _ = reader.streams[name]
        start, _, fields = policy.normaliser.columns[name]
        scale, shift = (np.tile(self._copy(x[start:start + fields]), block.instances)
                        for x in (self._scale, self._shift))
        layout = row_layout_of(reader, block, array)._replace(fields=len(scale))
        weight, bias = self._layer(net.first)
        ids = None
        if name == "nearby_map" and block.has("area_effect"):
            embeddings = self._copy(policy.embeddings.table("area"))
            parts = np.split(weight[:, fields:], block.width("private_ids"), 1)
            products = np.stack([np.einsum("vc,fcyx->vyxf", embeddings, part) for part in parts])
            bias = bias + products[:, 0].sum((0, 1, 2))
            ids = block.offset["private_ids"], self._copy(products - products[:, :1])
        return {"side": net.side, "pools": net.pool, "numbers": (tuple(layout), scale, shift),
                "first": self._convolution((weight[:, :fields], bias)), "ids": ids,
                "second": None if net.second is None else self._convolution(self._layer(net.second))}

    def _convolution(self, layer: Layer) -> tuple[Layer, Layer]:
        """Return a layer for each row of the kernels, over [columns, channels]."""
        top, bottom = (self._copy(layer[0][:, :, y].swapaxes(1, 2).reshape(len(layer[0]), -1)) for y in (0, 1))
        return (top, layer[1]), (bottom, None)

    def _copy(self, tensor: Tensor | Array) -> Array:
        if isinstance(tensor, Tensor):
            self._copied.add(id(tensor))
            tensor = tensor.detach().numpy()
        return np.array(tensor, np.float32, order="C")

    def _layer(self, layer: nn.Module) -> Layer:
        linear = cast(nn.Linear, layer)
        return self._copy(linear.weight), None if linear.bias is None else self._copy(linear.bias)

    def _split_layers(self, split: SplitLinear) -> tuple[Layer, Layer]:
        return self._layer(split.shared), self._layer(split.private)

    def _stack_layers(self, layers: Sequence[nn.Module]) -> Layer:
        """Concatenate the outputs of several linear layers over the same input into one layer."""
        weights, biases = zip(*map(self._layer, layers), strict=True)
        return np.concatenate(weights), np.concatenate(biases)

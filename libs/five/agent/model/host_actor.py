"""A policy whose parameters stay as they are, acting in the host's memory by one call of the core.

What PyTorch computes for a few team-steps is mostly the cost of asking for some two hundred small operations, one after
another and each giving up the interpreter's lock: the core walks the whole network, and lets the lock go once.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dota.spaces import MAX_AVAILABLE, OFFSETS, ActionPart, Block, MaskClass
from five.agent.model.host_reader import READ as MAPPED
from five.agent.model.host_reader import HostReader, columns_of, place_of
from five.agent.model.process_set import ProcessSet, SplitLinear, UnitSet
from five.native import Actor

if TYPE_CHECKING:
    from five.agent.model.policy import Policy

MOST_UNITS = 1024  # of an LSTM: of larger layers a library's products are as fast, and use several threads
SMALL = 3  # delay, x and y
RANKS = 5
READ = {"shared": np.float16, "private": np.float16, "shared_ids": np.uint16, "private_ids": np.uint16,
        "available": np.uint16, "target_mask": np.uint8}
Array = npt.NDArray[Any]
Layer = tuple[Array, Array | None]


class HostActed(NamedTuple):
    """What `five.agent.model.policy.Acted` has, as arrays: ``choice`` is its ``primary``, ``aim`` its ``unit``."""

    actions: npt.NDArray[np.int16]
    logp: Array
    values: Array
    aux: dict[str, Array]
    state: dict[str, Array]
    choice: Array
    aim: Array


def suits(policy: "Policy") -> bool:
    """Whether a policy is one that the core acts for: on the host, in float32, small, and on one thread."""
    parameters = list(policy.parameters())
    return (all(p.device.type == "cpu" and p.dtype is torch.float32 for p in parameters)
            and policy.config.precision == "float32" and not policy.dense
            and max(policy.config.lstm, policy.config.lstm_input) <= MOST_UNITS and torch.get_num_threads() == 1)


class HostActor:
    """Acts as ``policy`` would with the parameters and statistics that it has now; they are copied.

    ``instructions``: 'portable' or 'avx2' instead of the widest that the processor has. Any number of threads may call
    it. Attributes: ``nbytes`` of its copies.
    """

    def __init__(self, policy: "Policy", instructions: str = "") -> None:
        layout, config = policy.layout, policy.config
        self._heroes, self._units = layout.heroes, layout.units
        self._lstm, self._key = config.lstm, config.key
        self._buildings = layout.observation.buildings
        self._reader = policy.trunk.reader
        self._maps = _Maps(policy)
        self.nbytes = sum(p.numel() * p.element_size() for p in policy.parameters())
        with torch.no_grad():
            self._core = Actor(_described(policy, self._maps), instructions)

    def __deepcopy__(self, memo: dict[int, Any]) -> "HostActor":
        return self  # nothing of it ever changes

    @staticmethod
    def takes(obs: Mapping[str, Array]) -> bool:
        """Whether these arrays are such as games write."""
        return all(obs[name].dtype == dtype for name, dtype in READ.items())

    def __call__(self, obs: Mapping[str, Array], state: Mapping[str, Array], generator: torch.Generator | None = None,
                 greedy: bool = False) -> HostActed:
        """Arguments as of `Policy.act`, as arrays such as it ``takes``; they are only read. Draws what that would, but
        for rounding.

        Raises ValueError on arrays of other sizes, IndexError for an id that has no embedding.
        """
        steps = len(obs["shared"])
        lead = (steps, self._heroes)
        seen = {name: np.ascontiguousarray(array) for name, array in (*obs.items(), *state.items())}
        self._reader.require_widths(seen["shared"], seen["private"])
        if any(self._maps.widths):
            seen |= self._maps(seen)
        for name in ("shared", "private"):
            seen[name] = seen[name].view(np.uint16)
        if not greedy:
            seen |= self._drawn(steps, generator)
        done = {"actions": np.empty((*lead, len(ActionPart)), np.int16)}
        for name, shape in (("logp", ()), ("values", ()), ("h", (self._lstm,)), ("c", (self._lstm,)),
                            ("target_embedding", (self._key,)), ("win", ()), ("rank", (RANKS,)),
                            ("buildings", (self._buildings,)), ("choice", (MAX_AVAILABLE,)), ("aim", (self._units,))):
            done[name] = np.empty((*lead, *shape), np.float32)
        self._core.act(seen, done)
        return HostActed(
            done["actions"], done["logp"], done["values"],
            {"win_probability": done["win"], "net_worth_rank": done["rank"], "building_events": done["buildings"]},
            {name: done[name] for name in ("h", "c", "target_embedding")}, done["choice"], done["aim"])

    def _drawn(self, steps: int, generator: torch.Generator | None) -> dict[str, Array]:
        """Uniform numbers for `five.agent.model.distribution.sample`'s three draws, the ones that it would have."""
        rows = steps * self._heroes
        first, second = rows * MAX_AVAILABLE, rows * (MAX_AVAILABLE + SMALL * OFFSETS)
        numbers = torch.rand(second + rows * self._units, generator=generator).numpy()
        return {"uniform_choice": numbers[:first], "uniform_small": numbers[first:second],
                "uniform_unit": numbers[second:]}


class _Maps:
    """What the convolutions make of the maps, by PyTorch; nothing where the layout has none."""

    def __init__(self, policy: "Policy") -> None:
        trunk = policy.trunk
        self._minimap, self._nearby, self._embeddings = trunk.minimap, trunk.nearby_map, policy.embeddings
        self._normaliser = policy.normaliser
        self._read = HostReader(trunk.reader)
        self.widths = tuple(0 if net is None else net.width for net in (self._minimap, self._nearby))

    def __call__(self, seen: Mapping[str, Array]) -> dict[str, Array]:
        found = {}
        with torch.no_grad():
            # PyTorch has no tensors that are only read, and warns of arrays that are.
            obs = {name: torch.from_numpy(seen[name] if seen[name].flags.writeable else seen[name].copy())
                   for name in (*MAPPED, "private_ids")}
            floats, ids = self._read.maps(obs, self._normaliser)
            if self._minimap is not None:
                found["maps"] = self._minimap(floats["minimap"]).contiguous().numpy()
            if self._nearby is not None:
                area = [] if ids is None else [self._embeddings.embed("area", ids).flatten(-2)]
                cells = torch.cat((floats["nearby_map"], *area), -1)
                found["maps_private"] = self._nearby(cells).contiguous().numpy()
        return found


def _described(policy: "Policy", maps: _Maps) -> dict[str, Any]:
    """The network as the core takes it."""
    layout, config, reader, trunk = policy.layout, policy.config, policy.trunk.reader, policy.trunk
    blocks, table, heads = layout.blocks, policy.heads.table, policy.heads
    scale, shift = (x.numpy() for x in policy.normaliser.standard())

    def numbers(name: str) -> tuple[tuple[int, ...], Array, Array] | None:
        block, array, _ = reader.streams[name]
        start, groups, fields = policy.normaliser.columns[name]
        span = slice(start, start + groups * fields)
        return tuple(place_of(reader, block, array)), _copied(scale[span]), _copied(shift[span])

    def embedded(block: Block, field: str, space: str, array: Any = "shared_ids") -> tuple[int, int, Array] | None:
        if not block.has(field):
            return None
        return (block.offset[array] + block.field(field).offset, block.width(array),
                _copied(policy.embeddings.table(space)))

    owners = {"hero_": "hero", "unit_m": "unit", "pickup": "team"}
    sets = []
    for name, spec in reader.sets.items():
        net = cast(ProcessSet, trunk.sets[name])
        sets.append({
            "owner": next(owner for start, owner in owners.items() if name.startswith(start)),
            "columns": spec.block.instances, "numbers": numbers(name),
            "id": (spec.block.offset["shared_ids"], spec.block.width("shared_ids"),
                   _copied(policy.embeddings.table(spec.space))),
            "first": _layer(net.first), "second": _layer(net.second)})
    towers = []
    for tower in reader.towers:
        unit = cast(UnitSet, trunk.towers[tower.name])
        first, private = _halves(unit.first)
        towers.append({"columns": len(tower.slots), "first": first, "private": private, "second": _layer(unit.second)})
    join, join_private = _halves(policy.join)
    from_input, from_state, input_bias, state_bias = policy.core.lstm.parameters()
    aux = policy.auxiliary
    auxiliary = (aux.win_probability, aux.net_worth_rank, aux.building_events)
    side_by_side = [heads.primary, heads.unit, heads.teleport, heads.delay, heads.offsets, *heads.unit_splits.values(),
                    policy.value, *(head[0] for head in auxiliary)]
    previous = blocks["previous_action"]
    return {
        "heroes": layout.heroes, "units": layout.units, "choices": MAX_AVAILABLE, "classes": len(MaskClass),
        "teleports": int(MaskClass.TELEPORT), "shared": layout.shared, "private": layout.private,
        "shared_ids": layout.shared_ids, "private_ids": layout.private_ids, "maps": maps.widths[0],
        "maps_private": maps.widths[1], "pooled": config.pooled, "pairs": heads.pairs, "clip": policy.normaliser.clip,
        "columns": columns_of(reader), "owner_slots": reader.owner_slots.tolist(),
        "tower_slots": reader.tower_slots.tolist(),
        "global": numbers("global"), "previous_action": numbers("previous_action"), "units/shared": numbers("units"),
        "units/private": numbers("units/private"), "heroes/shared": numbers("heroes"),
        "heroes/private": numbers("heroes/private"), "allied_heroes": numbers("allied_heroes"),
        "unit": embedded(blocks["units"], "unit", "unit"),
        "animation": embedded(blocks["units"], "animation", "animation"),
        "build": embedded(blocks["allied_heroes"], "build", "build"),
        "next_item": embedded(blocks["allied_heroes"], "next_item", "item"),
        "last_action": embedded(previous, "action", "action", "private_ids"),
        "action": (0, 0, _copied(policy.embeddings.table("action"))),
        "sets": sets, "towers": towers, "join": join, "join_private": join_private,
        "gates": (_copied(torch.cat((from_input, from_state), 1)), _copied(input_bias + state_bias)),
        "heads": _stacked(side_by_side),
        "win": _layer(auxiliary[0][2]), "rank": _layer(auxiliary[1][2]), "buildings": _layer(auxiliary[2][2]),
        "gate": _copied(heads.gate.weight.sigmoid()),
        **{name: getattr(table, name).to(torch.int64).tolist() for name in (
            "mask_class", "offset_pair", "unit_split", "reads_unit", "reads_teleport", "reads_offset")}}


def _copied(tensor: Tensor | Array) -> Array:
    array = tensor.detach().numpy() if isinstance(tensor, Tensor) else tensor
    return np.array(array, np.float32, order="C")


def _layer(layer: nn.Module) -> Layer:
    linear = cast(nn.Linear, layer)
    return _copied(linear.weight), None if linear.bias is None else _copied(linear.bias)


def _halves(split: SplitLinear) -> tuple[Layer, Layer]:
    return _layer(split.shared), _layer(split.private)


def _stacked(layers: Sequence[nn.Module]) -> Layer:
    """The layers side by side, as one."""
    linear = [cast(nn.Linear, layer) for layer in layers]
    return _copied(torch.cat([layer.weight for layer in linear])), _copied(torch.cat([layer.bias for layer in linear]))

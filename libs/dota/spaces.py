"""Observation and action layout: the only source of shapes, for the compiled core and for Python.

A layout is a list of blocks; a block is a number of instances (units, heroes, items, map cells, ...) of named fields.
Every field is stored in one of four arrays of a *team-step*:

- ``shared``      float16 [S]      values common to all heroes of the team
- ``private``     float16 [H, P]   values that differ by hero
- ``shared_ids``  uint16  [SI]     categorical ids, shared (0 = none)
- ``private_ids`` uint16  [H, PI]  categorical ids, per hero

Within an array a block's fields are stored instance by instance: ``array[block.offset + i * block.stride +
field.offset]``. A team-step also holds ``available`` uint16 [H, 30], the ids of the primary actions that are valid now
(0 = none), and ``target_mask`` uint8 [H, 4, U], the valid target slots for each class of action.

The fields are those of Berner et al. 2019, table 4. At the default slot counts a hero sees the paper's 15,754 values.
"""

import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from dota import registry
from dota.config import GameConfig
from dota.omission import WHOLE_BLOCKS, left_out, omitted_fields

DATA = Path(__file__).parent / "data"
PATCHES: tuple[str, ...] = get_args(GameConfig.model_fields["patch"].annotation)
MAX_AVAILABLE = 30
HISTORY = 16  # timesteps of hit points in a unit's row
HERO_ABILITIES = 6
HERO_ITEMS = 16
OFFSETS = 9
PAPER_EMBEDDING = 128  # width of the two embeddings in the paper's previous-action block

Array = Literal["shared", "private", "shared_ids", "private_ids", "model"]


class TargetType(IntEnum):
    """Parameters that a primary action reads in addition to the delay (Berner et al. 2019, table 5)."""

    NONE = 0  # nothing
    POINT = 1  # caster offset
    UNIT = 2  # unit
    UNIT_OFFSET = 3  # unit and regular offset
    TELEPORT = 4  # teleport unit and regular offset
    WARD = 5  # ward offset


class MaskClass(IntEnum):
    """Row of ``target_mask`` with an action's valid unit targets."""

    ATTACK = 0  # valid attack targets: visible enemies, own units that may be denied
    ENEMY = 1  # visible enemies that a spell may target
    ALLY = 2  # own units that a spell or item may target, oneself included
    TELEPORT = 3  # buildings to teleport to


class ActionPart(IntEnum):
    """Columns of an action, int16 [H, 6]."""

    SLOT = 0  # index into ``available``
    DELAY = 1  # frame 0-3
    UNIT = 2  # unit slot
    TELEPORT = 3  # unit slot
    OFFSET_X = 4  # 0-8, 4 is the middle
    OFFSET_Y = 5


class Field(NamedTuple):
    """Observation field of ``count`` numbers; ``offset`` is its position within a row of its array."""

    name: str
    count: int  # type: ignore[assignment]
    array: Array
    offset: int


@dataclass(frozen=True)
class Block:
    """Group of ``instances`` rows with the same fields. ``offset`` and ``stride`` locate its rows in each array that
    has any."""

    name: str
    instances: int
    fields: tuple[Field, ...]
    offset: dict[str, int]
    stride: dict[str, int]

    def has(self, name: str) -> bool:
        """Return whether the field is present; the configuration may omit it."""
        return any(field.name == name for field in self.fields)

    def width(self, array: Array) -> int:
        """Return the number of a row's values in ``array``."""
        return self.stride.get(array, 0)

    def span(self, array: Array) -> slice:
        """Return the block's slice of ``array``, rows one after another."""
        start = self.offset.get(array, 0)
        return slice(start, start + self.instances * self.width(array))

    def field(self, name: str) -> Field:
        """Return the field of that name. Raises KeyError that names the block."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"block {self.name!r} has no field {name!r}")


class UnitGroup(NamedTuple):
    """Consecutive unit slots of one category."""

    name: str
    start: int
    count: int  # type: ignore[assignment]


@dataclass(frozen=True)
class Action:
    """Primary action of the vocabulary, with its permanent id (``dota.registry``)."""

    id: int
    name: str
    target: TargetType
    mask: MaskClass

    @property
    def casts(self) -> str:
        """Name of the ability or item that the action casts, '' for a built-in action."""
        return "" if self.id < len(BUILT_IN) else self.name.partition("/")[0]


BUILT_IN = (
    ("none", TargetType.NONE, MaskClass.ATTACK),
    ("noop", TargetType.NONE, MaskClass.ATTACK),
    ("move", TargetType.POINT, MaskClass.ATTACK),
    ("attack", TargetType.UNIT, MaskClass.ATTACK),
    ("follow", TargetType.UNIT_OFFSET, MaskClass.ALLY),
    ("glyph", TargetType.NONE, MaskClass.ATTACK),
    ("shrine", TargetType.NONE, MaskClass.ATTACK),
    ("buyback", TargetType.NONE, MaskClass.ATTACK),
    ("pickup", TargetType.NONE, MaskClass.ATTACK),
)
NOOP, MOVE, ATTACK, FOLLOW, GLYPH, SHRINE, BUYBACK, PICKUP = range(1, 9)

# Sizes of the categorical id spaces (embedding rows). Ids are those of dota.registry; 0 means "no id". The sizes have
# spare rows for patches and heroes that are added later. A run that needs more gets them by surgery (model.id_rows).
ID_SPACES = {"unit": 256, "animation": 16, "modifier": 1024, "ability": 512, "item": 256, "pickup": 16,
             "build": 64, "area": 512, "action": 512, "target_slot": 0}


def target_type_of(ability: dict[str, Any]) -> TargetType | None:
    """Return the target type of an ability or item by its behaviour flags; None for a passive one, which is not an
    action.

    A point target whose effect covers the surroundings of a unit (``aoe``) is a unit-offset target, as Sniper's
    Shrapnel in the paper's table 5. Trees have no unit slots: abilities that target a tree use the nearest one.
    """
    behavior = set(ability.get("behavior", []))
    primitives = {e.get("p") for e in ability.get("effects") or []}
    if "place_ward" in primitives:
        return TargetType.WARD
    if "teleport" in primitives:
        return TargetType.TELEPORT
    if "passive" in behavior and not behavior & {"no_target", "unit_target", "point"}:
        return None
    if not ability.get("effects"):
        return None
    if "tree" in ability.get("target_type", []):
        return TargetType.NONE  # the nearest tree
    if "unit_target" in behavior:
        return TargetType.UNIT
    if "point" in behavior:
        return TargetType.UNIT_OFFSET if "aoe" in behavior else TargetType.POINT
    if "no_target" in behavior:
        return TargetType.NONE
    return None


def _mask_of(ability: dict[str, Any], target: TargetType) -> MaskClass:
    if target is TargetType.TELEPORT:
        return MaskClass.TELEPORT
    team = set(ability.get("target_team", []))
    if "friendly" in team and "enemy" not in team:
        return MaskClass.ALLY
    return MaskClass.ENEMY


@functools.cache
def vocabulary() -> tuple[Action, ...]:
    """Return all primary actions of all patches by id."""
    actions = []
    for i, entry in enumerate(registry.load().names["action"]):
        name, target, mask = entry.split()
        actions.append(Action(i, name, TargetType[target.upper()], MaskClass[mask.upper()]))
    return tuple(actions)


def _abilities_of(patch: str) -> list[tuple[str, TargetType, MaskClass]]:
    """Return the actions of a patch's heroes and items, in the order of its files."""
    folder = DATA / f"dota-{patch}"
    abilities = json.loads((folder / "abilities.json").read_text(encoding="utf-8"))["abilities"]
    heroes = json.loads((folder / "heroes.json").read_text(encoding="utf-8"))["heroes"]
    items = json.loads((folder / "items.json").read_text(encoding="utf-8"))["items"]
    sources = [(n, a) for n, a in abilities.items() if a.get("owner") in heroes]
    sources += [(n, i) for n, i in items.items() if not i.get("excluded")]
    aimed = [(name, target_type_of(source), source) for name, source in sources]
    return [(name, target, _mask_of(source, target)) for name, target, source in aimed if target is not None]


def action_entries(patch: str, known: Sequence[str]) -> list[str]:
    """Return entries of the space ``action`` for the actions of a patch, built-in ones first.

    ``known`` are the existing entries: an ability that aims differently than its entry there gets a separate one, with
    the kind of target after a slash.
    """
    taken = {entry.split()[0]: entry for entry in known}
    entries = []
    for name, target, mask in [*BUILT_IN, *_abilities_of(patch)]:
        aim = f"{target.name.lower()} {mask.name.lower()}"
        names = (name, f"{name}/{target.name.lower()}", f"{name}/{aim.replace(' ', '-')}")
        free = next(n for n in names if taken.get(n, f"{n} {aim}") == f"{n} {aim}")
        entries.append(f"{free} {aim}")
    return entries


@functools.cache
def actions_of(patch: str) -> tuple[Action, ...]:
    """Return the primary actions that games of a patch offer: built-in ones, heroes' abilities, active items.

    Raises ValueError when the registry lacks one.
    """
    everything = vocabulary()
    known = registry.load()
    return tuple(everything[i] for i in known.ids("action", action_entries(patch, known.names["action"])))


def _rows(spec: list[tuple[str, int, Array]]) -> tuple[tuple[Field, ...], dict[str, int]]:
    used: dict[str, int] = {}
    fields = []
    for name, count, array in spec:
        fields.append(Field(name, count, array, used.get(array, 0)))
        used[array] = used.get(array, 0) + count
    return tuple(fields), used


class Layout:
    """Shapes, fields and ids of a game's observations and actions.

    Attributes: ``heroes`` H per team; ``units`` U unit slots; ``shared``, ``private``, ``shared_ids``,
    ``private_ids`` array widths S, P, SI, PI; ``blocks`` by name; ``groups`` of unit slots; ``actions`` by id, of all
    patches, so that games of several patches share a layout; ``omitted`` fields; ``hash`` 16 hex digits.
    """

    def __init__(self, game: GameConfig) -> None:
        o = game.observation
        h = game.heroes_per_team
        self.heroes = h
        self.observation = o
        self.actions = vocabulary()
        counts = [("allied_heroes", h), ("enemy_heroes", h),
                  ("allied_creeps", o.allied_creeps), ("enemy_creeps", o.allied_creeps),
                  ("neutral_creeps", o.neutral_creeps),
                  ("allied_buildings", o.buildings), ("enemy_buildings", o.buildings),
                  ("allied_wards", o.wards), ("enemy_wards", o.wards),
                  ("allied_courier", o.couriers), ("enemy_courier", o.couriers)]
        groups, start = {}, 0
        for name, count in counts:
            groups[name] = UnitGroup(name, start, count)
            start += count
        self.groups = groups
        self.units = start

        f: Array = "shared"
        p: Array = "private"
        specs: list[tuple[str, int, list[tuple[str, int, Array]]]] = [
            ("global", 1, [
                ("time", 1, f), ("day", 1, f), ("time_to_day_change", 1, f), ("time_to_creeps", 1, f),
                ("time_to_neutrals", 1, f), ("time_to_bounty", 1, f), ("time_to_runes", 1, f),
                ("enemy_courier_unseen", 1, f), ("roshan_spawn_min", 1, f), ("roshan_spawn_max", 1, f),
                ("roshan_max_hp", 1, f), ("roshan_alive", 1, f), ("roshan_dead", 1, f), ("roshan_cheese", 1, f),
                ("roshan_refresher", 1, f), ("roshan_randomisation", 1, f), ("glyph_cooldown", 2, f),
                ("stock", 4, f)]),
            ("units", self.units, [
                ("position", 3, f), ("facing", 2, f), ("attacking", 1, f), ("since_attack", 1, f), ("max_hp", 1, f),
                ("hp_history", HISTORY, f), ("damage", 1, f), ("attack_speed", 1, f), ("physical_resistance", 1, f),
                ("glyphed", 1, f), ("glyph_timer", 1, f), ("move_speed", 1, f), ("mine", 1, f), ("neutral", 1, f),
                ("animation_time", 1, f), ("ranged_creep_eta", 1, f), ("tower_eta", 1, f),
                ("melee_creeps_attacking", 1, f), ("shrine_cooldown", 1, f),
                ("vector", 3, p), ("i_attack_it", 1, p), ("it_attacks_me", 1, p), ("projectile_eta", 1, p),
                ("unit", 1, "shared_ids"), ("animation", 1, "shared_ids")]),
            ("heroes", 2 * h, [
                ("alive", 1, f), ("deaths", 1, f), ("in_sight", 1, f), ("since_seen", 1, f), ("teleporting", 1, f),
                ("teleport_target", 2, f), ("teleport_time", 1, f), ("respawn_time", 1, f), ("gold", 1, f),
                ("level", 1, f), ("max_mana", 1, f), ("mana", 1, f), ("mana_regen", 1, f), ("hp_regen", 1, f),
                ("magic_resistance", 1, f), ("attributes", 3, f), ("invisible", 1, f), ("using_ability", 1, f),
                ("in_line", 4, p)]),
            ("allied_heroes", h, [
                ("purchase_settings", 7, f), ("buyback", 3, f), ("empty_slots", 2, f), ("lanes", 3, f),
                ("passability", o.passability**2, f), ("build", 1, "shared_ids"), ("next_item", 1, "shared_ids")]),
            ("hero_modifiers", 2 * h * o.hero_modifiers, [
                ("remaining", 1, f), ("stacks", 1, f), ("modifier", 1, "shared_ids")]),
            ("unit_modifiers", (self.units - 2 * h) * o.unit_modifiers, [
                ("remaining", 1, f), ("stacks", 1, f), ("modifier", 1, "shared_ids")]),
            ("abilities", 2 * h * HERO_ABILITIES, [
                ("cooldown", 1, f), ("in_use", 1, f), ("castable", 1, f), ("levels", 4, f),
                ("ability", 1, "shared_ids")]),
            ("items", 2 * h * HERO_ITEMS, [
                ("location", 3, f), ("charges", 1, f), ("on_cooldown", 1, f), ("cooldown", 1, f), ("disabled", 1, f),
                ("enable_time", 1, f), ("toggled", 1, f), ("treads", 4, f), ("item", 1, "shared_ids")]),
            ("pickups", o.pickups, [
                ("status", 3, f), ("location", 2, f), ("distance", 2 * h, f), ("pickup", 1, "shared_ids")]),
            ("minimap", o.minimap**2, [
                ("visible", 1, f), ("creeps", 2, f), ("wards", 2, f), ("enemy_heroes", 1, f), ("cell", 3, f)]),
            ("nearby_map", o.nearby_map**2, [
                ("elevation", 1, p), ("passable", 1, p), ("creeps", 2, p), ("area", 2, p),
                ("area_effect", 2, "private_ids")]),
            # The two embeddings of the paper's block are made by the model from the ids; they do not travel.
            ("previous_action", 1, [
                ("offsets", 6 * OFFSETS, p), ("target_embedding", PAPER_EMBEDDING, "model"),
                ("action_embedding", PAPER_EMBEDDING, "model"),
                ("action", 1, "private_ids"), ("target_slot", 1, "private_ids")]),
        ]
        self.omitted = omitted_fields(
            left_out(o.omit, o.generation), {name: [n for n, _, _ in spec] for name, _, spec in specs},
            {name: [n for n, _, array in spec if array in (f, p)] for name, _, spec in specs})
        self.blocks: dict[str, Block] = {}
        total: dict[str, int] = {"shared": 0, "private": 0, "shared_ids": 0, "private_ids": 0}
        for name, instances, spec in specs:
            if name in WHOLE_BLOCKS and name in o.omit:
                instances = 0
            fields, stride = _rows([field for field in spec if f"{name}.{field[0]}" not in self.omitted])
            offset = {array: total.get(array, 0) for array in stride}
            for array, width in stride.items():
                total[array] = total.get(array, 0) + width * instances
            self.blocks[name] = Block(name, instances, fields, offset, stride)
        self.shared, self.private = total["shared"], total["private"]
        self.shared_ids, self.private_ids = total["shared_ids"], total["private_ids"]
        self.hash = hashlib.sha256(json.dumps(self.describe(), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def paper_values(self) -> tuple[int, int]:
        """Number of continuous and categorical values that a hero sees, counted as in the paper: (14554, 1200) at its
        slots.

        The ids of the previous action are not counted: the paper shows them as two embeddings.
        """
        model = sum(f.count for f in self.blocks["previous_action"].fields if f.array == "model")
        return self.shared + self.private + model, self.shared_ids + self.private_ids - 2

    def describe(self) -> dict[str, Any]:
        """Return everything that defines the layout as JSON values, the input of ``hash``.

        The meanings of ids are excluded: the registry only grows, and a run continues under a release that knows more.
        """
        return {
            "heroes": self.heroes, "mirror_dire": self.observation.mirror_dire,
            "groups": [list(g) for g in self.groups.values()],
            "blocks": [[b.name, b.instances, [list(f) for f in b.fields]] for b in self.blocks.values()],
        }

    def array_specs(self) -> dict[str, tuple[tuple[int, ...], npt.DTypeLike]]:
        """Return shape and dtype of each array of a team-step, in wire order."""
        h = self.heroes
        return {
            "shared": ((self.shared,), np.float16), "private": ((h, self.private), np.float16),
            "shared_ids": ((self.shared_ids,), np.uint16), "private_ids": ((h, self.private_ids), np.uint16),
            "available": ((h, MAX_AVAILABLE), np.uint16),
            "target_mask": ((h, len(MaskClass), self.units), np.uint8),
        }

    def allocate(self, *lead: int) -> dict[str, npt.NDArray[Any]]:
        """Return zeroed arrays of a team-step with leading dimensions ``lead``."""
        return {name: np.zeros((*lead, *shape), dtype) for name, (shape, dtype) in self.array_specs().items()}


def action_parts_used(target: TargetType) -> tuple[ActionPart, ...]:
    """Return the parameters that an action of this target type reads; its log-probability includes only these heads."""
    used = [ActionPart.SLOT, ActionPart.DELAY]
    if target in (TargetType.UNIT, TargetType.UNIT_OFFSET):
        used.append(ActionPart.UNIT)
    if target is TargetType.TELEPORT:
        used.append(ActionPart.TELEPORT)
    if target not in (TargetType.NONE, TargetType.UNIT):
        used += [ActionPart.OFFSET_X, ActionPart.OFFSET_Y]
    return tuple(used)

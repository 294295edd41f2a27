"""Numeric action formats with masks: three encodings of the same actions.

Each format defines for a hero how many choices its parts have (``parts``), which of them are valid now (``mask``), and
which command a choice stands for (``orders``, int16 [..., 6] of ``dota.spaces.ActionPart``):

- ``native``: slot in ``available``, delay, unit slot, teleport slot, offset x, offset y. The meaning of a slot changes
  every step, and the slot determines which units are valid: for models that read ``available`` and ``target_mask``.
- ``factored``: verb, a unit slot for each class of target (attack, enemy, ally, teleport), offset x, offset y, delay. A
  verb has the same meaning at every step. The masks are independent: any mix of valid choices is valid.
- ``discrete``: one number for an action together with its target, for any trainer that masks a categorical choice.
  Offsets have 8 directions at half and full length; the delay is 0.

An invalid choice does nothing: the hero continues its current command.
"""

import functools
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig
from dota.spaces import (
    DATA,
    MAX_AVAILABLE,
    NOOP,
    OFFSETS,
    Action,
    ActionPart,
    Layout,
    MaskClass,
    TargetType,
    action_parts_used,
    actions_of,
)

Array = npt.NDArray[Any]
Form = Literal["native", "factored", "discrete"]
FORMS: tuple[str, ...] = get_args(Form)
DELAYS = 4
MIDDLE = OFFSETS // 2
# Offsets of the discrete form: nowhere, then eight directions at half and at full length.
AIMS = ((MIDDLE, MIDDLE), *((MIDDLE + r * x, MIDDLE + r * y) for r in (MIDDLE // 2, MIDDLE)
                            for x, y in ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))))
# Prefix of the unit slot groups that hold the targets of each class.
_GROUPS = {MaskClass.ATTACK: "", MaskClass.ENEMY: "", MaskClass.ALLY: "allied_", MaskClass.TELEPORT: "allied_buildings"}
# Items of no build that heroes get all the same: the buyer keeps them in stock, or Roshan drops them.
_ALWAYS = ("item_tango", "item_tango_single", "item_flask", "item_clarity", "item_tpscroll", "item_ward_observer",
           "item_cheese", "item_refresher_shard")


@functools.cache
def _data(patch: str, name: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((DATA / f"dota-{patch}" / f"{name}.json").read_text(encoding="utf-8"))[name]
    return values


def _with_parts(names: Iterable[str], items: dict[str, Any]) -> set[str]:
    """Return the items and all of their components."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found and name in items:
            found.add(name)
            left += [part for needs in items[name].get("recipe", {}).get("needs", []) for part in needs]
    return found


def actions_for(config: GameConfig) -> tuple[Action, ...]:
    """Return the actions that heroes of the configuration's pool can get, by id: built-in ones, the pool's abilities,
    and items of its builds. Other items that a game may give a hero (dropped by a dead one) cannot be chosen."""
    heroes = _data(config.patch, "heroes")
    items, abilities = _data(config.patch, "items"), _data(config.patch, "abilities")
    pool = {f"npc_dota_hero_{hero}" for hero in config.hero_pool}
    builds: list[str] = list(_ALWAYS)
    for hero in pool:
        build = heroes[hero]["item_build"]
        builds += [*build["start"], *build["order"], *heroes[hero].get("default_bot_items", [])]
    known = _with_parts(builds, items)
    left_out = set(config.scripted_actions) | ({"buyback"} if not config.buyback else set())
    return tuple(sorted(
        (a for a in actions_of(config.patch) if (a.casts in known or abilities.get(a.casts, {}).get("owner") in pool
                                                 or (not a.casts and a.name not in left_out and a.id >= NOOP))),
        key=lambda a: a.id))


class ActionInputs(NamedTuple):
    """Arrays that describe a hero's valid actions: available ids [..., 30] and target masks [..., 4, U]."""

    available: Array
    target_mask: Array


class Choices(ABC):
    """Format of a hero's actions. ``parts``: number of choices of each part; ``names``: the parts' names."""

    parts: tuple[int, ...]
    names: tuple[str, ...]

    def __init__(self, config: GameConfig, layout: Layout) -> None:
        self.layout = layout
        self.actions = actions_for(config)

    @property
    def width(self) -> int:
        """Length of a hero's mask: the choices of all parts."""
        return sum(self.parts)

    @abstractmethod
    def mask(self, inputs: ActionInputs) -> npt.NDArray[np.int8]:
        """Return int8 [..., width], part after part: 1 for a valid choice. Every part has at least one valid choice."""

    @abstractmethod
    def orders(self, chosen: Array, inputs: ActionInputs) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]:
        """Convert choices [..., parts] to commands int16 [..., 6], with bool [...] for whether each is valid."""

    def _available_mask(self, inputs: ActionInputs) -> Array:
        """Return bool [..., ids]: available actions by id."""
        lead = inputs.available.shape[:-1]
        out = np.zeros((*lead, len(self.layout.actions)), np.bool_)
        np.put_along_axis(out, inputs.available.astype(np.int64), True, -1)
        out[..., 0] = False
        return out

    def _targets(self, inputs: ActionInputs) -> Array:
        """Return bool [..., 4 * U]: valid targets by class. A class without targets has its first slot set, which
        nothing reads."""
        valid = inputs.target_mask != 0
        valid[..., 0] |= ~valid.any(-1)
        rows: Array = valid.reshape(*valid.shape[:-2], -1)
        return rows

    def _slot(self, action: Array, inputs: ActionInputs) -> tuple[Array, Array]:
        """Return the slots of action ids in ``available``, 0 (noop) for unavailable ones, and whether each is
        available."""
        found = inputs.available == action[..., None]
        there = found.any(-1) & (action != 0)
        return np.where(there, found.argmax(-1), 0), there


class NativeChoices(Choices):
    """The game's own action format."""

    names = tuple(part.name.lower() for part in ActionPart)

    def __init__(self, config: GameConfig, layout: Layout) -> None:
        super().__init__(config, layout)
        self.parts = (MAX_AVAILABLE, DELAYS, layout.units, layout.units, OFFSETS, OFFSETS)
        self._uses = np.zeros((len(layout.actions), len(ActionPart)), np.bool_)
        for action in layout.actions:
            self._uses[action.id, list(action_parts_used(action.target))] = True
        self._class = np.array([a.mask for a in layout.actions])

    def mask(self, inputs: ActionInputs) -> npt.NDArray[np.int8]:
        lead = inputs.available.shape[:-1]
        targets = self._targets(inputs).reshape(*lead, len(MaskClass), -1)
        ones = np.ones((*lead, DELAYS + 2 * OFFSETS), np.bool_)
        return np.concatenate([inputs.available != 0, ones[..., :DELAYS], targets[..., :MaskClass.TELEPORT, :].any(-2),
                               targets[..., MaskClass.TELEPORT, :], ones[..., DELAYS:]], -1).astype(np.int8)

    def orders(self, chosen: Array, inputs: ActionInputs) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]:
        action = np.take_along_axis(inputs.available, chosen[..., :1].astype(np.int64), -1)[..., 0].astype(np.int64)
        uses, kind = self._uses[action], self._class[action]
        at = np.where(uses[..., ActionPart.TELEPORT], chosen[..., ActionPart.TELEPORT], chosen[..., ActionPart.UNIT])
        flat = inputs.target_mask.reshape(*action.shape, -1)
        valid = np.take_along_axis(flat, (kind * self.layout.units + at)[..., None].astype(np.int64), -1)[..., 0] != 0
        aims = uses[..., ActionPart.UNIT] | uses[..., ActionPart.TELEPORT]
        return chosen.astype(np.int16), (action != 0) & (valid | ~aims)


class FactoredChoices(Choices):
    """Action format of independent parts: a verb, a target of each class, an offset and a delay."""

    names = ("verb", "attack_target", "enemy_target", "ally_target", "teleport_target", "offset_x", "offset_y", "delay")
    assert len(MaskClass) == 4  # `names` has a target for each class

    def __init__(self, config: GameConfig, layout: Layout) -> None:
        super().__init__(config, layout)
        self.parts = (len(self.actions), *[layout.units] * len(MaskClass), OFFSETS, OFFSETS, DELAYS)
        self._ids = np.array([a.id for a in self.actions])
        self._class = np.array([a.mask for a in self.actions])
        self._aims = np.array([a.target in (TargetType.UNIT, TargetType.UNIT_OFFSET, TargetType.TELEPORT)
                               for a in self.actions])

    def mask(self, inputs: ActionInputs) -> npt.NDArray[np.int8]:
        rest = np.ones((*inputs.available.shape[:-1], 2 * OFFSETS + DELAYS), np.bool_)
        return np.concatenate([self._available_mask(inputs)[..., self._ids], self._targets(inputs), rest],
                              -1).astype(np.int8)

    def orders(self, chosen: Array, inputs: ActionInputs) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]:
        verb = chosen[..., 0]
        kind = self._class[verb]
        unit = np.take_along_axis(chosen[..., 1:5], kind[..., None], -1)[..., 0]
        slot, there = self._slot(self._ids[verb], inputs)
        flat = inputs.target_mask.reshape(*verb.shape, -1)
        valid = np.take_along_axis(flat, (kind * self.layout.units + unit)[..., None].astype(np.int64), -1)[..., 0] != 0
        allowed = there & (valid | ~self._aims[verb])
        out = np.stack([np.where(allowed, slot, 0), chosen[..., 7], unit, unit, chosen[..., 5], chosen[..., 6]], -1)
        return out.astype(np.int16), allowed


class TargetedAction(NamedTuple):
    """Action with its target, as one number of the discrete format."""

    action: int
    name: str
    unit: int  # -1 for none
    x: int
    y: int


class DiscreteChoices(Choices):
    """Action format of one number. ``entries`` lists the action and target of each number."""

    names = ("action",)

    def __init__(self, config: GameConfig, layout: Layout) -> None:
        super().__init__(config, layout)
        self.entries = tuple(self._list_actions())
        self.parts = (len(self.entries),)
        kind = {a.id: int(a.mask) for a in self.actions}
        self._ids = np.array([e.action for e in self.entries])
        self._aims = np.array([e.unit >= 0 for e in self.entries])
        self._target = np.array([kind[e.action] * layout.units + max(e.unit, 0) for e in self.entries])
        self._rest = np.array([(0, max(e.unit, 0), max(e.unit, 0), e.x, e.y) for e in self.entries], np.int16)

    def _list_actions(self) -> Iterable[TargetedAction]:
        for action in self.actions:
            if action.target is TargetType.NONE:
                yield TargetedAction(action.id, action.name, -1, MIDDLE, MIDDLE)
            elif action.target in (TargetType.POINT, TargetType.WARD):
                yield from (TargetedAction(action.id, action.name, -1, x, y) for x, y in AIMS)
            else:
                for name, start, count in self.layout.groups.values():
                    if name.startswith(_GROUPS[action.mask]):
                        yield from (TargetedAction(action.id, f"{action.name} {name}[{i}]", start + i, MIDDLE, MIDDLE)
                                    for i in range(count))

    def mask(self, inputs: ActionInputs) -> npt.NDArray[np.int8]:
        flat = inputs.target_mask.reshape(*inputs.available.shape[:-1], -1) != 0
        allowed = self._available_mask(inputs)[..., self._ids] & (flat[..., self._target] | ~self._aims)
        return np.asarray(allowed, np.int8)

    def orders(self, chosen: Array, inputs: ActionInputs) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]:
        number = chosen[..., 0]
        slot, there = self._slot(self._ids[number], inputs)
        flat = inputs.target_mask.reshape(*number.shape, -1)
        valid = np.take_along_axis(flat, self._target[number][..., None], -1)[..., 0] != 0
        allowed = there & (valid | ~self._aims[number])
        out = np.concatenate([np.where(allowed, slot, 0)[..., None], self._rest[number]], -1)
        return out.astype(np.int16), allowed


def choices_of(form: str, config: GameConfig, layout: Layout) -> Choices:
    """Return a hero's actions in a format. Raises ValueError for an unknown format."""
    kinds: dict[str, type[Choices]] = {"native": NativeChoices, "factored": FactoredChoices,
                                       "discrete": DiscreteChoices}
    if form not in kinds:
        raise ValueError(f"actions is one of {', '.join(map(repr, FORMS))}, not {form!r}")
    return kinds[form](config, layout)

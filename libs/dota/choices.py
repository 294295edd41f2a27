"""What an agent chooses from, as numbers with masks: three forms of the same actions.

Each form says for a hero how many choices its parts have (``parts``), which of them are allowed now (``mask``), and
what choices mean to the game (``orders``, int16 [..., 6] of ``dota.spaces.ActionPart``):

- ``native``: slot in ``available``, delay, unit slot, teleport slot, offset x, offset y. What a slot means changes from
  step to step and which units are valid depends on the slot: for models that read ``available`` and ``target_mask``.
- ``factored``: verb, a unit slot for each class of target (attack, enemy, ally, teleport), offset x, offset y, delay. A
  verb means the same at every step, and the masks are independent: any mix of allowed choices is allowed.
- ``discrete``: one number for an action together with its target, for any trainer that masks a categorical choice.
  Offsets are in 8 directions at half and full length, the delay is 0.

What is not allowed does nothing: the hero goes on with what it does.
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
# Unit slots that a class of target can be in.
_GROUPS = {MaskClass.ATTACK: "", MaskClass.ENEMY: "", MaskClass.ALLY: "allied_", MaskClass.TELEPORT: "allied_buildings"}
_ALWAYS = ("item_tango", "item_tango_single", "item_flask", "item_clarity", "item_tpscroll", "item_ward_observer",
           "item_cheese", "item_refresher_shard")


@functools.cache
def _data(patch: str, name: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((DATA / f"dota-{patch}" / f"{name}.json").read_text())[name]
    return values


def _with_parts(names: Iterable[str], items: dict[str, Any]) -> set[str]:
    """Items, and all that they are assembled of."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found and name in items:
            found.add(name)
            left += [part for needs in items[name].get("recipe", {}).get("needs", []) for part in needs]
    return found


def actions_for(config: GameConfig) -> tuple[Action, ...]:
    """The actions that a hero of the configuration's pool can come to have, by id: the built-in ones, the pool's
    abilities, and items of its builds. What else a game gives a hero (an item of a fallen one) cannot be chosen."""
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


class Seen(NamedTuple):
    """The two arrays that say what can be done, [..., 30] and [..., 4, U] for each hero."""

    available: Array
    target_mask: Array


class Choices(ABC):
    """One form of the actions of a hero. ``parts``: how many choices each part has; ``names``: the parts' names."""

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
    def mask(self, seen: Seen) -> npt.NDArray[np.int8]:
        """int8 [..., width]: 1 for what is allowed now, part after part. Every part allows something."""

    @abstractmethod
    def orders(self, chosen: Array, seen: Seen) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]:
        """Of choices [..., parts]: what the game is told, int16 [..., 6], and whether that is allowed, bool [...]."""

    def _offered(self, seen: Seen) -> Array:
        """bool [..., ids]: which actions are offered, by id."""
        lead = seen.available.shape[:-1]
        out = np.zeros((*lead, len(self.layout.actions)), np.bool_)
        np.put_along_axis(out, seen.available.astype(np.int64), True, -1)
        out[..., 0] = False
        return out

    def _targets(self, seen: Seen) -> Array:
        """bool [..., 4 * U]: valid targets by class; where a class has none its first slot, which nothing reads."""
        valid = seen.target_mask != 0
        valid[..., 0] |= ~valid.any(-1)
        rows: Array = valid.reshape(*valid.shape[:-2], -1)
        return rows

    def _slot(self, action: Array, seen: Seen) -> tuple[Array, Array]:
        """Slots of action ids in ``available``, 0 (noop) for those that are not offered, and whether they are."""
        found = seen.available == action[..., None]
        there = found.any(-1) & (action != 0)
        return np.where(there, found.argmax(-1), 0), there


class Native(Choices):
    """The game's own form."""

    names = tuple(part.name.lower() for part in ActionPart)

    def __init__(self, config: GameConfig, layout: Layout) -> None:
        super().__init__(config, layout)
        self.parts = (MAX_AVAILABLE, DELAYS, layout.units, layout.units, OFFSETS, OFFSETS)
        self._uses = np.zeros((len(layout.actions), len(ActionPart)), np.bool_)
        for action in layout.actions:
            self._uses[action.id, list(action_parts_used(action.target))] = True
        self._class = np.array([a.mask for a in layout.actions])

    def mask(self, seen: Seen) -> npt.NDArray[np.int8]:
        lead = seen.available.shape[:-1]
        targets = self._targets(seen).reshape(*lead, len(MaskClass), -1)
        ones = np.ones((*lead, DELAYS + 2 * OFFSETS), np.bool_)
        return np.concatenate([seen.available != 0, ones[..., :DELAYS], targets[..., :MaskClass.TELEPORT, :].any(-2),
                               targets[..., MaskClass.TELEPORT, :], ones[..., DELAYS:]], -1).astype(np.int8)

    def orders(self, chosen: Array, seen: Seen) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]:
        action = np.take_along_axis(seen.available, chosen[..., :1].astype(np.int64), -1)[..., 0].astype(np.int64)
        uses, kind = self._uses[action], self._class[action]
        at = np.where(uses[..., ActionPart.TELEPORT], chosen[..., ActionPart.TELEPORT], chosen[..., ActionPart.UNIT])
        flat = seen.target_mask.reshape(*action.shape, -1)
        valid = np.take_along_axis(flat, (kind * self.layout.units + at)[..., None].astype(np.int64), -1)[..., 0] != 0
        aims = uses[..., ActionPart.UNIT] | uses[..., ActionPart.TELEPORT]
        return chosen.astype(np.int16), (action != 0) & (valid | ~aims)


class Factored(Choices):
    """A verb, a target of each class, an offset and a delay, which do not depend on each other."""

    names = ("verb", "attack_target", "enemy_target", "ally_target", "teleport_target", "offset_x", "offset_y", "delay")

    def __init__(self, config: GameConfig, layout: Layout) -> None:
        super().__init__(config, layout)
        self.parts = (len(self.actions), *[layout.units] * len(MaskClass), OFFSETS, OFFSETS, DELAYS)
        self._ids = np.array([a.id for a in self.actions])
        self._class = np.array([a.mask for a in self.actions])
        self._aims = np.array([a.target in (TargetType.UNIT, TargetType.UNIT_OFFSET, TargetType.TELEPORT)
                               for a in self.actions])

    def mask(self, seen: Seen) -> npt.NDArray[np.int8]:
        rest = np.ones((*seen.available.shape[:-1], 2 * OFFSETS + DELAYS), np.bool_)
        return np.concatenate([self._offered(seen)[..., self._ids], self._targets(seen), rest], -1).astype(np.int8)

    def orders(self, chosen: Array, seen: Seen) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]:
        verb = chosen[..., 0]
        kind = self._class[verb]
        unit = np.take_along_axis(chosen[..., 1:5], kind[..., None], -1)[..., 0]
        slot, there = self._slot(self._ids[verb], seen)
        flat = seen.target_mask.reshape(*verb.shape, -1)
        valid = np.take_along_axis(flat, (kind * self.layout.units + unit)[..., None].astype(np.int64), -1)[..., 0] != 0
        allowed = there & (valid | ~self._aims[verb])
        out = np.stack([np.where(allowed, slot, 0), chosen[..., 7], unit, unit, chosen[..., 5], chosen[..., 6]], -1)
        return out.astype(np.int16), allowed


class Entry(NamedTuple):
    """One number of the discrete form: an action with its target."""

    action: int
    name: str
    unit: int  # -1 for none
    x: int
    y: int


class Discrete(Choices):
    """A list of actions with their targets. ``entries`` says what each number means."""

    names = ("action",)

    def __init__(self, config: GameConfig, layout: Layout) -> None:
        super().__init__(config, layout)
        self.entries = tuple(self._entries())
        self.parts = (len(self.entries),)
        kind = {a.id: int(a.mask) for a in self.actions}
        self._ids = np.array([e.action for e in self.entries])
        self._aims = np.array([e.unit >= 0 for e in self.entries])
        self._target = np.array([kind[e.action] * layout.units + max(e.unit, 0) for e in self.entries])
        self._rest = np.array([(0, max(e.unit, 0), max(e.unit, 0), e.x, e.y) for e in self.entries], np.int16)

    def _entries(self) -> Iterable[Entry]:
        for action in self.actions:
            if action.target is TargetType.NONE:
                yield Entry(action.id, action.name, -1, MIDDLE, MIDDLE)
            elif action.target in (TargetType.POINT, TargetType.WARD):
                yield from (Entry(action.id, action.name, -1, x, y) for x, y in AIMS)
            else:
                for name, start, count in self.layout.groups.values():
                    if name.startswith(_GROUPS[action.mask]):
                        yield from (Entry(action.id, f"{action.name} {name}[{i}]", start + i, MIDDLE, MIDDLE)
                                    for i in range(count))

    def mask(self, seen: Seen) -> npt.NDArray[np.int8]:
        flat = seen.target_mask.reshape(*seen.available.shape[:-1], -1) != 0
        allowed = self._offered(seen)[..., self._ids] & (flat[..., self._target] | ~self._aims)
        return np.asarray(allowed, np.int8)

    def orders(self, chosen: Array, seen: Seen) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]:
        number = chosen[..., 0]
        slot, there = self._slot(self._ids[number], seen)
        flat = seen.target_mask.reshape(*number.shape, -1)
        valid = np.take_along_axis(flat, self._target[number][..., None], -1)[..., 0] != 0
        allowed = there & (valid | ~self._aims[number])
        out = np.concatenate([np.where(allowed, slot, 0)[..., None], self._rest[number]], -1)
        return out.astype(np.int16), allowed


def choices_of(form: str, config: GameConfig, layout: Layout) -> Choices:
    """The actions of a hero in a form. Raises ValueError for a form that there is not."""
    kinds: dict[str, type[Choices]] = {"native": Native, "factored": Factored, "discrete": Discrete}
    if form not in kinds:
        raise ValueError(f"actions is one of {', '.join(map(repr, FORMS))}, not {form!r}")
    return kinds[form](config, layout)

"""Translation of a policy's choices into orders of a real client's bots.

What an action does is that of the simulator (docs/observations.md, Actions; core/rules/commands.cpp), as far as the
bots' API has it. Today's client has no shrines (Passerby/dota2-env, client 6933 of September 2026): a world state
without a ready shrine makes no order of that choice.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dota.client_state import ClientCommand, client_ids
from dota.config import GameConfig
from dota.spaces import ATTACK, BUYBACK, FOLLOW, GLYPH, MOVE, NOOP, PICKUP, SHRINE, Action, Layout, TargetType
from dota.tables import load_tables
from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState

TEAM_PLAYERS = 5
INVENTORY, TELEPORT_SLOT = 6, 15
RUNE_AVAILABLE = 1
RUNE_REACH = 600.0
_REPEAT_SECONDS = 1.0  # after which an order that is still wanted is given again

Unit = CMsgBotWorldState.Unit
Point = tuple[float, float]


@functools.cache
def cast_numbers(patch: str) -> dict[str, int]:
    """Return Valve's numbers of a patch's abilities and items by name."""
    names = load_tables(patch).abilities
    return {names[index]: number for number, index in client_ids(patch)["ability"].items()}


@dataclass
class CommandOrders:
    """Orders of one team. An order that a hero follows already is not given again: it would restart the attack."""

    config: GameConfig
    _given: dict[int, tuple[tuple[Any, ...], float]] = field(default_factory=dict)  # last order and time, by player

    def __post_init__(self) -> None:
        self._actions = Layout(self.config).actions
        self._numbers = cast_numbers(self.config.patch)

    def orders(self, state: CMsgBotWorldState, commands: Sequence[ClientCommand]) -> list[dict[str, Any]]:
        """Return the orders of the heroes' choices, which answer ``state``."""
        units = {unit.handle: unit for unit in state.units}
        heroes = {unit.player_id: unit for unit in state.units if unit.unit_type == CMsgBotWorldState.HERO and
                  unit.team_id == state.team_id and not unit.is_illusion}
        first = (state.team_id - 2) * TEAM_PLAYERS
        found = []
        for player, command in enumerate(commands, first):
            order = self._order(state, units, heroes.get(player), command)
            if order is None:
                continue
            key = (command.action, command.target, command.teleport, order["actionType"])
            repeats = order["actionType"] in _CONTINUED and self._given.get(player, ((), -math.inf))[0] == key
            if repeats and state.dota_time - self._given[player][1] < _REPEAT_SECONDS:
                continue
            self._given[player] = key, state.dota_time
            found.append({**order, "player": player, "actionDelay": command.delay})
        return found

    def _order(self, state: CMsgBotWorldState, units: dict[int, Unit], hero: Unit | None,
               command: ClientCommand) -> dict[str, Any] | None:
        """Return the order of one hero's choice, None for one that changes nothing."""
        if command.action == BUYBACK:
            return {"actionType": "DOTA_UNIT_ORDER_BUYBACK"}
        if hero is None or command.action in (0, NOOP):
            return None
        step = self.config.offset_cell
        dx, dy = command.dx * step, command.dy * step
        target = units.get(command.target)
        match command.action:
            case action if action == MOVE:
                return _move(_offset_from(hero, dx, dy)) if dx or dy else {"actionType": "DOTA_UNIT_ORDER_STOP"}
            case action if action == ATTACK:
                return None if target is None else {"actionType": "DOTA_UNIT_ORDER_ATTACK_TARGET",
                                                    "attackTarget": {"target": target.handle, "once": False}}
            case action if action == FOLLOW:
                if target is None:
                    return None
                return _move(_offset_from(target, dx, dy)) if dx or dy else {
                    "actionType": "DOTA_UNIT_ORDER_MOVE_TO_TARGET", "moveToTarget": {"target": target.handle}}
            case action if action == GLYPH:
                return {"actionType": "DOTA_UNIT_ORDER_GLYPH"}
            case action if action == SHRINE:
                shrine = _nearest_shrine(state, hero)
                return None if shrine is None else {"actionType": "ACTION_USE_SHRINE", "useShrine": {"shrine": shrine}}
            case action if action == PICKUP:
                rune = _nearest_rune(state, hero)
                return None if rune is None else {"actionType": "DOTA_UNIT_ORDER_PICKUP_RUNE",
                                                  "pickupRune": {"rune": rune}}
        return self._cast(self._actions[command.action], units, hero, command, (dx, dy))

    def _cast(self, action: Action, units: dict[int, Unit], hero: Unit, command: ClientCommand,
              offset: Point) -> dict[str, Any] | None:
        """Return the order that casts an ability or uses an item."""
        slot = self._slot(hero, action.casts)
        if slot is None:
            return None
        target = units.get(command.teleport if action.target is TargetType.TELEPORT else command.target)
        match action.target:
            case TargetType.NONE:
                return {"actionType": "DOTA_UNIT_ORDER_CAST_NO_TARGET", "cast": {"abilitySlot": slot}}
            case TargetType.UNIT:
                return None if target is None else {"actionType": "DOTA_UNIT_ORDER_CAST_TARGET",
                                                    "castTarget": {"abilitySlot": slot, "target": target.handle}}
            case TargetType.POINT | TargetType.WARD:
                if offset == (0, 0) and action.target is TargetType.POINT:  # where the hero looks
                    angle = math.radians(hero.facing)
                    offset = math.cos(angle), math.sin(angle)
                at = _offset_from(hero, *offset)
            case _:
                if target is None:
                    return None
                at = _offset_from(target, *offset)
        return {"actionType": "DOTA_UNIT_ORDER_CAST_POSITION", "castLocation": {"abilitySlot": slot, **_location(at)}}

    def _slot(self, hero: Unit, name: str) -> int | None:
        """Return the slot of an ability, or -1 - slot of an item that can be used; None while it is being cast."""
        number = self._numbers.get(name)
        for ability in hero.abilities:
            if ability.ability_id == number:
                return None if ability.is_in_ability_phase or ability.is_channeling else ability.slot
        for item in hero.items:
            if item.ability_id == number and (item.slot < INVENTORY or item.slot == TELEPORT_SLOT):
                return None if item.is_in_ability_phase or item.is_channeling else -1 - item.slot
        return None


_CONTINUED = frozenset({"DOTA_UNIT_ORDER_ATTACK_TARGET", "DOTA_UNIT_ORDER_MOVE_TO_TARGET",
                        "DOTA_UNIT_ORDER_CAST_TARGET", "DOTA_UNIT_ORDER_CAST_NO_TARGET",
                        "DOTA_UNIT_ORDER_PICKUP_RUNE", "ACTION_USE_SHRINE"})


def _offset_from(unit: Unit, dx: float, dy: float) -> Point:
    return unit.location.x + dx, unit.location.y + dy


def _location(at: Point) -> dict[str, Any]:
    return {"location": {"x": round(at[0], 2), "y": round(at[1], 2), "z": 0.0}}


def _move(at: Point) -> dict[str, Any]:
    return {"actionType": "DOTA_UNIT_ORDER_MOVE_TO_POSITION", "moveToLocation": _location(at)}


def _nearest_rune(state: CMsgBotWorldState, hero: Unit) -> int | None:
    """Return the number of the nearest known rune that the hero may walk to."""
    near = [(math.dist((rune.location.x, rune.location.y), _offset_from(hero, 0, 0)), number)
            for number, rune in enumerate(state.rune_infos) if rune.status == RUNE_AVAILABLE]
    distance, number = min(near, default=(math.inf, 0))
    return number if distance <= RUNE_REACH else None


def _nearest_shrine(state: CMsgBotWorldState, hero: Unit) -> int | None:
    """Return the handle of the nearest own shrine that is ready, at any distance: the order walks there."""
    near = [(math.dist(_offset_from(unit, 0, 0), _offset_from(hero, 0, 0)), unit.handle) for unit in state.units
            if unit.unit_type == CMsgBotWorldState.SHRINE and unit.team_id == state.team_id and unit.is_alive
            and unit.shrine_cooldown <= 0]
    return min(near)[1] if near else None

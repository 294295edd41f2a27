"""Bot API of one team over the simulator: what the Lua bots call becomes people's orders."""

import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from dota.play import InteractiveGame, Order
from dota.valve_ids import valve_ids
from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from tests.real_client.bot_vm import At, BotVm, UnitHandle

TEAM_PLAYERS = 5
MOVES = ("Action_Move", "Action_Attack")


class FakeTeam:
    """Team of the simulator's game. ``team``: 2 Radiant, 3 Dire. ``calls``: file of the calls, one JSON a line."""

    def __init__(self, game: InteractiveGame, team: int, vscripts: Path, log: Callable[[str], None],
                 calls: IO[str]) -> None:
        self.team = team
        self._game = game
        self._log = log
        self._calls = calls
        self._handles: dict[int, int] = {}  # of heroes, by player
        self._players: dict[int, int] = {}
        self._alive: set[int] = set()
        self.moved: set[int] = set()  # players that moved since they were hidden
        self.waits = 0
        self.vm = BotVm(vscripts, self)
        self._bots: dict[int, bool] = {}
        self._ids = valve_ids(game.config.patch)
        self._state = CMsgBotWorldState()

    @property
    def controls(self) -> bool:
        """Return whether Lua bots play the heroes."""
        return any(self._bots.values())

    def see(self, state: CMsgBotWorldState) -> None:
        """Take the team's present world state; load the bots of its heroes at the first."""
        self._state = state
        self._alive = {p.player_id for p in state.players if p.is_alive}
        for unit in state.units:
            if unit.unit_type == CMsgBotWorldState.HERO and unit.team_id == self.team and not unit.is_illusion:
                self._handles[unit.player_id] = unit.handle
                self._players[unit.handle] = unit.player_id
        for player, handle in sorted(self._handles.items()):
            if player not in self._bots:
                self._bots[player] = self.vm.add_bot(handle)

    def take_heroes(self) -> None:
        """Let the Lua bots control the heroes. The simulator's scripts buy and learn if the client's own ones would."""
        scripted = "ItemPurchaseThink" not in self.vm.load("item_purchase_generic")
        assert scripted == ("AbilityLevelUpThink" not in self.vm.load("ability_item_usage_generic"))
        for player, controlled in self._bots.items():
            if controlled:
                self._game.take(player, True, scripted=scripted)

    def think(self) -> None:
        """Let every bot think."""
        for player in sorted(self._bots):
            self.vm.think(self._handles[player])

    def dota_time(self) -> float:
        return float(self._game.time)

    def exists(self, handle: int) -> bool:
        return self._game.unit_of_bot_handle(handle) is not None

    def log(self, text: str) -> None:
        self._log(f"[VScript] {text}")

    def loading(self) -> None:
        self.waits += 1
        if self.waits % 50 == 0:  # a bot that waits shall not take a whole core from the tests
            time.sleep(0.001)

    def couriers(self) -> Sequence[int]:
        return []

    def call(self, handle: int, method: str, *arguments: Any) -> Any:
        player = self._players.get(handle)
        match method:
            case "GetPlayerID":
                return player
            case "GetUnitName":
                return "npc_dota_hero"
            case "IsAlive":
                return player is None or player in self._alive
            case "GetAbilityInSlot":
                return f"ability{int(arguments[0])}#{int(arguments[0])}"
            case "GetItemInSlot":
                return self._item(handle, int(arguments[0]))
            case "GetNearbyTrees":
                return self._nearest_tree(handle, arguments[0])
        assert player is not None, f"{method} of unit {handle}, not a hero of the team"
        order = self._order(method, arguments)
        verdict = self._game.order(player, order) if order is not None else None
        if method.startswith(MOVES):
            self.moved.add(player)
        self._calls.write(json.dumps({"time": round(self.dota_time(), 3), "player": player, "method": method,
                                      "arguments": arguments, "refused": verdict.reason if verdict else "none"}) + "\n")
        return -1 if method == "ActionImmediate_PurchaseItem" else None


    def _unit(self, handle: int) -> CMsgBotWorldState.Unit:
        return next(unit for unit in self._state.units if unit.handle == handle)

    def _item(self, handle: int, slot: int) -> str | None:
        """Return the item in a slot, as its name and its slot."""
        number = next((item.ability_id for item in self._unit(handle).items if item.slot == slot), None)
        return None if number is None else f"{self._ids.items.get(number, 'item')}#{slot}"

    def _nearest_tree(self, handle: int, radius: float) -> int | None:
        at = self._unit(handle).location
        distance, tree = min((math.dist((at.x, at.y), place), i) for i, place in enumerate(self._ids.trees))
        return tree if distance <= radius else None

    def _order(self, method: str, given: Sequence[Any]) -> Order | None:
        """Return the person's order of a call, or None for one that the simulator lacks."""
        kind, slot, rest = "", -1, list(given)
        if rest and isinstance(rest[0], str) and "#" in rest[0]:
            name, number = rest.pop(0).split("#")
            kind, slot = "cast" if name.startswith("ability") else "use", int(number)
        at = next(((place.x, place.y) for place in rest if isinstance(place, At)), None)
        target = next((self._game.unit_of_bot_handle(unit.handle) or (-1, 0) for unit in rest
                       if isinstance(unit, UnitHandle)), None)
        match method:
            case "Action_ClearActions":
                return Order("stop")
            case "Action_MoveToLocation" | "Action_MoveDirectly":
                return Order("move", at=at)
            case "Action_MoveToUnit":
                return Order("follow", target=target)
            case "Action_AttackMove":
                return Order("attack_move", at=at)
            case "Action_AttackUnit":
                return Order("attack", target=target, once=bool(given[1]))
            case "Action_UseAbility" | "Action_UseAbilityOnEntity" | "Action_UseAbilityOnLocation":
                return Order(kind, target=target, at=at, slot=slot)
            case "Action_UseAbilityOnTree":
                return Order(kind, at=self._ids.trees[int(rest[0])], slot=slot)
            case "Action_PickUpRune":
                place = self._state.rune_infos[int(given[0])].location
                return Order("pickup", at=(place.x, place.y))
            case "Action_UseShrine":
                return Order("shrine")  # the simulator's order takes the nearest that is ready
            case "ToggleAutoCast":
                return Order("toggle", slot=slot)
            case "ActionImmediate_LevelAbility":
                slot = int(str(given[0]).removeprefix("ability"))
                return Order("level", slot=slot) if slot < 6 else Order("talent", slot=slot - 6)
            case "ActionImmediate_PurchaseItem":
                return Order("buy", item=str(given[0]))
            case "ActionImmediate_SwapItems":
                return Order("swap", slot=int(given[0]), to=int(given[1]))
            case "ActionImmediate_Buyback":
                return Order("buyback")
            case "ActionImmediate_Glyph":
                return Order("glyph")
        return None

"""Bot API that only records what the bots call."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from five.real_client.bot_folder import write_bots
from tests.real_client.bot_vm import BotVm

HEROES = ("npc_dota_hero_sniper", "npc_dota_hero_lion", "npc_dota_hero_lich", "npc_dota_hero_axe",
          "npc_dota_hero_viper")
FIRST = 10  # handle of player 0; the others follow
CREEP, COURIER = 77, 88
SLOTS = range(6)


class RecordingApi:
    """Radiant with five heroes, a creep and player 1's courier. ``calls`` has (method, arguments) by player."""

    team = 2

    def __init__(self) -> None:
        self.time = 0.0
        self.lines: list[str] = []
        self.calls: list[list[tuple[Any, ...]]] = [[] for _ in HEROES]
        self.dead: set[int] = set()
        self.loads = 0

    def dota_time(self) -> float:
        return self.time

    def exists(self, handle: int) -> bool:
        return handle in (CREEP, *range(FIRST, FIRST + len(HEROES)))

    def call(self, handle: int, method: str, *arguments: Any) -> Any:
        player = handle - FIRST
        match method:
            case "GetPlayerID":
                return 1 if handle == COURIER else player
            case "GetUnitName":
                return HEROES[player]
            case "IsAlive":
                return handle not in self.dead
            case "GetAbilityInSlot" | "GetItemInSlot":
                kind = "ability" if "Ability" in method else "item"
                return f"{kind}{arguments[0]:.0f}" if arguments[0] in SLOTS else None
        self.calls[player].append((method, *arguments))
        return -1 if method == "ActionImmediate_PurchaseItem" else None

    def log(self, text: str) -> None:
        self.lines.append(text)

    def loading(self) -> None:
        self.loads += 1

    def couriers(self) -> Sequence[int]:
        return [COURIER]


def start_bots(vscripts: Path, control: str = "agent", most_loads: int = 50) -> tuple[RecordingApi, BotVm]:
    """Write the bots' files below ``vscripts`` and load Radiant's five."""
    write_bots(vscripts / "bots", {2: control, 3: "builtin"}, {2: HEROES, 3: HEROES})
    api = RecordingApi()
    vm = BotVm(vscripts, api, most_loads)
    for player in range(len(HEROES)):
        vm.add_bot(FIRST + player)
    return api, vm

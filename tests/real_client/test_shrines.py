"""A policy's choice to use a shrine heals its hero: world state, order, action file, Lua bot and simulator."""

import io
import json
from pathlib import Path

from dota.client_state import ClientCommand
from dota.config import GameConfig
from dota.play import InteractiveGame
from dota.spaces import SHRINE
from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from five.real_client.action_files import ActionFile
from five.real_client.bot_folder import write_bots
from five.real_client.command_orders import CommandOrders
from tests.real_client.fake_team import FakeTeam

HEROES = tuple(f"npc_dota_hero_{name}" for name in ("sniper", "lion", "viper", "sven", "lich"))
GAME = GameConfig(mode="1v1_mid", heroes_per_team=1)
USE = ClientCommand(SHRINE, 0, 0, 0, 0, 0)


def test_policy_heals_at_shrine_of_fake_client(tmp_path: Path) -> None:
    write_bots(tmp_path / "bots", {2: "agent", 3: "builtin"}, {2: HEROES, 3: HEROES})
    game = InteractiveGame(GAME, 1, [["sniper"], ["sniper"]])
    calls = io.StringIO()
    team = FakeTeam(game, 2, tmp_path, lambda line: None, calls)

    def state() -> CMsgBotWorldState:
        return CMsgBotWorldState.FromString(game.world_state(0))

    def hero() -> CMsgBotWorldState.Unit:
        return next(unit for unit in state().units if unit.unit_type == CMsgBotWorldState.HERO and unit.team_id == 2)

    orders = CommandOrders(GAME)
    assert orders.orders(state(), [USE]) == []  # none is ready at the start
    while all(unit.shrine_cooldown > 0 or unit.team_id == 3
              for unit in state().units if unit.unit_type == CMsgBotWorldState.SHRINE):
        for _ in range(600):
            if game.frames_left == 0:
                game.begin()
            game.frame()
    team.see(state())
    team.take_heroes()
    shrine = next(unit for unit in state().units if unit.unit_type == CMsgBotWorldState.SHRINE and unit.team_id == 2)
    core, (slot, _) = game._vec._core, game.unit_of_bot_handle(hero().handle) or (-1, 0)
    core.place(0, slot, shrine.location.x + 250, shrine.location.y)
    core.set_hp(0, slot, 100.0)
    now = state()
    wanted = orders.orders(now, [USE])
    assert wanted[0]["useShrine"] == {"shrine": shrine.handle}
    ActionFile(tmp_path / "bots", 2).write(wanted, now.dota_time, now.dota_time + 60)
    for _ in range(60):
        team.think()
        if game.frames_left == 0:
            game.begin()
        game.frame()
    (call,) = [json.loads(line) for line in calls.getvalue().splitlines()]
    assert (call["method"], call["refused"]) == ("Action_UseShrine", "")
    assert hero().health > 250
    (order,) = orders.orders(state(), [USE])
    assert order["useShrine"]["shrine"] != shrine.handle  # the other one is ready

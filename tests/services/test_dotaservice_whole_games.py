"""Actions that need a longer game, and whole games of five a side."""

import math

import pytest

from five.protos.valve import dotaservice_pb2 as pb
from tests.dota.playing import place, unit
from tests.services.dotaservice_client import CONTROLLED, DEFAULT, DIRE, Action, Client, State, game_config, hero_of
from tests.services.test_dotaservice_lockstep_game import DRAFT, act, action, game_of, seen
from tests.services.test_dotaservice_service import serving


def test_a_dead_hero_buys_itself_back() -> None:
    game = game_of(game_config(pb.DOTA_GAMEMODE_AP, DRAFT, [CONTROLLED] * 10, ticks=30), scripted_buying=False)
    core = game._game._vec._core
    core.give_gold(0, 0, 5000)
    tower = next(u for u in game._game.spectate()["units"] if u["name"] == "npc_dota_badguys_tower1_mid")
    place(game._game, 0, tower["x"] - 200, tower["y"])
    core.set_hp(0, unit(game._game, 0)["slot"], 1.0)
    act(game, action("DOTA_UNIT_ORDER_HOLD_POSITION"))
    for _ in range(30):
        if not unit(game._game, 0)["alive"]:
            break
        act(game)
    assert not hero_of(seen(game), 0).is_alive
    assert act(game, action("DOTA_UNIT_ORDER_STOP")) == {"dead": 1}
    outcome = act(game, action("DOTA_UNIT_ORDER_BUYBACK", buyback=Action.Buyback()))
    assert outcome == {"done": 1} and hero_of(seen(game), 0).is_alive


def test_a_shrine_heals() -> None:
    game = game_of(game_config(pb.DOTA_GAMEMODE_AP, DRAFT, [CONTROLLED] * 10, ticks=300), scripted_buying=False)
    shrine = next(u for u in game._game.spectate()["units"] if u["kind"] == "shrine" and u["team"] == 0)
    use = action("ACTION_USE_SHRINE", useShrine=Action.UseShrine())
    for _ in range(60):
        place(game._game, 0, shrine["x"] + 250, shrine["y"])
        game._game._vec._core.set_hp(0, unit(game._game, 0)["slot"], 100.0)
        healed_alone = hero_of(seen(game), 0).health
        if act(game, use) == {"done": 1}:
            break
    else:
        raise AssertionError("no shrine was ready in ten minutes")
    assert hero_of(seen(game), 0).health > healed_alone + 100


def test_a_switched_item_is_used() -> None:
    game = game_of(game_config(heroes=(15, 35, 35, 35, 35) * 2))
    treads = action("DOTA_UNIT_ORDER_PURCHASE_ITEM", purchaseItem=Action.PurchaseItem(item_name="item_power_treads"))
    place(game._game, 0, -6900.0, -6500.0)
    game._game._vec._core.give_gold(0, 0, 6000)
    for _ in range(8):
        if "item_power_treads" in unit(game._game, 0)["items"]:
            break
        act(game, treads)
    slot = unit(game._game, 0)["items"].index("item_power_treads")
    game._states.clear()

    def stat() -> int:
        return next(i.power_treads_stat for i in hero_of(seen(game), 0).items if i.slot == slot)

    before = stat()
    switch = action("DOTA_UNIT_ORDER_CAST_TOGGLE", castToggle=Action.CastToggle(abilitySlot=-1 - slot))
    for _ in range(20):  # an item that was moved is not ready at once
        if act(game, switch) == {"done": 1}:
            break
    assert stat() != before


@pytest.mark.runs
async def test_a_client_watches_a_whole_game_of_five_a_side() -> None:
    async with serving({"max_game_seconds": 3600.0, "neutrals": True, "runes": True, "roshan": True},
                       bot="scripted-hard") as server, Client(server.ports[0]) as client:
        await client.reset(game_config(pb.DOTA_GAMEMODE_AP, DRAFT, [DEFAULT] * 10, ticks=60))
        last, kills = State(), 0
        while (answer := await client.observe(DIRE)).status == pb.OK:
            last = answer.world_state
            kills = max(kills, sum(p.kills for p in last.players))
            assert len([u for u in last.units if u.unit_type == State.HERO and u.player_id >= 5]) == 5
            assert all(math.isfinite(u.location.x) for u in last.units)
        assert answer.status in (pb.RADIANT_WIN, pb.DIRE_WIN, pb.RESOURCE_EXHAUSTED)
        assert last.dota_time > 600 and kills > 10

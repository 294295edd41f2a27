"""A policy's choices become the orders that do the same in a client."""

from typing import Any

import pytest

from dota.client_state import ClientCommand
from dota.config import GameConfig
from dota.spaces import vocabulary
from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from five.real_client.command_orders import CommandOrders, cast_numbers

GAME = GameConfig()
HERO, CREEP, TOWER = 1025, 2000, 3000
IDS = {action.name: action.id for action in vocabulary()}
NUMBERS = cast_numbers(GAME.patch)


def world_state(dota_time: float = 10.0) -> CMsgBotWorldState:
    """Return Dire's world state: its hero of player 6 at (100, 200), a creep and a tower."""
    state = CMsgBotWorldState(team_id=3, game_time=100.0, dota_time=dota_time, game_state=5)
    for handle, kind, x, y in ((HERO, CMsgBotWorldState.HERO, 100, 200),
                               (CREEP, CMsgBotWorldState.LANE_CREEP, 400, 500),
                               (TOWER, CMsgBotWorldState.TOWER, -900, 0)):
        unit = state.units.add(handle=handle, unit_type=kind, team_id=3, player_id=6 if handle == HERO else -1)
        unit.location.x, unit.location.y = x, y
    hero = state.units[0]
    for slot, name in enumerate(("sniper_shrapnel", "sniper_take_aim", "sniper_assassinate")):
        hero.abilities.add(ability_id=NUMBERS[name], slot=slot)
    for slot, name in ((1, "item_flask"), (15, "item_tpscroll"), (7, "item_blink"), (2, "item_ward_observer")):
        hero.items.add(ability_id=NUMBERS[name], slot=slot)
    for number, (status, x) in enumerate(((1, 3000.0), (1, 300.0), (2, 110.0))):
        rune = state.rune_infos.add(status=status)
        rune.location.x, rune.location.y = x, 200.0
        assert len(state.rune_infos) == number + 1
    return state


def command(name: str, target: int = 0, teleport: int = 0, dx: int = 0, dy: int = 0, delay: int = 0) -> ClientCommand:
    return ClientCommand(IDS[name], delay, target, teleport, dx, dy)


def translate(*commands: ClientCommand) -> list[dict[str, Any]]:
    return CommandOrders(GAME).orders(world_state(), commands)


def at(x: float, y: float) -> dict[str, Any]:
    return {"location": {"x": x, "y": y, "z": 0.0}}


ORDERS = [
    (command("move", dx=2, dy=-4), "MOVE_TO_POSITION", {"moveToLocation": at(300, -200)}),
    (command("move"), "STOP", {}),
    (command("attack", CREEP), "ATTACK_TARGET", {"attackTarget": {"target": CREEP, "once": False}}),
    (command("follow", CREEP), "MOVE_TO_TARGET", {"moveToTarget": {"target": CREEP}}),
    (command("follow", CREEP, dx=-1), "MOVE_TO_POSITION", {"moveToLocation": at(300, 500)}),
    (command("glyph"), "GLYPH", {}),
    (command("pickup"), "PICKUP_RUNE", {"pickupRune": {"rune": 1}}),
    (command("sniper_shrapnel", CREEP, dy=1), "CAST_POSITION", {"castLocation": {"abilitySlot": 0, **at(400, 600)}}),
    (command("sniper_take_aim"), "CAST_NO_TARGET", {"cast": {"abilitySlot": 1}}),
    (command("sniper_assassinate", CREEP), "CAST_TARGET", {"castTarget": {"abilitySlot": 2, "target": CREEP}}),
    (command("item_flask", HERO), "CAST_TARGET", {"castTarget": {"abilitySlot": -2, "target": HERO}}),
    (command("item_tpscroll", teleport=TOWER, dx=1), "CAST_POSITION",
     {"castLocation": {"abilitySlot": -16, **at(-800, 0)}}),
    (command("item_ward_observer", dx=3), "CAST_POSITION", {"castLocation": {"abilitySlot": -3, **at(400, 200)}}),
]


@pytest.mark.parametrize(("given", "kind", "fields"), ORDERS)
def test_a_choice_becomes_an_order(given: ClientCommand, kind: str, fields: dict[str, Any]) -> None:
    nothing = command("noop")
    assert translate(nothing, given._replace(delay=3)) == [
        {"actionType": f"DOTA_UNIT_ORDER_{kind}", **fields, "player": 6, "actionDelay": 3}]


@pytest.mark.parametrize("given", [
    command("noop"), command("none"), command("shrine"), command("attack", 77), command("follow", 77),
    command("item_blink", dx=1), command("item_cheese"), command("sniper_assassinate", 77),
    command("item_tpscroll", teleport=77)])
def test_a_choice_that_the_client_cannot_do_becomes_nothing(given: ClientCommand) -> None:
    assert translate(command("noop"), given) == []


def test_a_hero_without_a_unit_can_only_buy_back() -> None:
    buyback = {"actionType": "DOTA_UNIT_ORDER_BUYBACK", "player": 5, "actionDelay": 0}
    assert translate(command("buyback")) == [buyback] and translate(command("move", dx=1)) == []


def test_a_continued_order_is_given_again_only_after_a_second() -> None:
    orders = CommandOrders(GAME)
    noop, attack, move = command("noop"), command("attack", CREEP), command("move", dx=1)
    given = [bool(orders.orders(world_state(10 + time), [noop, choice])) for time, choice in (
        (0.0, attack), (0.2, attack), (0.4, noop), (0.6, attack), (1.1, attack), (1.2, move), (1.3, move),
        (1.4, attack))]
    assert given == [True, False, False, False, True, True, True, True]


def test_an_ability_that_is_being_cast_goes_on() -> None:
    state = world_state()
    state.units[0].abilities[2].is_in_ability_phase = True
    assert CommandOrders(GAME).orders(state, [command("noop"), command("sniper_assassinate", CREEP)]) == []


def add_shrine(state: CMsgBotWorldState, handle: int, x: float, **others: Any) -> None:
    """Add a shrine at (x, 200), by default an own one that is ready."""
    fields = {"team_id": 3, "is_alive": True, "shrine_cooldown": 0.0} | others
    unit = state.units.add(handle=handle, unit_type=CMsgBotWorldState.SHRINE, **fields)
    unit.location.x, unit.location.y = x, 200.0


def test_shrine_order_names_nearest_ready_own_shrine() -> None:
    state = world_state()
    add_shrine(state, 4000, 200, shrine_cooldown=12.5)
    add_shrine(state, 4001, 150, team_id=2)
    add_shrine(state, 4002, 300, is_alive=False)
    orders = CommandOrders(GAME)
    assert orders.orders(state, [command("noop"), command("shrine")]) == []
    add_shrine(state, 4003, 5000)
    add_shrine(state, 4004, -1000)
    assert orders.orders(state, [command("noop"), command("shrine")]) == [
        {"actionType": "ACTION_USE_SHRINE", "useShrine": {"shrine": 4004}, "player": 6, "actionDelay": 0}]
    assert orders.orders(state, [command("noop"), command("shrine")]) == []  # the hero is on its way

"""Actions of clients take effect in the game, from one observation to the next."""

import math
from typing import Any

import pytest

from dota.config import GameConfig
from dota.play import Order
from dota.valve_ids import valve_ids
from dota.vec_game import Winner
from five.protos.valve import dotaservice_pb2 as pb
from five.run.config.dotaservice import DotaServiceConfig
from five.services.dotaservice import metrics
from five.services.dotaservice.game_plan import game_plan
from five.services.dotaservice.lockstep_game import LockstepGame
from tests.dota.playing import MIDDLE, place, unit
from tests.services.dotaservice_client import (
    CONTROLLED,
    DEFAULT,
    IDLE,
    Action,
    State,
    attack,
    game_config,
    hero_of,
    move,
)

RULES = GameConfig(start_seconds=0.0, neutrals=False, runes=False, roshan=False, kills_to_win=0)
IDS = valve_ids("7.21d")
DRAFT = (11, 35, 26, 5, 18, 47, 2, 43, 7, 72)
EAST = (MIDDLE[0] + 500, MIDDLE[1])


def game_of(message: pb.GameConfig | None = None, rules: GameConfig = RULES, seed: int = 1,
            **settings: Any) -> LockstepGame:
    """Return a duel of two controlled heroes, both in the middle of the map, 300 apart, or another game."""
    given = DotaServiceConfig(**settings)
    game = LockstepGame(game_plan(message or game_config(), rules, given), seed, given)
    game.advance()
    if message is None:
        place(game._game, 0, *MIDDLE)
        place(game._game, 5, MIDDLE[0] + 300, MIDDLE[1])
        game._states.clear()
    return game


def seen(game: LockstepGame, team: int = 0) -> State:
    return State.FromString(game.state(team))


def act(game: LockstepGame, *actions: Action, team: int = 0, dota_time: float | None = None) -> dict[str, int]:
    """Give actions, advance the game, and return the counted outcomes."""
    def counted() -> dict[str, int]:
        return {name: int(metrics.ACTIONS.labels(name)._value.get()) for name in metrics.OUTCOMES}

    before = counted()
    game.act(team, dota_time, actions)
    game.advance()
    return {name: count - before[name] for name, count in counted().items() if count != before[name]}


def action(kind: str, player: int = 0, **data: Any) -> Action:
    return Action(actionType=Action.Type.Value(kind), player=player, **data)


def learn(game: LockstepGame, hero: int = 0) -> None:
    """Give a hero experience for three levels."""
    game._game._vec._core.give_xp(0, hero, 1000)


def item(game: LockstepGame, slot: int, hero: int = 0) -> str:
    return str(unit(game._game, hero)["items"][slot])


def test_a_step_is_so_many_frames() -> None:
    game = game_of(game_config(ticks=7))
    began = game._game.engine_frame
    game.advance()
    assert game._game.engine_frame == began + 7 and game.tick == 2


def test_moves_go_there_and_stop_ends_them() -> None:
    for kind, data in (("DOTA_UNIT_ORDER_MOVE_TO_POSITION", "moveToLocation"),
                       ("DOTA_UNIT_ORDER_MOVE_DIRECTLY", "moveDirectly")):
        game = game_of()
        place(game._game, 5, -6500.0, 6500.0)
        where = Action.MoveToLocation(location=State.Vector(x=EAST[0], y=EAST[1]))
        assert act(game, action(kind, **{data: where})) == {"done": 1}
        x = unit(game._game, 0)["x"]
        assert MIDDLE[0] + 50 < x < EAST[0] - 100
        assert act(game, action("DOTA_UNIT_ORDER_STOP")) == {"done": 1}
        act(game)
        assert unit(game._game, 0)["x"] == pytest.approx(x, abs=30)


def test_without_actions_heroes_continue() -> None:
    game = game_of()
    place(game._game, 5, -6500.0, 6500.0)
    act(game, move(0, *EAST))
    for _ in range(4):
        game.advance()
    body = unit(game._game, 0)
    assert math.dist((body["x"], body["y"]), EAST) < 60


def test_attacks_hit_the_unit_with_the_handle() -> None:
    game = game_of()
    target = hero_of(seen(game), 5)
    assert act(game, attack(0, target.handle)) == {"done": 1}
    act(game)
    act(game)
    assert unit(game._game, 5)["hp"] < target.health
    assert act(game, attack(0, target.handle + 1000)) == {"unseen": 1}
    assert act(game, attack(0, -1)) == {"unseen": 1}


def test_following_and_fighting_on_the_way() -> None:
    game = game_of()
    place(game._game, 5, MIDDLE[0] + 900, MIDDLE[1])
    act(game, action("DOTA_UNIT_ORDER_HOLD_POSITION", 5), team=1)
    target = hero_of(seen(game), 5)
    assert act(game, action("DOTA_UNIT_ORDER_MOVE_TO_TARGET", moveToTarget=Action.MoveToTarget(target=target.handle))
               ) == {"done": 1}
    for _ in range(4):
        game.advance()
    assert abs(unit(game._game, 0)["x"] - target.location.x) < 300
    before = unit(game._game, 5)["hp"]
    goal = Action.AttackMove(location=State.Vector(x=MIDDLE[0] + 2000, y=MIDDLE[1]))
    assert act(game, action("DOTA_UNIT_ORDER_ATTACK_MOVE", attackMove=goal)) == {"done": 1}
    for _ in range(4):
        game.advance()
    assert unit(game._game, 5)["hp"] < before


def test_abilities_and_talents_are_learned_by_name() -> None:
    game = game_of()
    learn(game)
    ranks = unit(game._game, 0)["abilities"]
    raze = Action.TrainAbility(ability="nevermore_shadowraze1")
    assert act(game, action("DOTA_UNIT_ORDER_TRAIN_ABILITY", trainAbility=raze)) == {"done": 1}
    assert unit(game._game, 0)["abilities"][0][1] == ranks[0][1] + 1
    game._game._vec._core.give_xp(0, 0, 6000)
    talent = Action.TrainAbility(ability="special_bonus_attack_speed_20")
    assert act(game, action("DOTA_UNIT_ORDER_TRAIN_ABILITY", trainAbility=talent)) == {"done": 1}
    assert act(game, action("DOTA_UNIT_ORDER_TRAIN_ABILITY", trainAbility=talent)) == {"taken": 1}
    other = Action.TrainAbility(ability="lion_impale")
    assert act(game, action("DOTA_UNIT_ORDER_TRAIN_ABILITY", trainAbility=other)) == {"name": 1}


def test_levelling_and_buying_are_settings() -> None:
    by_hand, scripted = game_of(), game_of(scripted_levelling=True, scripted_buying=False)
    for game in (by_hand, scripted):
        learn(game)
        game._game._vec._core.give_gold(0, 0, 3000)
        for _ in range(8):
            game.advance()
    ranks = [sum(rank for _, rank, _ in unit(game._game, 0)["abilities"]) for game in (by_hand, scripted)]
    assert ranks[0] == 0 < ranks[1]
    assert unit(by_hand._game, 0)["gold"] < unit(scripted._game, 0)["gold"] - 500


def test_a_cast_without_target() -> None:
    game = game_of()
    learn(game)
    raze = Action.TrainAbility(ability="nevermore_shadowraze1")
    cast = action("DOTA_UNIT_ORDER_CAST_NO_TARGET", cast=Action.Cast(abilitySlot=0))
    assert act(game, cast) == {"not_learned": 1}
    act(game, action("DOTA_UNIT_ORDER_TRAIN_ABILITY", trainAbility=raze))
    mana = unit(game._game, 0)["mana"]
    assert act(game, cast) == {"done": 1}
    act(game)
    assert unit(game._game, 0)["mana"] < mana - 50
    assert act(game, cast) == {"cooldown": 1}


def test_casts_at_a_unit_and_at_a_place() -> None:
    heroes = (26, *[35] * 4) * 2
    game = game_of(game_config(heroes=heroes))
    place(game._game, 0, *MIDDLE)
    place(game._game, 5, MIDDLE[0] + 300, MIDDLE[1])
    game._states.clear()
    learn(game)
    for name in ("lion_voodoo", "lion_impale"):
        assert act(game, action("DOTA_UNIT_ORDER_TRAIN_ABILITY", trainAbility=Action.TrainAbility(ability=name))) in (
            {"done": 1}, {"taken": 1}, {"level": 1})
    target = hero_of(seen(game), 5).handle
    hex_ = Action.CastTarget(abilitySlot=1, target=target)
    assert act(game, action("DOTA_UNIT_ORDER_CAST_TARGET", castTarget=hex_)) == {"done": 1}
    act(game)
    assert hero_of(seen(game), 5).is_hexed
    hp = unit(game._game, 5)["hp"]
    spike = Action.CastLocation(abilitySlot=0, location=State.Vector(x=MIDDLE[0] + 300, y=MIDDLE[1]))
    assert act(game, action("DOTA_UNIT_ORDER_CAST_POSITION", castLocation=spike)) == {"done": 1}
    act(game)
    act(game)
    assert unit(game._game, 5)["hp"] < hp - 50


def test_items_are_bought_used_moved_dropped_and_taken_up() -> None:
    game = game_of(scripted_buying=False)
    game._game._vec._core.give_gold(0, 0, 3000)
    slots = unit(game._game, 0)["items"]
    tango = slots.index("item_tango")
    x, y = min(IDS.trees, key=lambda tree: math.dist(tree, MIDDLE))
    tree = IDS.trees.index((x, y))
    place(game._game, 0, x - 150, y)
    eat = Action.CastTree(abilitySlot=-1 - tango, tree=tree)
    assert act(game, action("DOTA_UNIT_ORDER_CAST_TARGET_TREE", castTree=eat)) == {"done": 1}
    act(game)
    assert next(i for i in hero_of(seen(game), 0).items if i.slot == tango).charges == 2
    place(game._game, 0, *MIDDLE)
    assert act(game, action("ACTION_SWAP_ITEMS", swapItems=Action.SwapItems(slot_a=8, slot_b=tango))) == {"done": 1}
    assert item(game, 8) == "item_tango" and not item(game, tango)
    buy = Action.PurchaseItem(item_name="item_boots")
    assert act(game, action("DOTA_UNIT_ORDER_PURCHASE_ITEM", purchaseItem=buy)) == {"done": 1}
    boots = unit(game._game, 0)["items"].index("item_boots")
    numbers = {name: number for number, name in IDS.items.items()}
    ground = State.Vector(x=MIDDLE[0] + 50, y=MIDDLE[1])
    assert act(game, action("DOTA_UNIT_ORDER_DROP_ITEM", dropItem=Action.DropItem(slot=boots, location=ground))
               ) == {"done": 1}
    assert "item_boots" not in unit(game._game, 0)["items"]
    assert [d.item_id for d in seen(game).dropped_items] == [numbers["item_boots"]]
    take = action("DOTA_UNIT_ORDER_PICKUP_ITEM", pickUpItem=Action.PickUpItem(itemId=numbers["item_boots"]))
    assert act(game, take) == {"done": 1}
    act(game)
    assert "item_boots" in unit(game._game, 0)["items"] and act(game, take) == {"item": 1}
    gold = unit(game._game, 0)["gold"]
    place(game._game, 0, -6900.0, -6500.0)
    sell = Action.SellItem(item=numbers["item_boots"])
    assert act(game, action("DOTA_UNIT_ORDER_SELL_ITEM", sellItem=sell)) == {"done": 1}
    assert unit(game._game, 0)["gold"] > gold + 200


def test_a_rune_is_taken() -> None:
    game = game_of(rules=RULES.model_copy(update={"runes": True}))
    state = seen(game)
    number = min(range(len(state.rune_infos)),
                 key=lambda k: math.dist((state.rune_infos[k].location.x, state.rune_infos[k].location.y), MIDDLE))
    spot = state.rune_infos[number].location
    place(game._game, 0, spot.x + 200, spot.y)
    game._states.clear()
    game.advance()
    for _ in range(8):
        outcome = act(game, action("DOTA_UNIT_ORDER_PICKUP_RUNE", pickupRune=Action.PickupRune(rune=number)))
        assert outcome in ({"done": 1}, {"target": 1})
        if outcome == {"target": 1}:
            break
    assert seen(game).rune_infos[number].status != 1
    assert act(game, action("DOTA_UNIT_ORDER_PICKUP_RUNE", pickupRune=Action.PickupRune(rune=99))) == {"target": 1}


def test_glyph_shrine_courier_and_buyback_answer() -> None:
    game = game_of(game_config(pb.DOTA_GAMEMODE_AP, DRAFT, [CONTROLLED] * 10, ticks=300),
                   rules=RULES.model_copy(update={"courier": "scripted"}), scripted_buying=False)
    while act(game, action("DOTA_UNIT_ORDER_GLYPH", glyph=Action.Glyph())) != {"done": 1}:
        assert game._game.time < 400, "it is ready some minutes after the start"
    assert act(game, action("DOTA_UNIT_ORDER_GLYPH", 1, glyph=Action.Glyph())) == {"cooldown": 1}
    assert act(game, action("DOTA_UNIT_ORDER_BUYBACK", buyback=Action.Buyback())) == {"alive": 1}
    (outcome,) = act(game, action("ACTION_USE_SHRINE", useShrine=Action.UseShrine()))
    assert outcome in ("done", "cooldown")
    game._game._vec._core.give_gold(0, 0, 3000)
    place(game._game, 0, *MIDDLE)
    buy = Action.PurchaseItem(item_name="item_boots")
    fetch = action("ACTION_COURIER", courier=Action.Courier(action=6), actionDelay=1)
    assert act(game, action("DOTA_UNIT_ORDER_PURCHASE_ITEM", purchaseItem=buy), fetch) == {"done": 2}
    assert act(game, action("ACTION_COURIER", courier=Action.Courier(action=0))) in ({"done": 1}, {"courier": 1})


def test_autocast_is_switched() -> None:
    game = game_of(game_config(heroes=(47, *[35] * 4) * 2))
    learn(game)
    train = Action.TrainAbility(ability="viper_poison_attack")
    act(game, action("DOTA_UNIT_ORDER_TRAIN_ABILITY", trainAbility=train))
    switch = action("DOTA_UNIT_ORDER_CAST_TOGGLE_AUTO", castToggle=Action.CastToggle(abilitySlot=0))
    assert act(game, switch) == {"done": 1}


def test_a_delay_is_counted_in_ticks_after_the_observation() -> None:
    positions = []
    for delay in (0, 6, 14):
        game = game_of()
        place(game._game, 5, -6500.0, 6500.0)
        late = move(0, *EAST)
        late.actionDelay = delay
        assert act(game, late) == {"done": 1}
        positions.append(unit(game._game, 0)["x"])
    assert positions[0] > positions[1] + 30 > positions[2] + 60
    game = game_of()
    never = move(0, *EAST)
    never.actionDelay = 15
    assert act(game, never) == {"late": 1}
    never.actionDelay = -1
    assert act(game, never) == {"late": 1}


def test_new_actions_replace_those_that_wait() -> None:
    game = game_of()
    place(game._game, 5, -6500.0, 6500.0)
    late = move(0, *EAST)
    late.actionDelay = 3
    game.act(0, None, [late])
    game.act(1, None, [move(5, *EAST)])
    assert act(game, action("DOTA_UNIT_ORDER_NONE")) == {"done": 2}, "nothing of Radiant's, Dire's move"
    assert unit(game._game, 0)["x"] == pytest.approx(MIDDLE[0], abs=5)


def test_actions_of_others_are_ignored() -> None:
    game = game_of()
    assert act(game, move(5, *EAST)) == {"not_controlled": 1}, "Dire's hero"
    assert act(game, move(1, *EAST)) == {"not_controlled": 1}, "no hero of that player plays"
    assert act(game, Action(actionType=Action.DOTA_UNIT_ORDER_STOP)) == {"not_controlled": 1}, "no player"


def test_actions_for_another_observation_are_ignored() -> None:
    game = game_of()
    now = seen(game).dota_time
    assert act(game, move(0, *EAST), dota_time=now - 0.5) == {"stale": 1}
    assert act(game, move(0, *EAST), dota_time=seen(game).dota_time) == {"done": 1}


def test_absurd_numbers_do_nothing() -> None:
    game = game_of()
    for place_ in (float("nan"), float("inf"), -1e38):
        outcome = act(game, move(0, place_, place_))
        assert outcome in ({"target": 1}, {"done": 1})
    huge = 2**31 - 1
    assert act(game, action("DOTA_UNIT_ORDER_CAST_NO_TARGET", cast=Action.Cast(abilitySlot=huge))) == {"slot": 1}
    assert act(game, action("DOTA_UNIT_ORDER_CAST_NO_TARGET", cast=Action.Cast(abilitySlot=-huge))) == {"slot": 1}
    drop = Action.DropItem(slot=-huge, location=State.Vector(x=0, y=0))
    assert act(game, action("DOTA_UNIT_ORDER_DROP_ITEM", dropItem=drop)) == {"slot": 1}


def test_idle_heroes_stand_and_default_heroes_play() -> None:
    controls = [DEFAULT, IDLE, IDLE, IDLE, IDLE, IDLE, IDLE, IDLE, IDLE, IDLE]
    game = game_of(game_config(controls=controls))
    home = {hero: (unit(game._game, hero)["x"], unit(game._game, hero)["y"]) for hero in (0, 5)}
    for _ in range(20):
        game.advance()
    moved = {hero: math.dist(home[hero], (unit(game._game, hero)["x"], unit(game._game, hero)["y"]))
             for hero in (0, 5)}
    assert moved[0] > 500 and moved[5] == 0


def test_several_bots_and_clients_share_a_side() -> None:
    controls = [CONTROLLED, DEFAULT, DEFAULT, DEFAULT, DEFAULT, *[DEFAULT] * 5]
    game = game_of(game_config(pb.DOTA_GAMEMODE_AP, DRAFT, controls))
    at = unit(game._game, 0)
    for _ in range(20):
        game.advance()
    body, mate = unit(game._game, 0), unit(game._game, 1)
    assert (body["x"], body["y"]) == (at["x"], at["y"]) and math.dist((mate["x"], mate["y"]), (at["x"], at["y"])) > 500


def test_a_winner_is_known_in_the_frame_in_which_the_tower_falls() -> None:
    game = game_of(game_config(ticks=1))
    core = game._game._vec._core
    tower = next(u for u in game._game.spectate()["units"] if u["name"] == "npc_dota_badguys_tower1_mid")
    core.place(0, unit(game._game, 0)["slot"], tower["x"] - 400, tower["y"])
    core.set_hp(0, tower["slot"], 5.0)
    for _ in range(8):
        game.advance()  # until Radiant sees it
    for _ in range(300):
        target = next((u for u in seen(game).units if u.name == "npc_dota_badguys_tower1_mid"), None)
        assert target is not None, "a state without the tower instead of the winner"
        game.act(0, None, [attack(0, target.handle)])
        game.advance()
        if game.winner is not Winner.RUNNING:
            break
    assert game.winner is Winner.RADIANT
    before = game._game.engine_frame
    game.advance()
    assert game._game.engine_frame == before, "an ended game does not go on"


def test_the_same_seed_and_actions_give_the_same_game() -> None:
    def played() -> int:
        game = game_of(game_config(controls=[CONTROLLED, *[IDLE] * 4, DEFAULT, *[IDLE] * 4]), seed=7)
        for _ in range(40):
            game.act(0, None, [move(0, 0.0, 0.0)])
            game.advance()
        return game._game.hash()

    assert played() == played()


def test_orders_are_those_of_people() -> None:
    game = game_of()
    assert game._game.order(0, Order("stop")).ok and not game._game.order(3, Order("stop")).ok

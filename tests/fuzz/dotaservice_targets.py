"""Targets of dotaservice's protocol: requests of foreign clients, to a real servicer with a real game."""

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dota.config import GameConfig
from five.protos.valve import bot_world_state_pb2
from five.protos.valve import dotaservice_pb2 as pb
from five.run.config.dotaservice import DotaServiceConfig
from five.services.dotaservice.service import DotaService
from five.services.dotaservice.session import Session
from tests.fuzz.message_targets import parse
from tests.fuzz.mutators import mutate_stream
from tests.fuzz.service_targets import REFUSALS, call
from tests.fuzz.targets import Target, join_messages, split_messages
from tests.services.dotaservice_client import Action, State, attack, game_config, move

RULES = GameConfig(start_seconds=0.0)
SETTINGS = DotaServiceConfig(lockstep_seconds=0.0)


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1)


def _service() -> DotaService:
    return DotaService(RULES, SETTINGS, Session(SETTINGS, _threads(), lambda: 1))


def action_requests() -> list[bytes]:
    """Return streams of Actions."""
    at = State.Vector(x=-500, y=-400)
    kinds = [
        move(0, 10.0, 20.0), attack(0, 1025),
        Action(actionType=Action.DOTA_UNIT_ORDER_CAST_NO_TARGET, player=0, cast=Action.Cast(abilitySlot=0)),
        Action(actionType=Action.DOTA_UNIT_ORDER_CAST_TARGET_TREE, player=0,
               castTree=Action.CastTree(abilitySlot=-1, tree=7)),
        Action(actionType=Action.DOTA_UNIT_ORDER_TRAIN_ABILITY, player=0,
               trainAbility=Action.TrainAbility(ability="nevermore_shadowraze1")),
        Action(actionType=Action.DOTA_UNIT_ORDER_DROP_ITEM, player=0, dropItem=Action.DropItem(slot=0, location=at)),
        Action(actionType=Action.DOTA_UNIT_ORDER_PICKUP_ITEM, player=0, pickUpItem=Action.PickUpItem(itemId=1)),
        Action(actionType=Action.DOTA_UNIT_ORDER_PICKUP_RUNE, player=0, pickupRune=Action.PickupRune(rune=0)),
        Action(actionType=Action.DOTA_UNIT_ORDER_SELL_ITEM, player=0, sellItem=Action.SellItem(item=46)),
        Action(actionType=Action.ACTION_SWAP_ITEMS, player=0, swapItems=Action.SwapItems(slot_a=0, slot_b=8)),
        Action(actionType=Action.ACTION_COURIER, player=0, courier=Action.Courier(action=6))]
    requests = [pb.Actions(team_id=pb.TEAM_RADIANT, actions=bot_world_state_pb2.CMsgBotWorldState.Actions(actions=some))
                for some in (kinds[:4], kinds[4:8], kinds[8:])]
    return [join_messages(request.SerializeToString() for request in requests),
            join_messages([requests[0].SerializeToString()])]


def play_actions(data: bytes) -> None:
    """Send Actions to a game, which advances after each."""
    async def play(requests: list[Any]) -> None:
        service = _service()
        await service.reset(game_config(ticks=4), None)
        for request in requests:
            await service.act(request, None)
            await service.observe(pb.ObserveConfig(team_id=pb.TEAM_RADIANT), None)

    call(play([parse(pb.Actions, message) for message in split_messages(data, 4)]))


def ask(method: str, kind: Any) -> Any:
    """Return a function that sends requests to a server with a game."""
    async def all_of(requests: list[Any]) -> None:
        service = _service()
        await service.reset(game_config(ticks=4), None)
        for request in requests:
            await getattr(service, method)(request, None)

    return lambda data: call(all_of([parse(kind, message) for message in split_messages(data, 2)]))


TARGETS = [
    Target("dotaservice-act", "wire", play_actions, action_requests, REFUSALS, (), ("Actions",),
           mutate_stream(pb.Actions)),
    Target("dotaservice-reset", "wire", ask("reset", pb.GameConfig),
           lambda: [join_messages([game_config().SerializeToString()])], REFUSALS, (), ("GameConfig",),
           mutate_stream(pb.GameConfig)),
    Target("dotaservice-observe", "wire", ask("observe", pb.ObserveConfig),
           lambda: [join_messages([pb.ObserveConfig(team_id=pb.TEAM_DIRE).SerializeToString()])], REFUSALS, (),
           ("ObserveConfig",), mutate_stream(pb.ObserveConfig)),
]

"""Every action of CMsgBotWorldState becomes an order, or is ignored for a reason."""

from typing import Any

import pytest

from dota.play import KINDS, REFUSALS, Order
from dota.valve_ids import valve_ids
from five.services.dotaservice.action_orders import Ignored, Point, order_of
from five.services.dotaservice.metrics import INCOMPLETE, NAME, OUTCOMES, UNSUPPORTED
from tests.services.dotaservice_client import Action, State

IDS = valve_ids("7.21d")
AT = State.Vector(x=100.5, y=-200.0, z=128.0)


class References:
    """A side that sees unit 77, rune 1, a blink dagger (1) on the ground, and holds a scroll (46)."""

    def unit(self, handle: int) -> tuple[int, int] | None:
        return (7, 3) if handle == 77 else None

    def rune(self, number: int) -> Point | None:
        return (5.0, 6.0) if number == 1 else None

    def dropped_item(self, item: int) -> Point | None:
        return (7.0, 8.0) if item == 1 else None

    def item_slot(self, item: int) -> int | None:
        return 15 if item == 46 else None


def order(kind: str, hero: str = "nevermore", **data: Any) -> Order | Ignored:
    """Return the order of an action, given its type and its data as one keyword."""
    return order_of(Action(actionType=Action.Type.Value(kind), **data), hero, IDS, References())


ORDERS = [
    ("DOTA_UNIT_ORDER_MOVE_TO_POSITION", {"moveToLocation": Action.MoveToLocation(location=AT)},
     Order("move", at=(100.5, -200.0))),
    ("DOTA_UNIT_ORDER_MOVE_DIRECTLY", {"moveDirectly": Action.MoveToLocation(location=AT)},
     Order("move", at=(100.5, -200.0))),
    ("DOTA_UNIT_ORDER_MOVE_TO_TARGET", {"moveToTarget": Action.MoveToTarget(target=77)}, Order("follow", (7, 3))),
    ("DOTA_UNIT_ORDER_ATTACK_MOVE", {"attackMove": Action.AttackMove(location=AT)},
     Order("attack_move", at=(100.5, -200.0))),
    ("DOTA_UNIT_ORDER_ATTACK_TARGET", {"attackTarget": Action.AttackTarget(target=77)}, Order("attack", (7, 3))),
    ("DOTA_UNIT_ORDER_ATTACK_TARGET", {"attackTarget": Action.AttackTarget(target=77, once=True)},
     Order("attack", (7, 3), once=True)),
    ("DOTA_UNIT_ORDER_CAST_POSITION", {"castLocation": Action.CastLocation(abilitySlot=2, location=AT)},
     Order("cast", at=(100.5, -200.0), slot=2)),
    ("DOTA_UNIT_ORDER_CAST_POSITION", {"castLocation": Action.CastLocation(abilitySlot=-16, location=AT)},
     Order("use", at=(100.5, -200.0), slot=15)),
    ("DOTA_UNIT_ORDER_CAST_TARGET", {"castTarget": Action.CastTarget(abilitySlot=0, target=77)},
     Order("cast", (7, 3), slot=0)),
    ("DOTA_UNIT_ORDER_CAST_TARGET", {"castTarget": Action.CastTarget(abilitySlot=-1, target=77)},
     Order("use", (7, 3), slot=0)),
    ("DOTA_UNIT_ORDER_CAST_TARGET_TREE", {"castTree": Action.CastTree(abilitySlot=-3, tree=9)},
     Order("use", at=IDS.trees[9], slot=2)),
    ("DOTA_UNIT_ORDER_CAST_NO_TARGET", {"cast": Action.Cast(abilitySlot=1)}, Order("cast", slot=1)),
    ("DOTA_UNIT_ORDER_CAST_NO_TARGET", {"cast": Action.Cast(abilitySlot=-6)}, Order("use", slot=5)),
    ("DOTA_UNIT_ORDER_CAST_TOGGLE", {"castToggle": Action.CastToggle(abilitySlot=1)}, Order("cast", slot=1)),
    ("DOTA_UNIT_ORDER_CAST_TOGGLE_AUTO", {"castToggle": Action.CastToggle(abilitySlot=1)}, Order("toggle", slot=1)),
    ("DOTA_UNIT_ORDER_HOLD_POSITION", {"holdLocation": Action.HoldLocation()}, Order("hold")),
    ("DOTA_UNIT_ORDER_STOP", {}, Order("stop")),
    ("DOTA_UNIT_ORDER_TRAIN_ABILITY", {"trainAbility": Action.TrainAbility(ability="nevermore_requiem")},
     Order("level", slot=5)),
    ("DOTA_UNIT_ORDER_TRAIN_ABILITY", {"trainAbility": Action.TrainAbility(ability="special_bonus_attack_speed_20")},
     Order("talent", slot=1)),
    ("DOTA_UNIT_ORDER_DROP_ITEM", {"dropItem": Action.DropItem(slot=3, location=AT)},
     Order("drop", at=(100.5, -200.0), slot=3)),
    ("DOTA_UNIT_ORDER_PICKUP_ITEM", {"pickUpItem": Action.PickUpItem(itemId=1)}, Order("pickup", at=(7.0, 8.0))),
    ("DOTA_UNIT_ORDER_PICKUP_RUNE", {"pickupRune": Action.PickupRune(rune=1)}, Order("pickup", at=(5.0, 6.0))),
    ("DOTA_UNIT_ORDER_PURCHASE_ITEM", {"purchaseItem": Action.PurchaseItem(item_name="item_flask")},
     Order("buy", item="item_flask")),
    ("DOTA_UNIT_ORDER_PURCHASE_ITEM", {"purchaseItem": Action.PurchaseItem(item=46)},
     Order("buy", item="item_tpscroll")),
    ("DOTA_UNIT_ORDER_SELL_ITEM", {"sellItem": Action.SellItem(slot=2)}, Order("sell", slot=2)),
    ("DOTA_UNIT_ORDER_SELL_ITEM", {"sellItem": Action.SellItem(item=46)}, Order("sell", slot=15)),
    ("DOTA_UNIT_ORDER_MOVE_ITEM", {"swapItems": Action.SwapItems(slot_a=1, slot_b=7)}, Order("swap", slot=1, to=7)),
    ("ACTION_SWAP_ITEMS", {"swapItems": Action.SwapItems(slot_a=1, slot_b=7)}, Order("swap", slot=1, to=7)),
    ("DOTA_UNIT_ORDER_BUYBACK", {"buyback": Action.Buyback()}, Order("buyback")),
    ("DOTA_UNIT_ORDER_GLYPH", {"glyph": Action.Glyph()}, Order("glyph")),
    ("ACTION_USE_SHRINE", {"useShrine": Action.UseShrine(shrine=77)}, Order("shrine")),
    ("ACTION_COURIER", {"courier": Action.Courier(action=0)}, Order("courier", item="return")),
    ("ACTION_COURIER", {"courier": Action.Courier(action=2)}, Order("courier", item="stash")),
    ("ACTION_COURIER", {"courier": Action.Courier(action=6)}, Order("courier", item="deliver")),
]
IGNORED = [
    ("DOTA_UNIT_ORDER_NONE", {}, ""),
    ("DOTA_UNIT_ORDER_CONTINUE", {}, ""),
    ("ACTION_CHAT", {"chat": Action.Chat(message="gg", to_allchat=True)}, ""),
    ("DOTA_UNIT_ORDER_GIVE_ITEM", {}, UNSUPPORTED),
    ("DOTA_UNIT_ORDER_DISASSEMBLE_ITEM", {"disassembleItem": Action.DisassembleItem(slot=1)}, UNSUPPORTED),
    ("DOTA_UNIT_ORDER_SET_ITEM_COMBINE_LOCK", {}, UNSUPPORTED),
    ("DOTA_UNIT_ORDER_EJECT_ITEM_FROM_STASH", {}, UNSUPPORTED),
    ("DOTA_UNIT_ORDER_TAUNT", {}, UNSUPPORTED),
    ("DOTA_UNIT_ORDER_CAST_RUNE", {}, UNSUPPORTED),
    ("ACTION_COURIER", {"courier": Action.Courier(action=5)}, UNSUPPORTED),
    ("DOTA_UNIT_ORDER_ATTACK_TARGET", {"attackTarget": Action.AttackTarget(target=-1, once=True)}, "unseen"),
    ("DOTA_UNIT_ORDER_ATTACK_TARGET", {"cast": Action.Cast(abilitySlot=1)}, INCOMPLETE),
    ("DOTA_UNIT_ORDER_MOVE_TO_TARGET", {"moveToTarget": Action.MoveToTarget(target=1 << 30)}, "unseen"),
    ("DOTA_UNIT_ORDER_MOVE_DIRECTLY", {"moveDirectly": Action.MoveToLocation()}, INCOMPLETE),
    ("DOTA_UNIT_ORDER_CAST_TARGET", {"castTarget": Action.CastTarget(target=77)}, INCOMPLETE),
    ("DOTA_UNIT_ORDER_CAST_TARGET", {"cast": Action.Cast(abilitySlot=1)}, INCOMPLETE),
    ("DOTA_UNIT_ORDER_CAST_POSITION", {"cast": Action.Cast(abilitySlot=1)}, INCOMPLETE),
    ("DOTA_UNIT_ORDER_CAST_TARGET_TREE", {"cast": Action.Cast(abilitySlot=1)}, INCOMPLETE),
    ("DOTA_UNIT_ORDER_CAST_TARGET_TREE", {"castTree": Action.CastTree(abilitySlot=-1, tree=-1)}, "target"),
    ("DOTA_UNIT_ORDER_CAST_TOGGLE_AUTO", {"castToggle": Action.CastToggle(abilitySlot=-1)}, "slot"),
    ("DOTA_UNIT_ORDER_TRAIN_ABILITY", {"trainAbility": Action.TrainAbility(ability="lion_impale")}, NAME),
    ("DOTA_UNIT_ORDER_PICKUP_RUNE", {"pickupRune": Action.PickupRune(rune=9)}, "target"),
    ("DOTA_UNIT_ORDER_PICKUP_ITEM", {"pickUpItem": Action.PickUpItem(itemId=2)}, "item"),
    ("DOTA_UNIT_ORDER_PURCHASE_ITEM", {"purchaseItem": Action.PurchaseItem(item=99999)}, "item"),
    ("DOTA_UNIT_ORDER_PURCHASE_ITEM", {"purchaseItem": Action.PurchaseItem.FromString(b"\x12\x02\xff\xfe")}, "item"),
    ("DOTA_UNIT_ORDER_TRAIN_ABILITY", {"trainAbility": Action.TrainAbility.FromString(b"\x0a\x02\xff\xfe")}, NAME),
    ("DOTA_UNIT_ORDER_PURCHASE_ITEM", {}, INCOMPLETE),
    ("DOTA_UNIT_ORDER_SELL_ITEM", {"sellItem": Action.SellItem(item=1)}, "slot"),
    ("DOTA_UNIT_ORDER_DROP_ITEM", {"dropItem": Action.DropItem(slot=1)}, INCOMPLETE),
    ("DOTA_UNIT_ORDER_MOVE_ITEM", {"swapItems": Action.SwapItems(slot_a=1)}, INCOMPLETE),
]


@pytest.mark.parametrize(("kind", "data", "expected"), ORDERS)
def test_an_action_becomes_its_order(kind: str, data: dict[str, Any], expected: Order) -> None:
    assert order(kind, **data) == expected and expected.kind in KINDS


@pytest.mark.parametrize(("kind", "data", "reason"), IGNORED)
def test_other_actions_are_ignored_for_a_reason(kind: str, data: dict[str, Any], reason: str) -> None:
    assert order(kind, **data) == Ignored(reason) and (reason or "done") in OUTCOMES


def test_every_type_of_action_is_tested() -> None:
    assert {kind for kind, *_ in (*ORDERS, *IGNORED)} == set(Action.Type.keys())


def test_outcomes_hold_every_refusal() -> None:
    assert set(REFUSALS) < set(OUTCOMES) and len(set(OUTCOMES)) == len(OUTCOMES)

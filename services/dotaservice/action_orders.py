"""Translation of clients' actions (CMsgBotWorldState.Action) into orders of the game."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dota.play import Order
from dota.valve_ids import ValveIds
from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from five.services.dotaservice.metrics import INCOMPLETE, NAME, UNSUPPORTED

Action = CMsgBotWorldState.Action
Point = tuple[float, float]

# Errands by the numbers of Valve's COURIER_ACTION_*, as LastOrder-Dota2 (basic_action.py) lists them.
ERRANDS: Mapping[int, str] = {0: "return", 2: "stash", 3: "deliver", 4: "deliver", 6: "deliver"}


class ReferenceLookup(Protocol):
    """Lookup of the units, runes and items that the numbers in an action refer to, as far as a side knows them."""

    def unit(self, handle: int) -> tuple[int, int] | None:
        """Return slot and generation of the unit with that handle; None for a handle that was never sent."""

    def rune(self, number: int) -> Point | None:
        """Return the place of a rune by its index in rune_infos."""

    def dropped_item(self, item: int) -> Point | None:
        """Return the place of the nearest visible item of that number on the ground."""

    def item_slot(self, item: int) -> int | None:
        """Return the hero's slot that holds an item of that number."""


@dataclass(frozen=True)
class Ignored:
    """An action that becomes no order, with the reason; "" for one that asks for nothing."""

    reason: str = ""


def order_of(action: Action, hero: str, ids: ValveIds, lookup: ReferenceLookup) -> Order | Ignored:
    """Translate an action of the hero named ``hero``. Any action is accepted, whatever its numbers."""
    translate = _TRANSLATIONS.get(action.actionType)
    if translate is None:
        return Ignored(UNSUPPORTED)
    return translate(action, hero, ids, lookup)


Translate = Callable[[Action, str, ValveIds, ReferenceLookup], Order | Ignored]


def _data(action: Action, *names: str) -> Any:
    """Return the action's data if it is one of ``names``, else None."""
    which = action.WhichOneof("ActionData")
    return getattr(action, which) if which in names else None


def _located(kind: str, *names: str) -> Translate:
    """Translate an action at a location."""
    def translate(action: Action, hero: str, ids: ValveIds, lookup: ReferenceLookup) -> Order | Ignored:
        data = _data(action, *names)
        if data is None or not data.HasField("location"):
            return Ignored(INCOMPLETE)
        return Order(kind, at=(data.location.x, data.location.y))

    return translate


def _plain(kind: str) -> Translate:
    """Translate an action without data."""
    return lambda action, hero, ids, lookup: Order(kind)


def _nothing(action: Action, hero: str, ids: ValveIds, lookup: ReferenceLookup) -> Order | Ignored:
    return Ignored()


def _follow(action: Action, hero: str, ids: ValveIds, lookup: ReferenceLookup) -> Order | Ignored:
    data = _data(action, "moveToTarget")
    return Ignored(INCOMPLETE) if data is None else _at_unit(Order("follow"), data.target, lookup)


def _attack(action: Action, hero: str, ids: ValveIds, lookup: ReferenceLookup) -> Order | Ignored:
    data = _data(action, "attackTarget")
    return Ignored(INCOMPLETE) if data is None else _at_unit(Order("attack", once=data.once), data.target, lookup)


def _at_unit(order: Order, handle: int, lookup: ReferenceLookup) -> Order | Ignored:
    target = lookup.unit(handle)
    return Ignored("unseen") if target is None else Order(order.kind, target, order.at, order.slot, once=order.once)


def _cast(action: Action, hero: str, ids: ValveIds, lookup: ReferenceLookup) -> Order | Ignored:
    """Translate a cast: abilitySlot from 0 names an ability, below 0 the item in slot -1 - abilitySlot, as in
    LastOrder-Dota2 (basic_action.py)."""
    data = _data(action, "cast", "castLocation", "castTarget", "castTree", "castToggle")
    if data is None or not data.HasField("abilitySlot"):
        return Ignored(INCOMPLETE)
    slot = data.abilitySlot
    order = Order("cast", slot=slot) if slot >= 0 else Order("use", slot=-1 - slot)
    match action.actionType:
        case Action.DOTA_UNIT_ORDER_CAST_POSITION:
            if not isinstance(data, Action.CastLocation) or not data.HasField("location"):
                return Ignored(INCOMPLETE)
            return Order(order.kind, at=(data.location.x, data.location.y), slot=order.slot)
        case Action.DOTA_UNIT_ORDER_CAST_TARGET:
            return _at_unit(order, data.target, lookup) if isinstance(data, Action.CastTarget) else Ignored(INCOMPLETE)
        case Action.DOTA_UNIT_ORDER_CAST_TARGET_TREE:
            if not isinstance(data, Action.CastTree):
                return Ignored(INCOMPLETE)
            if not 0 <= data.tree < len(ids.trees):
                return Ignored("target")
            return Order(order.kind, at=ids.trees[data.tree], slot=order.slot)
        case Action.DOTA_UNIT_ORDER_CAST_TOGGLE_AUTO:
            return Order("toggle", slot=order.slot) if order.kind == "cast" else Ignored("slot")
        case _:
            return order


def _train(action: Action, hero: str, ids: ValveIds, lookup: ReferenceLookup) -> Order | Ignored:
    data = _data(action, "trainAbility")
    if data is None:
        return Ignored(INCOMPLETE)
    if (slot := ids.abilities[hero].get(data.ability)) is not None:
        return Order("level", slot=slot)
    talent = ids.talents[hero].get(data.ability)
    return Ignored(NAME) if talent is None else Order("talent", slot=talent)


def _drop(action: Action, hero: str, ids: ValveIds, lookup: ReferenceLookup) -> Order | Ignored:
    data = _data(action, "dropItem")
    if data is None or not data.HasField("location") or not data.HasField("slot"):
        return Ignored(INCOMPLETE)
    return Order("drop", at=(data.location.x, data.location.y), slot=data.slot)


def _pick_up_item(action: Action, hero: str, ids: ValveIds, lookup: ReferenceLookup) -> Order | Ignored:
    data = _data(action, "pickUpItem")
    if data is None or not data.HasField("itemId"):
        return Ignored(INCOMPLETE)
    place = lookup.dropped_item(data.itemId)
    return Ignored("item") if place is None else Order("pickup", at=place)


def _pick_up_rune(action: Action, hero: str, ids: ValveIds, lookup: ReferenceLookup) -> Order | Ignored:
    data = _data(action, "pickupRune")
    if data is None or not data.HasField("rune"):
        return Ignored(INCOMPLETE)
    place = lookup.rune(data.rune)
    return Ignored("target") if place is None else Order("pickup", at=place)


def _buy(action: Action, hero: str, ids: ValveIds, lookup: ReferenceLookup) -> Order | Ignored:
    data = _data(action, "purchaseItem")
    if data is None or not (data.item_name or data.HasField("item")):
        return Ignored(INCOMPLETE)
    name = data.item_name or ids.items.get(data.item, "")
    # proto2 gives text that is not UTF-8 as bytes.
    return Order("buy", item=name) if name and isinstance(name, str) else Ignored("item")


def _sell(action: Action, hero: str, ids: ValveIds, lookup: ReferenceLookup) -> Order | Ignored:
    data = _data(action, "sellItem")
    if data is None or not (data.HasField("slot") or data.HasField("item")):
        return Ignored(INCOMPLETE)
    slot = data.slot if data.HasField("slot") else lookup.item_slot(data.item)
    return Ignored("slot") if slot is None else Order("sell", slot=slot)


def _swap(action: Action, hero: str, ids: ValveIds, lookup: ReferenceLookup) -> Order | Ignored:
    data = _data(action, "swapItems")
    if data is None or not (data.HasField("slot_a") and data.HasField("slot_b")):
        return Ignored(INCOMPLETE)
    return Order("swap", slot=data.slot_a, to=data.slot_b)


def _courier(action: Action, hero: str, ids: ValveIds, lookup: ReferenceLookup) -> Order | Ignored:
    data = _data(action, "courier")
    if data is None or not data.HasField("action"):
        return Ignored(INCOMPLETE)
    errand = ERRANDS.get(data.action)
    return Ignored(UNSUPPORTED) if errand is None else Order("courier", item=errand)


_TRANSLATIONS: Mapping[int, Translate] = {
    Action.DOTA_UNIT_ORDER_NONE: _nothing,
    Action.DOTA_UNIT_ORDER_CONTINUE: _nothing,
    Action.ACTION_CHAT: _nothing,
    Action.DOTA_UNIT_ORDER_MOVE_TO_POSITION: _located("move", "moveToLocation", "moveDirectly"),
    Action.DOTA_UNIT_ORDER_MOVE_DIRECTLY: _located("move", "moveDirectly", "moveToLocation"),
    Action.DOTA_UNIT_ORDER_MOVE_TO_TARGET: _follow,
    Action.DOTA_UNIT_ORDER_ATTACK_MOVE: _located("attack_move", "attackMove"),
    Action.DOTA_UNIT_ORDER_ATTACK_TARGET: _attack,
    Action.DOTA_UNIT_ORDER_CAST_POSITION: _cast,
    Action.DOTA_UNIT_ORDER_CAST_TARGET: _cast,
    Action.DOTA_UNIT_ORDER_CAST_TARGET_TREE: _cast,
    Action.DOTA_UNIT_ORDER_CAST_NO_TARGET: _cast,
    Action.DOTA_UNIT_ORDER_CAST_TOGGLE: _cast,
    Action.DOTA_UNIT_ORDER_CAST_TOGGLE_AUTO: _cast,
    Action.DOTA_UNIT_ORDER_HOLD_POSITION: _plain("hold"),
    Action.DOTA_UNIT_ORDER_STOP: _plain("stop"),
    Action.DOTA_UNIT_ORDER_TRAIN_ABILITY: _train,
    Action.DOTA_UNIT_ORDER_DROP_ITEM: _drop,
    Action.DOTA_UNIT_ORDER_PICKUP_ITEM: _pick_up_item,
    Action.DOTA_UNIT_ORDER_PICKUP_RUNE: _pick_up_rune,
    Action.DOTA_UNIT_ORDER_PURCHASE_ITEM: _buy,
    Action.DOTA_UNIT_ORDER_SELL_ITEM: _sell,
    Action.DOTA_UNIT_ORDER_MOVE_ITEM: _swap,
    Action.ACTION_SWAP_ITEMS: _swap,
    Action.DOTA_UNIT_ORDER_BUYBACK: _plain("buyback"),
    Action.DOTA_UNIT_ORDER_GLYPH: _plain("glyph"),
    Action.ACTION_USE_SHRINE: _plain("shrine"),
    Action.ACTION_COURIER: _courier,
}

"""Each kind of order calls one function of the bot API, or is refused with a reason."""

from pathlib import Path
from typing import Any

import pytest

from five.real_client.action_files import ActionFile
from tests.real_client.bot_vm import At, UnitHandle
from tests.real_client.recording_api import COURIER, CREEP, FIRST, RecordingApi, start_bots
from tests.real_client.test_bot_generic import reports, tick

AT = {"location": {"x": 100.5, "y": -200}}
POINT = At(100.5, -200, 0)
CALLS = [
    ("DOTA_UNIT_ORDER_STOP", {}, ("Action_ClearActions", True)),
    ("DOTA_UNIT_ORDER_HOLD_POSITION", {}, ("Action_ClearActions", True)),
    ("DOTA_UNIT_ORDER_MOVE_TO_POSITION", {"moveToLocation": AT}, ("Action_MoveToLocation", POINT)),
    ("DOTA_UNIT_ORDER_MOVE_DIRECTLY", {"moveDirectly": {"location": {"x": 1, "y": 2, "z": 3}}},
     ("Action_MoveDirectly", At(1, 2, 3))),
    ("DOTA_UNIT_ORDER_MOVE_TO_TARGET", {"moveToTarget": {"target": 77}}, ("Action_MoveToUnit", UnitHandle(CREEP))),
    ("DOTA_UNIT_ORDER_ATTACK_MOVE", {"attackMove": AT}, ("Action_AttackMove", POINT)),
    ("DOTA_UNIT_ORDER_ATTACK_TARGET", {"attackTarget": {"target": 77, "once": True}},
     ("Action_AttackUnit", UnitHandle(CREEP), True)),
    ("DOTA_UNIT_ORDER_ATTACK_TARGET", {"attackTarget": {"target": 77}},
     ("Action_AttackUnit", UnitHandle(CREEP), False)),
    ("DOTA_UNIT_ORDER_CAST_NO_TARGET", {"cast": {"abilitySlot": 2}}, ("Action_UseAbility", "ability2")),
    ("DOTA_UNIT_ORDER_CAST_NO_TARGET", {"cast": {"abilitySlot": -1}}, ("Action_UseAbility", "item0")),
    ("DOTA_UNIT_ORDER_CAST_TARGET", {"castTarget": {"abilitySlot": 0, "target": 77}},
     ("Action_UseAbilityOnEntity", "ability0", UnitHandle(CREEP))),
    ("DOTA_UNIT_ORDER_CAST_POSITION", {"castLocation": {"abilitySlot": -4, **AT}},
     ("Action_UseAbilityOnLocation", "item3", POINT)),
    ("DOTA_UNIT_ORDER_CAST_TARGET_TREE", {"castTree": {"abilitySlot": -2, "tree": 1234}},
     ("Action_UseAbilityOnTree", "item1", 1234)),
    ("DOTA_UNIT_ORDER_CAST_TOGGLE", {"castToggle": {"abilitySlot": 1}}, ("ToggleAutoCast", "ability1")),
    ("DOTA_UNIT_ORDER_TRAIN_ABILITY", {"trainAbility": {"ability": "sniper_shrapnel"}},
     ("ActionImmediate_LevelAbility", "sniper_shrapnel")),
    ("DOTA_UNIT_ORDER_TRAIN_ABILITY", {"trainAbility": {"slot": 5}}, ("ActionImmediate_LevelAbility", "ability5")),
    ("DOTA_UNIT_ORDER_PURCHASE_ITEM", {"purchaseItem": {"itemName": "item_tango"}},
     ("ActionImmediate_PurchaseItem", "item_tango")),
    ("DOTA_UNIT_ORDER_SELL_ITEM", {"sellItem": {"slot": 3}}, ("ActionImmediate_SellItem", "item3")),
    ("DOTA_UNIT_ORDER_DROP_ITEM", {"dropItem": {"slot": 4, **AT}}, ("Action_DropItem", "item4", POINT)),
    ("DOTA_UNIT_ORDER_PICKUP_RUNE", {"pickupRune": {"rune": 3}}, ("Action_PickUpRune", 3)),
    ("ACTION_USE_SHRINE", {"useShrine": {"shrine": 77}}, ("Action_UseShrine", UnitHandle(CREEP))),
    ("ACTION_SWAP_ITEMS", {"swapItems": {"slotA": 0, "slotB": 7}}, ("ActionImmediate_SwapItems", 0, 7)),
    ("ACTION_COURIER", {"courier": {"action": 6}}, ("ActionImmediate_Courier", UnitHandle(COURIER), 6)),
    ("DOTA_UNIT_ORDER_GLYPH", {}, ("ActionImmediate_Glyph",)),
    ("ACTION_CHAT", {"chat": {"message": "it's \\ \"é\"", "toAllchat": True}},
     ("ActionImmediate_Chat", "it's \\ \"é\"", True)),
]
REFUSED = [
    ("DOTA_UNIT_ORDER_BUYBACK", {}, "alive"),
    ("DOTA_UNIT_ORDER_ATTACK_TARGET", {"attackTarget": {"target": -1}}, "no target"),
    ("DOTA_UNIT_ORDER_ATTACK_TARGET", {"attackTarget": {"target": 4294967295}}, "no target"),
    ("DOTA_UNIT_ORDER_ATTACK_TARGET", {"attackTarget": {"target": 5}}, "no unit 5"),
    ("ACTION_USE_SHRINE", {"useShrine": {"shrine": 5}}, "no unit 5"),
    ("DOTA_UNIT_ORDER_CAST_NO_TARGET", {"cast": {"abilitySlot": 9}}, "nothing in slot 9"),
    ("DOTA_UNIT_ORDER_CAST_TARGET", {"castTarget": {"abilitySlot": 9, "target": 77}}, "nothing in slot 9"),
    ("DOTA_UNIT_ORDER_TRAIN_ABILITY", {"trainAbility": {"slot": 20}}, "nothing in slot 20"),
    ("DOTA_UNIT_ORDER_TAUNT", {}, "unknown order DOTA_UNIT_ORDER_TAUNT"),
    ("DOTA_UNIT_ORDER_MOVE_DIRECTLY", {}, "error:"),
]


def run_order(folder: Path, kind: str, fields: dict[str, Any]) -> RecordingApi:
    """Send one order to the hero of player 1 and let the bots think twice."""
    api, vm = start_bots(folder)
    ActionFile(folder / "bots", 2).write([{"actionType": kind, "player": 1, **fields}], 0.0, 1.0)
    tick(api, vm)
    tick(api, vm)
    return api


@pytest.mark.parametrize(("kind", "fields", "call"), CALLS)
def test_an_order_calls_the_api_once(tmp_path: Path, kind: str, fields: dict[str, Any], call: tuple[Any, ...]) -> None:
    api = run_order(tmp_path, kind, fields)
    assert api.calls[1] == [call]
    assert [(r["executed"], r["refused"]) for r in reports(api, "done")] == [(1, 0)]


@pytest.mark.parametrize(("kind", "fields", "reason"), REFUSED)
def test_an_impossible_order_is_refused(tmp_path: Path, kind: str, fields: dict[str, Any], reason: str) -> None:
    api = run_order(tmp_path, kind, fields)
    assert not api.calls[1]
    (report,) = reports(api, "done")
    assert (report["executed"], report["refused"]) == (0, 1) and report["reason"].startswith(reason)


def test_a_dead_target_is_refused(tmp_path: Path) -> None:
    api, vm = start_bots(tmp_path)
    api.dead.add(CREEP)
    ActionFile(tmp_path / "bots", 2).write([{"actionType": "DOTA_UNIT_ORDER_ATTACK_TARGET", "player": 1,
                                            "attackTarget": {"target": 77}}], 0.0, 1.0)
    tick(api, vm)
    assert [r["reason"] for r in reports(api, "done")] == ["no unit 77"]


def test_a_dead_hero_can_buy_back(tmp_path: Path) -> None:
    api, vm = start_bots(tmp_path)
    api.dead.add(FIRST + 1)
    ActionFile(tmp_path / "bots", 2).write([{"actionType": "DOTA_UNIT_ORDER_BUYBACK", "player": 1}], 0.0, 1.0)
    tick(api, vm)
    assert api.calls[1] == [("ActionImmediate_Buyback",)]


@pytest.mark.parametrize(("item", "tree", "call"), [
    ("item_tango", 55, ("Action_UseAbilityOnTree", "item_tango", 55)),
    ("item_quelling_blade", 55, ("Action_UseAbilityOnTree", "item_quelling_blade", 55)),
    ("item_flask", 55, ("Action_UseAbility", "item_flask")),
    ("item_tango", None, None),
])
def test_items_for_trees_are_used_on_the_nearest(tmp_path: Path, item: str, tree: int | None,
                                                 call: tuple[Any, ...] | None) -> None:
    api, vm = start_bots(tmp_path)
    known = api.call
    api.call = lambda handle, method, *given: {  # type: ignore[method-assign]
        "GetItemInSlot": item, "GetNearbyTrees": tree}.get(method) or (
            None if method == "GetNearbyTrees" else known(handle, method, *given))
    ActionFile(tmp_path / "bots", 2).write([{"actionType": "DOTA_UNIT_ORDER_CAST_NO_TARGET", "player": 1,
                                            "cast": {"abilitySlot": -3}}], 0.0, 1.0)
    tick(api, vm)
    assert api.calls[1] == ([call] if call else [])
    (report,) = reports(api, "done")
    assert report.get("reason") == (None if call else "no tree")

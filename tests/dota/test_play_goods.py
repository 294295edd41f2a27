"""Orders about gold and items (shops, slots, ground, courier), and about levels, glyph and shrines."""

import json
import math
from typing import Any

import pytest

from dota.events import EventKind
from dota.play import InteractiveGame, Order
from dota.spaces import DATA
from dota.tables import load_tables
from tests.dota.playing import MIDDLE, SCHEMA, frames, handle, order, place, played, seen, unit
from tests.dota.watching import duel

PATCH = duel().patch
RULES = json.loads((DATA / f"dota-{PATCH}/rules.json").read_text())["rules"]
TALENT_LEVEL_XP = 6000  # well past level 10, short of 15


def at_home(gold: float = 0, **changes: Any) -> InteractiveGame:
    """Place the person's hero at its fountain, with additional gold."""
    game = InteractiveGame(duel(**changes), 1)
    game.take(0, True)
    game._vec._core.give_gold(0, 0, gold)
    frames(game, 4)
    return game


def items(game: InteractiveGame) -> list[str]:
    held: list[str] = unit(game, 0)["items"]
    return held


def test_buying_an_item_combines_its_components() -> None:
    game = at_home(gold=3000)
    gold = unit(game, 0)["gold"]
    assert order(game, "buy", item="item_sange").ok
    assert "item_sange" in items(game)
    assert gold - 2100 < unit(game, 0)["gold"] < gold - 2000 + 10


def test_buying_an_item_without_enough_gold_buys_components() -> None:
    game = at_home(gold=1300)
    assert order(game, "buy", item="item_sange").ok
    assert "item_sange" not in items(game) and {"item_ogre_axe", "item_belt_of_strength"} & set(items(game))
    assert order(game, "buy", item="item_sange") == (False, "gold")


def test_items_out_of_stock_are_refused() -> None:
    game = at_home(gold=5000)
    bought, left = 0, in_stock(game)["item_ward_observer"][0]
    while (verdict := order(game, "buy", item="item_ward_observer")).ok:
        bought += 1
        assert in_stock(game)["item_ward_observer"][0] == left - bought
    assert bought == left > 0 and verdict.reason == "stock"


def in_stock(game: InteractiveGame) -> dict[str, tuple[int, int]]:
    """Return Radiant's view of its shop: by item the stock and the time of the next restock, 0 for none."""
    names = load_tables(PATCH).items
    return {names[item - 1]: (int(left), int(following)) for item, left, following in seen(game, 0)["stock"] if item}


def test_team_sees_its_shop_stock_and_restock_times() -> None:
    game = at_home(gold=5000)
    data = json.loads((DATA / f"dota-{PATCH}" / "items.json").read_text())["items"]
    shown = in_stock(game)
    assert shown.keys() == {"item_gem", "item_smoke_of_deceit", "item_ward_observer", "item_infused_raindrop",
                            "item_tome_of_knowledge"}
    for name, (left, following) in shown.items():
        assert left == data[name].get("stock_initial", data[name]["stock_max"])
        assert bool(following) == (left < data[name]["stock_max"])  # no restock while the stock is full
    # Times of a frame are ticks of 1/15 s since 100 s before the horn.
    assert shown["item_infused_raindrop"] == (0, (data["item_infused_raindrop"]["stock_first_time"] + 100) * 15)
    assert order(game, "buy", item="item_smoke_of_deceit").ok
    left, following = in_stock(game)["item_smoke_of_deceit"]
    due = game.time + data["item_smoke_of_deceit"]["stock_time"]
    assert left == 2 and following == pytest.approx((due + 100) * 15, abs=3)


def test_tomes_of_knowledge_run_out_and_come_back() -> None:
    """The stock is empty at first, gets a tome at the time in the data and another after each interval."""
    data = json.loads((DATA / f"dota-{PATCH}" / "items.json").read_text())["items"]["item_tome_of_knowledge"]
    first = data["stock_first_time"]
    game = at_home(gold=5000, mode="5v5")  # a duel would be over by then
    assert in_stock(game)["item_tome_of_knowledge"] == (0, (first + 100) * 15)
    assert order(game, "buy", item="item_tome_of_knowledge") == (False, "stock")
    frames(game, 30 * first)
    left, following = in_stock(game)["item_tome_of_knowledge"]
    assert left == 1 and following == pytest.approx((first + data["stock_time"] + 100) * 15, abs=3)
    assert order(game, "buy", item="item_tome_of_knowledge").ok
    assert order(game, "buy", item="item_tome_of_knowledge") == (False, "stock")


def test_full_inventory_refuses_until_an_item_is_sold() -> None:
    game = at_home(gold=20000, courier="direct")
    while order(game, "buy", item="item_boots").ok:
        pass
    assert order(game, "buy", item="item_boots") == (False, "full")
    slot = items(game).index("item_boots")
    gold = unit(game, 0)["gold"]
    assert order(game, "sell", slot=slot).ok
    assert items(game)[slot] == "" and gold + 400 < unit(game, 0)["gold"] < gold + 600  # sold at once, for all of it
    assert order(game, "sell", slot=slot) == (False, "slot")
    for bad in (-1, 16, 1000):
        assert order(game, "sell", slot=bad) == (False, "slot")


def test_remote_purchases_go_to_the_stash_and_by_courier() -> None:
    game = at_home(gold=3000, courier="scripted")
    place(game, 0, *MIDDLE)
    frames(game, 4)
    slot = next(k for k, item in enumerate(items(game)) if item)
    assert order(game, "sell", slot=slot) == (False, "shop")
    assert order(game, "courier", item="deliver") == (False, "courier")  # there is nothing to deliver
    assert order(game, "buy", item="item_boots").ok
    assert items(game)[9] == "item_boots"
    assert order(game, "swap", slot=9, to=5) == (False, "shop")
    assert order(game, "courier", item="dance") == (False, "unknown")
    frames(game, 60)
    assert items(game)[9] == "item_boots"  # no script sends the courier
    assert order(game, "courier", item="deliver").ok
    assert order(game, "courier", item="deliver") == (False, "busy")
    frames(game, 30)
    assert order(game, "courier", item="return").ok
    frames(game, 150)
    assert items(game)[9] == "item_boots"
    assert order(game, "courier", item="deliver").ok
    for _ in range(100):
        frames(game, 30)
        if not items(game)[9]:
            break
    assert "item_boots" in items(game)[:9]


def test_items_of_the_secret_shop() -> None:
    game = at_home(gold=5000, courier="scripted")
    assert order(game, "buy", item="item_mystic_staff") == (False, "shop")


def test_swapping_slots_starts_the_backpack_cooldown() -> None:
    game = at_home(gold=1000)
    first, second = items(game)[0], items(game)[2]
    assert first != second
    assert order(game, "swap", slot=0, to=2).ok
    assert items(game)[0] == second and items(game)[2] == first
    assert order(game, "swap", slot=0, to=7).ok
    frames(game, 30)
    assert items(game)[7] == second and items(game)[0] == ""  # no script puts it back
    for slot, to, reason in ((0, 1, "slot"), (1, 1, "slot"), (1, 15, "slot"), (15, 1, "slot"), (-1, 1, "slot"),
                             (1, 99, "slot")):
        assert order(game, "swap", slot=slot, to=to) == (False, reason)


def test_drop_and_pickup() -> None:
    game = played()
    slot = items(game).index("item_branches")
    assert order(game, "drop", slot=slot) == (False, "target")
    there = (MIDDLE[0] + 400, MIDDLE[1])
    assert order(game, "drop", slot=slot, at=there).ok
    frames(game, 90)
    assert items(game)[slot] == ""
    (lies,) = [row for row in seen(game, 0)["ground_item"] if row.any()]
    assert lies[0] > 0
    frames(game, 60)
    assert items(game)[slot] == ""  # no script picks it up again
    assert order(game, "pickup", at=(MIDDLE[0] - 900, MIDDLE[1])) == (False, "target")
    order(game, "move", at=(MIDDLE[0] - 200, MIDDLE[1]))
    frames(game, 90)
    assert order(game, "pickup", at=there).ok
    frames(game, 120)
    assert items(game)[slot] == "item_branches" and not seen(game, 0)["ground_item"].any()


def test_a_rune_is_taken() -> None:
    game = played(runes=True)
    frames(game, 8)
    spots = [(u[1], u[2]) for u in seen(game, None)["rune"] if u[0]]
    x, y = (float(v) / 65535 * 16640 - 8320 for v in spots[0])
    assert order(game, "pickup", at=(x, y)) == (False, "target")  # the team has not seen it
    place(game, 0, x - 300, y)
    frames(game, 8)
    gold = unit(game, 0)["gold"]
    assert order(game, "pickup", at=(x, y)).ok
    frames(game, 60)
    assert unit(game, 0)["gold"] > gold + 30


def test_one_talent_per_level() -> None:
    game = played()
    for slot in (-1, 8, 300):
        assert order(game, "talent", slot=slot) == (False, "slot")
    verdicts = {order(game, "talent", slot=slot).reason for slot in range(8)}
    assert verdicts == {"level"}
    game._vec._core.give_xp(0, 0, TALENT_LEVEL_XP)
    taken = [slot for slot in range(8) if order(game, "talent", slot=slot).ok]
    assert len(taken) == 1
    assert sorted(order(game, "talent", slot=slot).reason for slot in range(8)) == ["level"] * 6 + ["taken"] * 2


def test_toggle_switches_autocast() -> None:
    game = played("viper")
    slot = next(k for k, (name, _, _) in enumerate(unit(game, 0)["abilities"]) if name == "viper_poison_attack")
    other = next(k for k, (name, _, _) in enumerate(unit(game, 0)["abilities"]) if name == "viper_nethertoxin")
    assert order(game, "toggle", slot=other) == (False, "slot")
    assert order(game, "toggle", slot=-1) == (False, "slot")
    if not unit(game, 0)["abilities"][slot][1]:
        assert order(game, "toggle", slot=slot) == (False, "not_learned")
        game._vec._core.give_xp(0, 0, 300)
        assert order(game, "level", slot=slot).ok
    game.take(5, True)
    place(game, 5, MIDDLE[0] + 300, MIDDLE[1])
    order(game, "hold", 5)
    frames(game, 4)

    def spent() -> float:
        before: float = unit(game, 0)["mana"]
        order(game, "attack", target=handle(unit(game, 5)))
        frames(game, 60)
        order(game, "stop")
        return before - float(unit(game, 0)["mana"])

    assert spent() <= 0
    assert order(game, "toggle", slot=slot).ok
    assert spent() > 10


def test_glyph_and_shrine() -> None:
    game = InteractiveGame(duel().model_copy(update={"mode": "5v5", "start_seconds": 0.0}), 1)
    game.take(0, True)
    frames(game, 4)
    reason = order(game, "glyph").reason
    if reason:
        assert reason == "cooldown"
        while not game.order(0, Order("glyph")).ok:
            frames(game, 40)
            assert game.time < 400
        frames(game, 1)
    assert order(game, "glyph") == (False, "cooldown")
    if order(game, "shrine").reason == "cooldown":
        while game.order(0, Order("shrine")).reason:
            frames(game, 40)
            assert game.time < 400
    shrines = [u for u in game.spectate()["units"] if u["kind"] == "shrine" and u["team"] == 0]
    at = shrines[0]
    place(game, 0, at["x"] - 900, at["y"])
    game._vec._core.set_hp(0, unit(game, 0)["slot"], 100.0)
    assert order(game, "shrine").ok
    frames(game, 210)
    body = unit(game, 0)
    assert math.dist((body["x"], body["y"]), (at["x"], at["y"])) < 700 and body["hp"] > 200


def test_queued_orders_run_in_sequence() -> None:
    game = played()
    corner = (MIDDLE[0] + 400, MIDDLE[1])
    assert order(game, "move", at=corner).ok
    assert order(game, "move", at=(MIDDLE[0] + 400, MIDDLE[1] + 400), queue=True).ok
    assert order(game, "drop", slot=0, at=(MIDDLE[0] + 400, MIDDLE[1] + 500), queue=True).ok
    frames(game, 50)
    body = unit(game, 0)
    assert body["y"] < MIDDLE[1] + 200 and items(game)[0]
    frames(game, 160)
    assert unit(game, 0)["y"] > MIDDLE[1] + 250 and not items(game)[0]
    order(game, "move", at=MIDDLE)
    for _ in range(16):
        assert order(game, "move", at=corner, queue=True).ok
    assert order(game, "move", at=corner, queue=True) == (False, "full")
    assert order(game, "stop").ok
    assert order(game, "attack", target=(383, 9), queue=True) == (False, "unseen")
    assert order(game, "move", queue=True) == (False, "target")
    at = unit(game, 0)["x"]
    frames(game, 60)
    assert abs(unit(game, 0)["x"] - at) < 5  # an order at once ends what was queued


@pytest.mark.parametrize("kind", ["buy", "sell", "swap", "level", "talent", "toggle", "glyph", "courier"])
def test_orders_without_a_body_keep_the_current_order(kind: str) -> None:
    game = played()
    game._vec._core.give_gold(0, 0, 1000)
    order(game, "move", at=(MIDDLE[0] + 600, MIDDLE[1]))
    game.order(0, Order(kind, slot=0, to=1, item="item_branches"))
    frames(game, 2)
    assert unit(game, 0)["order"] == 3


def scans(game: InteractiveGame, team: int) -> dict[str, int]:
    """Return the row of a team's own scan in its view."""
    fields = SCHEMA.table("scan").fields
    return dict(zip(fields, (int(v) for v in seen(game, team)["scan"][team]), strict=True))


def test_scan_reports_an_enemy_hero() -> None:
    game = InteractiveGame(duel(), 1)
    game.take(0, True)
    rule = RULES["scan"]
    assert order(game, "scan", at=MIDDLE) == (False, "cooldown")
    while game.time < rule["ready_first_at_s"]:
        game.step()
    place(game, 5, MIDDLE[0] + rule["radius"] + 200, MIDDLE[1])
    assert game.order(0, Order("scan")) == (False, "target")
    assert order(game, "scan", at=MIDDLE).ok
    assert EventKind.SCAN in {e.kind for e in game.events(0)}
    assert not {EventKind.SCAN, EventKind.SCAN_FOUND} & {e.kind for e in game.events(1)}
    began = game.time
    told = scans(game, 0)
    assert (told["radius"], told["found"]) == (rule["radius"], 0) and told["until"] > 0
    assert not seen(game, 1)["scan"].any(axis=1)[0]  # the other team's row is empty
    place(game, 5, MIDDLE[0] + rule["radius"] - 100, MIDDLE[1])
    frames(game, 2)
    assert scans(game, 0)["found"] == 1
    assert order(game, "scan", at=MIDDLE) == (False, "cooldown")
    while game.time < began + rule["duration_s"] + 0.2:
        frames(game, 1)
    assert (scans(game, 0)["until"], scans(game, 0)["found"]) == (0, 0)
    # The cooldown counts from the start of the scan.
    assert scans(game, 0)["ready"] == pytest.approx((began + rule["cooldown_s"] + 100) * 15, abs=1)


def test_a_scan_of_an_empty_area_finds_nothing() -> None:
    game = InteractiveGame(duel(), 1)
    game.take(0, True)
    while game.time < RULES["scan"]["ready_first_at_s"]:
        game.step()
    assert order(game, "scan", at=(-6000, 6000)).ok
    told = set[EventKind]()
    for _ in range(round(RULES["scan"]["duration_s"] * 30) + 10):
        frames(game, 1)
        told |= {e.kind for e in game.events(0)}
    assert EventKind.SCAN_FOUND not in told and scans(game, 0)["found"] == 0


def test_view_before_the_first_scan_is_empty() -> None:
    """In the middle of the map, before the horn."""
    game = InteractiveGame(duel(start_seconds=-20.0), 1)
    game.take(0, True)
    place(game, 5, 0, 0)
    told = set[EventKind]()
    for _ in range(30):
        frames(game, 1)
        told |= {e.kind for e in game.events(0)}
    assert game.time < 0 and EventKind.SCAN_FOUND not in told

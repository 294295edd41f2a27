"""Shop locations, courier deliveries and refunds of the scripted buyer (rules.json inventory.shops)."""

import math
from typing import Any

import pytest

from tests.dota.scenes.patches import FILES, QUIET


def names(world: Any, hero: int = 0, slots: slice = slice(0, 16)) -> list[str]:
    return [i[0].removeprefix("item_") for i in world.hero(hero)["items"][slots] if i is not None]


HAND, STASH = slice(0, 9), slice(9, 15)


@pytest.fixture
def away(new_world: Any) -> Any:
    """Return a hero on the river without items; a scripted courier; no consumables are kept."""

    def make(hero: str = "nevermore", at: tuple[float, float] = (-500, -400), **settings: Any) -> Any:
        world = new_world((hero,), courier_scripted=True, keep_teleport=0, **settings)
        world.set_unit(world.hero(0)["unit"], x=at[0], y=at[1])
        world.order(world.hero(0)["unit"], "hold")
        world.clear_items(0)
        world.set_gold(0, 0)
        return world

    return make


def test_a_recipe_is_flown_to_its_parts(away: Any) -> None:
    """Wraith Band: circlet and slippers are with him, the recipe is bought at home and comes by courier."""
    world = away()
    for item in ("circlet", "slippers"):
        world.give_item(0, item)
    world.set_gold(0, 215)
    world.step(8)
    hero = world.hero(0)
    assert hero["gold"] < 10 and hero["recipe"] == "item_wraith_band"
    assert "wraith_band" not in names(world) and "circlet" in names(world)
    assert hero["net_worth"] == pytest.approx(155 + 145 + 215, abs=10)
    world.clear_signals()
    started = world.time
    while "wraith_band" not in names(world, slots=HAND):
        world.step(1)
        assert world.time - started < 60
    # 8,900 units at 380 a second, for a walking courier.
    assert world.time - started > 15
    assert "circlet" not in names(world) and world.hero(0)["recipe"] is None
    assert world.hero(0)["build_next"] == 1
    assert world.hero(0)["signals"]["gold_spent"] == 0


def test_a_free_recipe_needs_no_courier(away: Any) -> None:
    """Power Treads' components combine where they meet."""
    world = away("sven")
    for item in ("magic_wand", "boots", "gloves", "belt_of_strength"):
        world.give_item(0, item)
    world.step(40)
    assert "power_treads" in names(world) or world.hero(0)["build_next"] == 0


def test_a_recipe_whose_part_is_gone_is_paid_back(away: Any) -> None:
    world = away()
    for item in ("circlet", "slippers"):
        world.give_item(0, item)
    world.set_gold(0, 215)
    world.step(8)
    assert world.hero(0)["recipe"] == "item_wraith_band"
    world.clear_items(0)
    world.set_gold(0, -5000)
    world.step(int(40 * 7.5))
    assert world.hero(0)["recipe"] is None and "wraith_band" not in names(world)
    assert world.hero(0)["gold"] == pytest.approx(-5000 + 215 + 40 / 0.66, abs=12)


def test_at_home_he_makes_it_himself(away: Any) -> None:
    world = away()
    hero = world.hero(0)["unit"]
    for item in ("circlet", "slippers"):
        world.give_item(0, item)
    world.set_gold(0, 215)
    world.step(8)
    assert world.hero(0)["recipe"] == "item_wraith_band"
    home = next(u for u in world.units("fountain") if u["team"] == 0)
    world.set_unit(hero, x=home["x"], y=home["y"])
    world.step(int(30 * 7.5))
    assert "wraith_band" in names(world, slots=HAND)


def test_a_scroll_is_flown(new_world: Any) -> None:
    world = new_world(courier_scripted=True, keep_teleport=1)
    world.set_unit(world.hero(0)["unit"], x=-500, y=-400)
    world.order(world.hero(0)["unit"], "hold")
    world.clear_items(0)
    world.set_gold(0, 52)
    world.step(8)
    assert names(world, slots=STASH) == ["tpscroll"] and world.hero(0)["items"][15] is None
    world.set_gold(0, -5000)
    world.step(int(45 * 7.5))
    assert world.hero(0)["items"][15] == ("item_tpscroll", 1)


@pytest.mark.parametrize("home", [True, False])
def test_scrolls_of_the_stash_join_the_others(new_world: Any, home: bool) -> None:
    """Taken at home or delivered: none is lost or duplicated."""
    world = new_world(courier_scripted=True, keep_teleport=2)
    hero = world.hero(0)["unit"]
    base = world.unit(hero)
    world.set_unit(hero, x=-500, y=-400)
    world.order(hero, "hold")
    world.clear_items(0)
    assert world.give_item(0, "tpscroll", 1)
    world.set_gold(0, 52)
    world.step(8)
    assert names(world, slots=STASH) == ["tpscroll"] and world.hero(0)["items"][15] == ("item_tpscroll", 1)
    world.set_gold(0, -5000)
    if home:
        world.set_unit(hero, x=base["x"], y=base["y"])
    world.step(15 if home else int(45 * 7.5))
    assert world.hero(0)["items"][15] == ("item_tpscroll", 2) and names(world, slots=STASH) == []


SIDE, SECRET = (7597, -4087), (-4891, 1466)


def test_side_shops_sell_the_items_of_the_data(core: Any, tables: Any, data: dict[str, Any]) -> None:
    for name, item in data["items"]["items"].items():
        loaded = tables.item(name)
        assert loaded["side_shop"] == bool(item.get("side_shop", 0))
        assert loaded["secret_only"] == bool(item.get("secret_shop", 0) and not item.get("global_shop", 0))


def test_purchases_at_a_side_shop_need_no_courier(away: Any) -> None:
    """A stick is sold there: the hero has it at once, and the courier is not used."""
    world = away("sven", at=SIDE)
    world.give_item(0, "magic_wand")
    world.set_gold(0, 510)
    world.clear_signals()
    world.step(30)
    assert "magic_stick" in names(world, slots=HAND)
    assert world.hero(0)["signals"]["gold_spent"] > 0
    far = away("sven")
    far.give_item(0, "magic_wand")
    far.set_gold(0, 510)
    far.step(30)
    assert names(far, slots=HAND) == ["magic_wand"]


def build_of(data: dict[str, Any], core: Any, hero: str, item: str) -> Any:
    """Return tables in which a hero wants only this item."""
    import copy

    heroes = copy.deepcopy(data["heroes"])
    heroes["heroes"]["npc_dota_hero_" + hero]["item_build"] = {"start": [], "order": ["item_" + item]}
    return core.load_tables(*(heroes if f == "heroes" else data[f] for f in FILES))


def test_the_courier_goes_to_the_secret_shop(core: Any, data: dict[str, Any]) -> None:
    """A Demon Edge is sold only there: the gold is spent when the courier arrives, and the courier delivers it."""
    tables = build_of(data, core, "sven", "demon_edge")
    settings = QUIET | {"courier_scripted": True, "keep_teleport": 0}
    world = core.World(tables, settings, ["sven"], ["axe"], 1)
    world.set_unit(world.hero(0)["unit"], x=-500, y=-400)
    world.order(world.hero(0)["unit"], "hold")
    world.clear_items(0)
    world.set_gold(0, 2200)
    nearest, paid_at = 1e9, None
    for _ in range(int(90 * 7.5)):
        world.step(1)
        courier = world.unit(world.team(0)["courier"])
        away = math.hypot(courier["x"] - SECRET[0], courier["y"] - SECRET[1])
        nearest = min(nearest, away)
        if paid_at is None and world.hero(0)["gold"] < 1000:
            paid_at = away
        if "demon_edge" in names(world, slots=HAND):
            break
    assert paid_at is not None and paid_at < 600 and nearest < 250
    assert "demon_edge" in names(world, slots=HAND)


def test_a_hero_at_a_secret_shop_buys_directly(core: Any, data: dict[str, Any]) -> None:
    tables = build_of(data, core, "sven", "demon_edge")
    world = core.World(tables, {"start_s": 0.0, "courier_scripted": True, "keep_teleport": 0, "lanes": [False] * 3},
                       ["sven"], ["axe"], 1)
    world.set_unit(world.hero(0)["unit"], x=SECRET[0], y=SECRET[1])
    world.clear_items(0)
    world.set_gold(0, 2200)
    world.clear_signals()
    world.step(4)
    assert "demon_edge" in names(world, slots=HAND)
    assert world.hero(0)["signals"]["gold_spent"] == 2200


@pytest.mark.parametrize(("seconds", "share"), [(5, 1.0), (15, 0.5)])
def test_a_refund_within_ten_seconds_is_full(core: Any, data: dict[str, Any], seconds: float, share: float) -> None:
    """To make room it sells a tango bought just now, or a while ago."""
    tables = build_of(data, core, "sven", "blades_of_attack")
    world = core.World(tables, {"start_s": 0.0, "keep_teleport": 0, "keep_tango": 1, "keep_salve": 0,
                                "keep_clarity": 0, "lanes": [False] * 3, "upkeep_share": 1.0}, ["sven"], ["axe"], 1)
    world.clear_items(0)
    world.set_gold(0, 90)
    world.step(4)
    assert names(world) == ["tango"]
    world.set_gold(0, -5000)
    for _ in range(14):
        world.give_item(0, "reaver")
    world.step(int(seconds * 7.5) - 4)
    world.set_gold(0, 430)
    for _ in range(4):
        world.step(1)
        if "blades_of_attack" in names(world):
            break
    assert "tango" not in names(world) and "blades_of_attack" in names(world)
    assert world.hero(0)["gold"] == pytest.approx(430 - data["items"]["items"]["item_blades_of_attack"]["cost"]
                                                  + 90 * share, abs=3)
    # Nor does what he has bought go again, now for all of its price or later for half, for another tango.
    world.set_gold(0, 500)
    for _ in range(100):
        world.step(1)
        assert "blades_of_attack" in names(world)

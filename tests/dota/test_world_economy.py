"""Gold over time, the scripted buyer, couriers, ward stock and the line-up check."""

from typing import Any

import pytest


def names(world: Any, hero: int = 0) -> list[str]:
    return [i[0] for i in world.hero(hero)["items"] if i is not None]


def test_start_items_and_gold(new_world: Any) -> None:
    """600 gold less tango 90, faerie fire 70, slippers 145, circlet 155, two branches 100; one scroll in its slot."""
    world = new_world()
    hero = world.hero(0)
    assert sorted(names(world)) == sorted(["item_tango", "item_faerie_fire", "item_slippers", "item_circlet",
                                           "item_branches", "item_branches", "item_tpscroll"])
    assert hero["items"][15] == ("item_tpscroll", 1)
    spent = hero["spent"]
    assert hero["gold"] == pytest.approx(600 - spent)
    assert hero["net_worth"] == pytest.approx(600 + 50)


def test_passive_gold(new_world: Any) -> None:
    """Passive income is one gold every 0.66 s from the horn on."""
    world = new_world(start_s=-10.0)
    world.clear_signals()
    world.step(74)
    assert world.hero(0)["signals"]["gold"] == 0
    world.step(75 * 6 + 1)  # to one minute
    assert world.hero(0)["signals"]["gold"] == pytest.approx(60 / 0.66 // 1, abs=14)
    assert world.time == pytest.approx(60, abs=0.1)


def test_components_become_the_item(new_world: Any) -> None:
    """Circlet and slippers of the start and a recipe of 215 gold are the first Wraith Band."""
    world = new_world()
    world.set_gold(0, 214)
    world.step(2)
    assert "item_wraith_band" not in names(world)
    world.set_gold(0, 216)
    world.step(6)
    held = names(world)
    assert "item_wraith_band" in held
    assert "item_circlet" not in held
    assert "item_slippers" not in held
    assert world.hero(0)["gold"] < 10
    assert world.hero(0)["build_next"] == 1


def test_a_rich_hero_completes_his_build(new_world: Any, tables: Any) -> None:
    world = new_world(radiant=("sven",), keep_teleport=0)
    world.set_gold(0, 60_000)
    world.step(900)
    order = tables.hero("npc_dota_hero_sven")["item_order"]
    assert world.hero(0)["build_next"] == len(order)
    # All of it is his: in his hands as far as they reach, the rest in the stash; parts became what they are parts of.
    held = [i[0] for i in world.hero(0)["items"][:15] if i is not None]
    assert len([i for i in world.hero(0)["items"][:9] if i is not None]) == 9
    assert set(order) - {"item_boots"} <= set(held) and "item_boots" not in held
    assert set(held) <= set(order) | {"item_tango", "item_flask", "item_clarity", "item_quelling_blade",
                                      "item_stout_shield"}


def test_gold_spent_excludes_the_courier(new_world: Any) -> None:
    world = new_world()
    world.set_gold(0, 300)
    world.clear_signals()
    world.step(6)
    assert world.hero(0)["signals"]["gold_spent"] > 0
    away = new_world(courier_scripted=True)
    away.set_unit(away.hero(0)["unit"], x=-500, y=-400)
    away.set_gold(0, 300)
    away.clear_signals()
    away.step(6)
    assert away.hero(0)["spent"] > 0
    assert away.hero(0)["signals"]["gold_spent"] == 0


def test_the_courier_delivers_purchases(new_world: Any) -> None:
    """Items in the stash leave as soon as the courier flies, and arrive completely."""
    world = new_world(courier_scripted=True, keep_teleport=0)
    hero = world.hero(0)["unit"]
    world.clear_items(0)
    world.set_unit(hero, x=-4500, y=-4000)
    world.order(hero, "hold")
    world.set_gold(0, 310)
    world.step(6)
    world.set_gold(0, -5000)
    bought = sorted(i[0] for i in world.hero(0)["items"][9:15] if i is not None)
    assert bought == ["item_circlet", "item_slippers"]
    assert not [i for i in world.hero(0)["items"][:9] if i is not None]
    for _ in range(int(40 * 7.5)):
        world.step(1)
        if not [i for i in world.hero(0)["items"][9:15] if i is not None]:
            break
    courier = world.unit(world.team(0)["courier"])
    assert abs(courier["x"] + 4500) + abs(courier["y"] + 4000) < 600
    assert sorted(i[0] for i in world.hero(0)["items"][:9] if i is not None) == bought


def test_consumables_are_bought_again_until_ten_minutes(new_world: Any) -> None:
    world = new_world(keep_salve=1, keep_teleport=0)
    world.clear_items(0)
    world.set_gold(0, 115)
    world.step(3)
    assert "item_flask" in names(world)
    world.clear_items(0)
    world.set_time(601)
    world.set_gold(0, 115)
    world.step(3)
    assert "item_flask" not in names(world)


def test_the_build_takes_its_gold_before_upkeep(new_world: Any) -> None:
    """With 150 gold for slippers of the build or a salve, the buyer takes the slippers, and the salve later."""
    world = new_world(keep_salve=1, keep_teleport=0)
    world.clear_items(0)
    world.set_gold(0, 150)
    world.step(6)
    assert names(world) == ["item_slippers"]
    world.set_gold(0, 111)
    world.step(3)
    assert "item_flask" in names(world)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
def test_upkeep_stays_within_its_share_of_income(new_world: Any, share: float) -> None:
    """A hero uses up everything and earns 20 gold a second for two minutes, after 600 at the start."""
    world = new_world(keep_salve=1, keep_clarity=1, keep_tango=1, keep_teleport=1, upkeep_share=share)
    bought = 0.0
    for _ in range(120):
        world.clear_items(0)
        world.give_gold(0, 20)
        world.step(8)
        hero = world.hero(0)
        assert hero["upkeep"] <= share * hero["income"]
        assert hero["income"] >= 600
        bought = hero["upkeep"]
    assert hero["income"] == pytest.approx(600 + 120 * 20 + world.time / 0.66, abs=2)
    assert bought > 0.8 * share * hero["income"] - 110  # the dearest of them costs 110
    assert hero["spent"] - bought - (600 - 40) > 0.5 * (1 - share) * (120 * 20)  # the rest went into the build


def test_scroll_is_kept_in_stock(new_world: Any) -> None:
    world = new_world()
    world.clear_items(0)
    world.set_gold(0, 51)
    world.step(3)
    assert world.hero(0)["items"][15] == ("item_tpscroll", 1)


def test_the_poorest_buys_the_wards(new_world: Any) -> None:
    """Two in stock at the start, one more each 135 s, four at most."""
    world = new_world(radiant=("nevermore", "lion"), keep_teleport=0)
    assert world.team(0)["stock"][2] == 2
    world.set_gold(0, 3000)
    world.set_gold(1, 100)
    world.step(6)
    assert "item_ward_observer" in names(world, 1)
    assert "item_ward_observer" not in names(world, 0)
    assert world.team(0)["stock"][2] == 1


def test_stock_refills(new_world: Any) -> None:
    world = new_world()  # a team of one buys no wards
    world.step(int(136 * 7.5))
    assert world.team(0)["stock"][2] == 3


def test_stacking_and_slots(new_world: Any) -> None:
    world = new_world()
    world.clear_items(0)
    world.give_item(0, "tango", 3)
    world.give_item(0, "tango", 3)
    assert world.hero(0)["items"][0] == ("item_tango", 6)
    for _ in range(14):
        assert world.give_item(0, "reaver")
    assert not world.give_item(0, "reaver")


def test_the_aegis_stays_in_the_inventory(new_world: Any) -> None:
    """It has no cost and works only there: six expensive items do not move it to the backpack."""
    world = new_world(keep_teleport=0)
    world.clear_items(0)
    for _ in range(6):
        world.give_item(0, "reaver")
    world.give_item(0, "aegis")
    world.set_gold(0, 0)
    world.step(12)
    assert "item_aegis" in [i[0] for i in world.hero(0)["items"][:6] if i is not None]


def test_courier_deaths_cost_the_team(new_world: Any) -> None:
    """125 gold for each enemy hero, a walking one; the team's own CourierDeath; back after 180 s."""
    world = new_world()
    courier = world.team(1)["courier"]
    world.clear_signals()
    world.kill(courier, world.hero(0)["unit"])
    assert world.hero(5)["signals"]["courier_death"] == 1
    assert world.hero(0)["signals"]["courier_death"] == 0
    assert world.hero(0)["signals"]["gold"] == pytest.approx(125)
    assert world.team(1)["courier"] == -1
    world.set_time(181)
    world.step()
    assert world.team(1)["courier"] >= 0


def test_items_that_the_buyer_skips_are_named(core: Any, tables: Any) -> None:
    """Skipped: items with unsupported programs. Bought for their stats alone: items with an unsupported active."""
    pool = ["nevermore", "sniper", "lion", "crystal_maiden", "sven", "viper"]
    skipped, useless = core.items_not_bought(tables, pool), core.items_without_use(tables, pool)
    assert not set(skipped) & set(useless)
    for item in useless:
        assert tables.ability(item)["missing"]
        assert tables.item(item)["stats"]
    for item in skipped:
        parts = [p for recipe in tables.item(item)["recipes"] for p in recipe]
        own = item in tables.abilities and bool(tables.ability(item)["missing"])
        assert own or tables.item(item)["excluded"] or any(p in skipped or tables.item(p)["excluded"] for p in parts)


def test_skipped_items_are_never_held(new_world: Any, core: Any, tables: Any) -> None:
    world = new_world(radiant=("crystal_maiden",))
    skipped = set(core.items_not_bought(tables, ["crystal_maiden"]))
    world.set_gold(0, 50_000)
    world.step(600)
    assert not skipped & set(names(world))
    assert world.hero(0)["build_next"] >= 5


def test_lane_assignment_counts_seconds_in_other_lanes(new_world: Any) -> None:
    world = new_world()
    hero = world.hero(0)["unit"]
    world.set_lanes(0, 0b001, 600)  # top only
    world.set_unit(hero, x=-500, y=-400)
    world.clear_signals()
    world.step(15)
    assert world.hero(0)["signals"]["lane_assign"] == pytest.approx(2.0)
    world.set_unit(hero, x=-6300, y=2000)
    world.clear_signals()
    world.step(15)
    assert world.hero(0)["signals"]["lane_assign"] == 0

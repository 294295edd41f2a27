"""Consumables: amounts, targets, charges and stacks."""

import math
from typing import Any

import pytest

from dota.play import InteractiveGame
from tests.dota.playing import frames, order, unit
from tests.dota.scenes.actions import attack_once, give, use
from tests.dota.scenes.arena import CENTRE
from tests.dota.scenes.duels import item_duel
from tests.dota.scenes.patches import PATCHES
from tests.dota.scenes.statuses import INVISIBLE
from tests.dota.scenes.units import lane_creep, without_armor, wounded
from tests.dota.watching import duel as watched_duel


def has(arena: Any, item: str, hero: int = 0) -> bool:
    return any(i and i[0] == "item_" + item for i in arena.world.hero(hero)["items"])


@pytest.mark.parametrize(("item", "amounts"), [("cheese", (2500, 1500)), ("faerie_fire", (85, 0)),
                                               ("enchanted_mango", (0, 125))])
def test_food_restores_at_once(core: Any, item: str, amounts: tuple[float, float]) -> None:
    """Tooltips: health and mana, instantly, once."""
    arena = item_duel(core)
    a = arena.unit(0)
    slot = give(arena, item, charges=1)
    arena.world.set_unit(a, extra_hp=5000)
    arena.still(a)
    arena.world.set_unit(a, hp=100, mana=0)
    full = arena.world.unit(a)["max_mana"]
    use(arena, slot, a if item == "enchanted_mango" else None)
    assert arena.hp(a) == pytest.approx(100 + amounts[0], abs=0.5)
    assert arena.world.unit(a)["mana"] == pytest.approx(min(amounts[1], full), abs=0.5)
    assert not has(arena, item)


@pytest.mark.parametrize(("item", "reach"), [("enchanted_mango", 400), ("flask", 250), ("clarity", 250)])
def test_food_is_given_to_allies_in_reach(core: Any, item: str, reach: float) -> None:
    """Tooltips: on an allied hero within this range, between edges."""
    arena = item_duel(core)
    mate, slot = wounded(arena, 100, 1), give(arena, item, charges=1)
    arena.world.set_unit(mate, mana=0)
    arena.place(mate, -reach - 35, 0)
    use(arena, slot, mate)
    assert not has(arena, item)
    assert arena.world.unit(arena.unit(0))["x"] == pytest.approx(CENTRE[0], abs=2)


@pytest.mark.parametrize(("patch", "hp", "mana"), [("7.21d", 125, 75), ("7.19", 100, 50)])
def test_a_bottle_refreshes_an_ally(core: Any, patch: str, hp: float, mana: float) -> None:
    """Tooltip: over 2.5 s, on an allied hero within 350 too; a hero's blow ends it."""
    arena = item_duel(core, patch)
    mate, slot = wounded(arena, 100, 1), give(arena, "bottle", charges=3)
    arena.place(mate, -380, 0)
    for hurt in (False, True):
        arena.world.set_unit(mate, hp=100, mana=0)
        use(arena, slot, mate)
        if hurt:
            arena.world.damage(arena.unit(5), mate, 1, "pure")
            assert not arena.modifiers(mate, "item_bottle")
            continue
        arena.seconds(2.5)
        u = arena.world.unit(mate)
        assert (u["hp"], u["mana"]) == pytest.approx((100 + hp, mana), abs=2)
    assert arena.world.ability(0, "item_bottle")["charges"] == 1


def test_the_fountain_fills_a_bottle(core: Any) -> None:
    """Tooltip: it refills at the fountain."""
    arena = item_duel(core)
    give(arena, "bottle", charges=0)
    assert arena.world.ability(0, "item_bottle")["charges"] == 0
    fountain = next(u for u in arena.world.units("fountain") if u["team"] == 0)
    arena.world.set_unit(arena.unit(0), x=fountain["x"] + 200, y=fountain["y"] + 200)
    arena.seconds(0.6)
    assert arena.world.ability(0, "item_bottle")["charges"] == 3


def test_what_stacks_has_one_slot(core: Any, patch: str) -> None:
    """The files: stackable items share a slot with their charges, others take one each."""
    arena = item_duel(core, patch)
    items = arena.data["items"]["items"]
    for item in ("flask", "clarity", "dust", "smoke_of_deceit", "ward_observer", "tango", "enchanted_mango", "branches",
                 "faerie_fire", "bottle"):
        arena.world.clear_items(0)
        for _ in range(2):
            assert arena.world.give_item(0, "item_" + item, 1)
        slots = [i for i in arena.world.hero(0)["items"] if i and i[0] == "item_" + item]
        assert len(slots) == (1 if items["item_" + item].get("stackable") else 2), item


@pytest.mark.parametrize(("patch", "radius"), [("7.21d", 1000), ("7.19", 850)])
def test_wards_see_as_far_as_they_say(core: Any, patch: str, radius: float) -> None:
    """Tooltips: an observer ward 1600, a sentry ward true sight of 1000 (7.19: 850) and no sight."""
    data = item_duel(core, patch).data
    items, units = data["items"]["items"], data["units"]["units"]
    observer, sentry = units["npc_dota_observer_wards"], units["npc_dota_sentry_wards"]
    assert observer["vision_day"] == observer["vision_night"] == 1600
    assert items["item_ward_observer"]["specials"]["vision_range"]["v"] == [1600]
    assert items["item_ward_sentry"]["specials"]["true_sight_range"]["v"] == [radius]
    assert sentry["true_sight"] == radius and sentry["vision_day"] == sentry["vision_night"] == 0
    assert items["item_ward_sentry"]["specials"]["lifetime"]["v"] == [360]


def test_dust_slows_the_invisible_only(core: Any) -> None:
    """Tooltip: 20 % for 12 s, within 1050."""
    arena = item_duel(core, enemy="riki", away=1000)
    target, other = arena.unit(5), arena.unit(6)
    arena.teach(5, "riki_permanent_invisibility", 4)
    arena.place(other, 900, 300)
    arena.seconds(4)
    speeds = [arena.world.unit(u)["move_speed"] for u in (target, other)]
    use(arena, give(arena, "dust", charges=2))
    slower = [arena.world.unit(u)["move_speed"] - s for u, s in zip((target, other), speeds, strict=True)]
    assert slower == pytest.approx([-0.2 * arena.base_speed("riki"), 0], abs=1)
    assert arena.world.ability(0, "item_dust")["charges"] == 1
    arena.seconds(12)
    assert arena.world.unit(target)["move_speed"] == pytest.approx(speeds[0])


def test_items_with_one_cooldown_share_it(core: Any) -> None:
    """The files: `shared_cooldown`; using one puts all of its group on cooldown, also the same item in another slot."""
    groups: dict[str, list[str]] = {}
    data = item_duel(core).data["items"]["items"]
    for name, item in data.items():
        if item.get("shared_cooldown") and not item.get("excluded"):
            groups.setdefault(item["shared_cooldown"], []).append(name)
    assert {"magicwand", "ethereal", "medallion", "urn", "orchid", "shadow_blade", "force", "dagon"} <= set(groups)
    for first, second in (("magic_wand", "magic_stick"), ("invis_sword", "silver_edge"), ("ghost", "ethereal_blade")):
        arena = item_duel(core)
        slot = give(arena, first, charges=5)
        give(arena, second, charges=5)
        use(arena, slot)
        ready = [arena.world.ability(0, "item_" + item)["ready"] for item in (first, second)]
        assert ready[0] == ready[1] > arena.world.time
    arena = item_duel(core)  # Blade Mail shares with nothing
    slot = give(arena, "blade_mail")
    give(arena, "hood_of_defiance")
    use(arena, slot)
    assert arena.world.ability(0, "item_hood_of_defiance")["ready"] < arena.world.time


def test_what_cannot_be_sold_or_bought(core: Any) -> None:
    """The files: a gem, a rapier and a courier are not sold again, Roshan's items are not bought."""
    for patch in PATCHES:
        data = item_duel(core, patch).data["items"]["items"]
        assert {n for n, i in data.items() if i.get("sellable") == 0} == {
            "item_gem", "item_courier", "item_aegis", "item_rapier", "item_enchanted_mango", "item_tango_single"}
        bought = {n for n, i in data.items() if i.get("purchasable") == 0 and not i.get("excluded")}
        assert {"item_cheese", "item_aegis", "item_refresher_shard", "item_tango_single"} <= bought
    game = InteractiveGame(watched_duel(courier="direct"), 1)
    game.take(0, True)
    game._vec._core.give_gold(0, 0, 5000)
    frames(game, 4)
    assert order(game, "buy", item="item_cheese") == (False, "item")
    assert order(game, "buy", item="item_gem").ok
    slot = unit(game, 0)["items"].index("item_gem")
    assert order(game, "sell", slot=slot) == (False, "item")


@pytest.mark.parametrize("item", ["quelling_blade", "bfury"])
def test_quelling_blade_fells_a_tree(core: Any, item: str) -> None:
    """Tooltip: a tree within 350, every 4 s."""
    arena = item_duel(core)
    a, trees = arena.unit(0), arena.data["map"]["trees"]
    tree = min(range(len(trees)), key=lambda t: math.dist(trees[t][:2], CENTRE))
    hp = arena.hp(a)
    for slot in (give(arena, item), give(arena, "tango", charges=3)):
        arena.world.order(a, "cast_point", slot=slot, tree=tree, x=trees[tree][0], y=trees[tree][1])
        for _ in range(100):
            arena.world.step()
            if arena.world.ability(0, "item_" + item)["ready"] > arena.world.time:
                break
        arena.seconds(2)
    assert arena.hp(a) == hp and not arena.modifiers(a, "item_tango")  # there is nothing left to eat


def test_magic_stick_holds_ten_charges(core: Any) -> None:
    """Tooltip: a charge for each spell of a visible enemy within 1,200, at most 10; 15 health and mana each."""
    arena = item_duel(core, enemy="nevermore", away=800)
    slot, a = give(arena, "magic_stick"), arena.unit(0)
    raze = arena.teach(5, "nevermore_shadowraze1", 1)
    for cast in range(12):
        arena.world.set_unit(arena.unit(5), mana=500)
        arena.world.order(arena.unit(5), "cast", slot=raze)
        arena.seconds(0.8)
        assert arena.world.ability(0, "item_magic_stick")["charges"] == min(cast + 1, 10)
        arena.seconds(10)
    arena.still(a)
    arena.world.set_unit(a, hp=100, mana=0)
    arena.world.order(a, "cast", slot=slot)
    arena.world.run_frames(1)
    u = arena.world.unit(a)
    assert (u["hp"], u["mana"]) == pytest.approx((250, 150), abs=0.5)
    assert arena.world.ability(0, "item_magic_stick")["charges"] == 0


def test_an_attack_ends_smoke(core: Any) -> None:
    """Tooltip: attacking breaks the invisibility."""
    arena = item_duel(core, away=2300)
    a = arena.unit(0)
    use(arena, give(arena, "smoke_of_deceit", charges=1))
    assert arena.world.unit(a)["status"] & INVISIBLE
    attack_once(arena, a, without_armor(arena, lane_creep(arena, 1, 120, 0)))
    assert not arena.world.unit(a)["status"] & INVISIBLE


def test_true_sight_does_not_end_smoke(core: Any) -> None:
    """Tooltip: immune to true sight."""
    arena = item_duel(core, away=1040)
    a = arena.unit(0)
    assert arena.world.give_item(5, "item_gem")
    arena.place(arena.unit(5), 1200, 0)
    arena.seconds(0.4)
    use(arena, give(arena, "smoke_of_deceit", charges=1))
    arena.world.spawn("npc_dota_sentry_wards", 1, CENTRE[0] + 300, CENTRE[1])
    arena.world.spawn("npc_dota_observer_wards", 1, CENTRE[0] + 300, CENTRE[1])
    arena.seconds(0.6)
    assert arena.world.unit(a)["status"] & INVISIBLE and not arena.world.visible(1, a)


def test_a_moon_shard_sees_farther_at_night(core: Any) -> None:
    """Tooltip: 400 more at night by being held, 200 for good once it is eaten; a hero sees 800."""
    arena = item_duel(core, away=950)
    a, enemy = arena.unit(0), arena.unit(5)
    arena.place(arena.unit(1), -2500, -600)
    arena.seconds(302 - arena.world.time)

    def sees(distance: float) -> bool:
        arena.place(enemy, distance, 0)
        arena.seconds(0.4)
        return bool(arena.world.visible(0, enemy))

    assert sees(700) and not sees(860)
    slot = give(arena, "moon_shard")
    assert sees(1100) and not sees(1260)
    use(arena, slot, a)
    assert sees(900) and not sees(1060)

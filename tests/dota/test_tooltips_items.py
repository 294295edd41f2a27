"""Items by their tooltips in patch 7.21d: limits by team, stored runes, invisibility and what ends it."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.dota.scenes.actions import attack_for, give, use
from tests.dota.scenes.arena import CENTRE
from tests.dota.scenes.duels import item_duel
from tests.dota.scenes.statuses import INVISIBLE
from tests.dota.scenes.units import wounded


def cliffs(core: Any, tables: Any, world: dict[str, Any]) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Yield pairs of walkable places some 400 apart, the first one level above the second."""
    level, blocked = core.map_grid(tables, "elevation"), core.map_grid(tables, "blocked_at_start")
    for row, column in itertools.product(range(40, 220), repeat=2):
        high, low = ((level[row][c], not blocked[row][c]) for c in (column, column - 6))
        if high[0] >= 2 and low[0] == high[0] - 1 and high[1] and low[1]:
            place = [(world["min_x"] + 64 * c + 32, world["min_y"] + 64 * row + 32) for c in (column, column - 6)]
            yield place[0], place[1]


# ---- limits by team -------------------------------------------------------------------------------------------------


def test_a_second_mekansm_heals_nobody_again(core: Any) -> None:
    """Once within the item's cooldown of 65 s, for all units of the side (tooltip), Guardian Greaves included."""
    arena = item_duel(core)
    creep = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, CENTRE[0] - 100, CENTRE[1] + 150)
    arena.world.set_unit(creep, hp=100)
    arena.world.order(creep, "hold")
    slots = give(arena, "mekansm", 0), give(arena, "mekansm", 1), give(arena, "guardian_greaves", 1)
    for hero in (0, 1):
        wounded(arena, 100, hero)
    use(arena, slots[0], hero=0)
    healed = [arena.hp(arena.unit(0)), arena.hp(arena.unit(1)), arena.hp(creep)]
    assert healed == pytest.approx([375, 375, 375], abs=15)
    armor = arena.world.unit(arena.unit(0))["armor"]
    for slot in slots[1:]:
        use(arena, slot, hero=1)
    assert arena.hp(arena.unit(0)) == pytest.approx(healed[0], abs=15)
    assert arena.world.unit(arena.unit(0))["armor"] == pytest.approx(armor)
    arena.seconds(66)
    wounded(arena, 100, 0)
    use(arena, slots[1], hero=1)
    assert arena.hp(arena.unit(0)) == pytest.approx(375, abs=15)


def test_crimson_guard_covers_heroes_and_buildings_once_in_46_seconds(core: Any) -> None:
    arena = item_duel(core)
    tower = next(u for u in arena.world.units("tower") if u["team"] == 0 and u["tier"] == 1 and u["lane"] == 1)
    for hero in (0, 1):
        arena.world.set_unit(arena.unit(hero), x=tower["x"] - 200, y=tower["y"] - 200 - 100 * hero)
    creep = arena.world.spawn("npc_dota_creep_goodguys_melee", 0, tower["x"] - 300, tower["y"])
    slots = give(arena, "crimson_guard", 0), give(arena, "crimson_guard", 1)
    before = [arena.world.unit(u)["armor"] for u in (arena.unit(0), tower["index"], creep)]
    use(arena, slots[0], hero=0)
    after = [arena.world.unit(u)["armor"] for u in (arena.unit(0), tower["index"], creep)]
    assert after == pytest.approx([before[0] + 2, before[1] + 2, before[2]])
    arena.seconds(12.5)
    use(arena, slots[1], hero=1)
    assert arena.world.unit(tower["index"])["armor"] == pytest.approx(before[1])


@pytest.mark.parametrize("item", ["urn_of_shadows", "spirit_vessel"])
def test_only_the_closest_urn_gains_a_charge(core: Any, item: str) -> None:
    arena = item_duel(core)
    for hero in (0, 1):
        give(arena, item, hero)
    before = [arena.world.ability(hero, "item_" + item)["charges"] for hero in (0, 1)]
    arena.world.kill(arena.unit(5), arena.unit(1))
    after = [arena.world.ability(hero, "item_" + item)["charges"] for hero in (0, 1)]
    assert after[0] > before[0] and after[1] == before[1]


# ---- numbers --------------------------------------------------------------------------------------------------------


def test_basher_does_magical_damage(core: Any) -> None:
    arena = item_duel(core, away=120)
    give(arena, "basher")
    a, target = arena.unit(0), arena.unit(5)
    arena.world.set_unit(target, extra_hp=9000, extra_armor=-arena.world.unit(target)["armor"])
    arena.seconds(0.2)
    arena.world.set_unit(target, hp=9000)
    u = arena.world.unit(a)
    high, magic = u["dmg_max"] + u["dmg_bonus"], 100 * arena.magic(target) * arena.amp(a)
    extra = []
    for _ in range(60):
        hp = arena.hp(target)
        attack_for(arena, a, target)
        arena.seconds(2)
        if hp - arena.hp(target) > high + 1:
            extra.append(hp - arena.hp(target) - magic)
    assert extra and all(u["dmg_min"] + u["dmg_bonus"] - 1 <= e <= high + 1 for e in extra)


def test_bloodstone_charges_regenerate_health_and_mana(core: Any) -> None:
    """0.3 of both for each of the 14 charges."""
    arena = item_duel(core)
    a = arena.unit(0)
    regen = arena.world.unit(a)["hp_regen"]
    arena.world.give_item(0, "item_bloodstone", 14)
    arena.seconds(0.4)
    assert arena.world.unit(a)["hp_regen"] - regen == pytest.approx(6 + 14 * 0.3, abs=0.02)


def test_unused_aegis_heals(core: Any) -> None:
    """Tooltip: if it expires, it heals over 5 seconds, unless its bearer is hurt; a fifth of health and mana each
    second (public wikis)."""
    for hurt in (False, True):
        arena = item_duel(core)
        assert arena.world.give_item(0, "item_aegis")
        arena.seconds(298)
        a = wounded(arena, 100)
        arena.world.set_unit(a, mana=0)
        while any(i and i[0] == "item_aegis" for i in arena.world.hero(0)["items"]):
            arena.world.step()
        if hurt:
            arena.seconds(0.5)
            arena.world.damage(arena.unit(5), a, 1, "pure")
        arena.seconds(5.2)
        now = arena.world.unit(a)
        assert (now["hp"] > 0.95 * now["max_hp"]) != hurt, f"hurt={hurt}: {now['hp']} of {now['max_hp']}"
        assert (now["mana"] > 0.95 * now["max_mana"]) != hurt, f"hurt={hurt}: {now['mana']} of {now['max_mana']}"


# ---- runes in a bottle ----------------------------------------------------------------------------------------------


def test_a_bounty_rune_fills_the_bottle(core: Any) -> None:
    arena = item_duel(core, runes=True)
    give(arena, "bottle", charges=3)
    a = wounded(arena, 100)
    for _ in range(3):
        arena.world.order(a, "cast", slot=arena.world.ability(0, "item_bottle")["slot"])
        arena.seconds(3)
    assert arena.world.ability(0, "item_bottle")["charges"] == 0
    x, y = next((x, y) for present, kind, x, y in arena.world.pickups() if present and kind == 0)
    arena.world.set_unit(a, x=x - 60, y=y)
    arena.world.order(a, "pickup", x=x, y=y)
    arena.seconds(1)
    assert arena.world.ability(0, "item_bottle")["charges"] == 3


def test_a_stored_rune_lasts_two_minutes(core: Any) -> None:
    arena = item_duel(core)
    give(arena, "bottle", charges=3)
    assert arena.world.store_rune(arena.unit(0), 2)
    speed = arena.world.unit(arena.unit(0))["move_speed"]
    arena.seconds(119)
    assert arena.world.unit(arena.unit(0))["move_speed"] == pytest.approx(speed)
    arena.seconds(2)
    assert arena.world.unit(arena.unit(0))["move_speed"] > speed


# ---- invisibility ---------------------------------------------------------------------------------------------------


def test_vanishing_evades_an_attack_in_flight(core: Any) -> None:
    """Liquipedia, Disjoint: becoming invisible evades projectiles, as Shadow Blade does once it has faded in."""
    arena = item_duel(core, enemy="sniper", ally="lion", away=560)
    slot, a, enemy = give(arena, "invis_sword"), arena.unit(0), arena.unit(5)
    arena.world.set_unit(enemy, attack_ready=0)
    arena.world.order(enemy, "attack", a)
    for _ in range(60):
        arena.world.run_frames(1)
        if arena.world.projectiles():
            break
    assert arena.world.projectiles() == 1
    arena.world.set_unit(enemy, attack_ready=1e9)
    hp = arena.hp(a)
    arena.place(enemy, 1500, 0)
    arena.place(a, -900, 0)  # far enough for the fading
    arena.world.order(a, "cast", slot=slot)
    arena.seconds(1.5)
    assert arena.hp(a) == hp and arena.world.projectiles() == 0


def test_an_idle_invisible_hero_keeps_still(core: Any) -> None:
    """Tooltip of Cloak and Dagger; an order is obeyed."""
    arena = item_duel(core, away=300)
    slot, a, enemy = give(arena, "invis_sword"), arena.unit(0), arena.unit(5)
    arena.world.order(a, "cast", slot=slot)
    arena.seconds(0.5)
    arena.world.set_unit(a, attack_ready=0)
    arena.place(enemy, 130, 0)
    arena.seconds(3)
    assert arena.world.unit(a)["status"] & INVISIBLE
    arena.world.order(a, "attack", enemy)
    arena.seconds(1.5)
    assert not arena.world.unit(a)["status"] & INVISIBLE


def test_a_cast_does_not_end_smoke(core: Any) -> None:
    """Liquipedia, Smoke of Deceit."""
    arena = item_duel(core, away=2400)
    slot = give(arena, "smoke_of_deceit", charges=1)
    arena.world.order(arena.unit(0), "cast", slot=slot)
    arena.seconds(0.4)
    assert arena.world.unit(arena.unit(0))["status"] & INVISIBLE
    arena.world.order(arena.unit(0), "cast", slot=arena.teach(0, "sven_warcry", 1))
    arena.seconds(0.6)
    assert arena.modifiers(arena.unit(0), "sven_warcry")
    assert arena.world.unit(arena.unit(0))["status"] & INVISIBLE


def test_dust_reveals_who_fades_later(core: Any) -> None:
    """Liquipedia, Dust of Appearance: true sight for 12 s on enemy heroes, invisible or not."""
    arena = item_duel(core, enemy="riki", away=500)
    target = arena.unit(5)
    arena.teach(5, "riki_permanent_invisibility", 4)
    arena.world.order(target, "attack", arena.dummy(620, 0))
    arena.world.set_unit(target, attack_ready=0)
    arena.seconds(1)
    arena.world.order(target, "hold")
    arena.world.set_unit(target, attack_ready=1e9)
    assert not arena.world.unit(target)["status"] & INVISIBLE
    use(arena, give(arena, "dust", charges=1))
    arena.seconds(5)
    assert arena.world.unit(target)["status"] & INVISIBLE
    assert arena.world.visible(0, target)


def test_an_attack_from_high_ground_shows_the_attacker_for_two_seconds(core: Any, tables: Any) -> None:
    """Liquipedia, Vision (2017)."""
    arena = item_duel(core, hero="sniper", ally="lion", away=400)
    a, enemy = arena.unit(0), arena.unit(5)
    for high, low in cliffs(core, tables, arena.data["map"]["world"]):
        arena.world.set_unit(a, x=high[0], y=high[1])
        arena.world.set_unit(enemy, x=low[0], y=low[1])
        arena.seconds(0.2)
        if not arena.world.visible(1, a) and arena.world.visible(0, enemy):
            break
    assert not arena.world.visible(1, a)
    arena.world.set_unit(a, attack_ready=0)
    arena.world.order(a, "attack", enemy)
    hp = arena.hp(enemy)
    for _ in range(60):
        arena.world.run_frames(1)
        if arena.world.projectiles() or arena.hp(enemy) < hp:
            break
    arena.world.set_unit(a, attack_ready=1e9)
    arena.world.order(a, "hold")
    arena.seconds(0.4)
    assert arena.world.visible(1, a)
    arena.seconds(2)
    assert not arena.world.visible(1, a)

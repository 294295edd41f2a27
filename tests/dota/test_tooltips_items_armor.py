"""Items of those who are attacked: blows returned, guards, charges that regenerate, spells blocked."""

from typing import Any

import pytest

from tests.dota.scenes.actions import give, use
from tests.dota.scenes.duels import item_duel
from tests.dota.scenes.units import lane_creep, without_armor, wounded


@pytest.mark.parametrize("kind", ["creep", "tower"])
def test_blade_mail_returns_the_damage_of_any_unit(core: Any, kind: str) -> None:
    """Tooltip: any damage taken, to the unit that dealt it."""
    arena = item_duel(core)
    a = without_armor(arena, arena.unit(0))
    if kind == "creep":
        source = without_armor(arena, lane_creep(arena, 1, 120, 0))
    else:
        source = next(u["index"] for u in arena.world.units("tower") if u["team"] == 1 and u["tier"] == 1)
        arena.world.set_unit(source, extra_armor=-arena.world.unit(source)["armor"])
    use(arena, give(arena, "blade_mail"))
    hp = arena.hp(source)
    arena.world.damage(source, a, 50, "pure")
    assert hp - arena.hp(source) == pytest.approx(50, abs=0.5)


def test_the_blow_that_sets_off_an_aeon_disk_stops_at_70_percent(core: Any, patch: str) -> None:
    """Patches 7.07c and 7.08: it takes no health below the threshold, not even a deadly one."""
    arena = item_duel(core, patch)
    assert arena.world.give_item(0, "item_aeon_disk")
    arena.seconds(0.2)
    a = arena.unit(0)
    full = arena.world.unit(a)["max_hp"]
    arena.world.set_unit(a, hp=full)
    arena.world.damage(arena.unit(5), a, 5000, "pure")
    assert arena.hp(a) == pytest.approx(0.7 * full)
    assert arena.world.damage(arena.unit(5), a, 500, "pure") == 0
    arena.seconds(2.6)
    arena.world.damage(arena.unit(5), a, 5000, "pure")
    assert not arena.world.unit(a)["alive"]


@pytest.mark.parametrize(("patch", "held", "guarded"), [("7.21d", 0, 0.75), ("7.19", 0.25, 0.25)])
def test_the_status_resistance_of_an_aeon_disk(core: Any, patch: str, held: float, guarded: float) -> None:
    """Tooltip: 75 % for the 2.5 s; before 7.20 25 % by being held."""
    arena = item_duel(core, patch)
    assert arena.world.give_item(0, "item_aeon_disk")
    arena.seconds(0.2)
    a = arena.unit(0)
    assert arena.world.unit(a)["status_resist"] == pytest.approx(held, abs=1e-5)
    arena.world.set_unit(a, hp=arena.world.unit(a)["max_hp"])
    arena.world.damage(arena.unit(5), a, 400, "pure")
    arena.seconds(0.2)
    assert arena.world.unit(a)["status_resist"] == pytest.approx(guarded, abs=1e-5)


# ---- Bloodstone ----


def test_a_bloodstone_doubles_the_mana_regeneration(core: Any) -> None:
    """Patch 7.20: doubles; the files' multiplier of 200 %. Its own 3 and 0.3 for each of 14 charges count too."""
    arena = item_duel(core)
    a = arena.unit(0)
    arena.world.set_unit(a, extra_mana_regen=0)
    before = arena.world.unit(a)["mana_regen"]
    assert arena.world.give_item(0, "item_bloodstone", 14)
    arena.seconds(0.4)
    assert arena.world.unit(a)["mana_regen"] == pytest.approx(2 * (before + 3 + 14 * 0.3), abs=0.02)


def test_a_bloodpact_takes_a_share_of_all_mana(core: Any) -> None:
    """Patch 7.21: 30 % of the maximum, as health over 2 s; with less mana than that, all of it."""
    arena = item_duel(core)
    a = arena.unit(0)
    assert arena.world.give_item(0, "item_bloodstone", 0)
    arena.seconds(0.4)
    slot = arena.world.ability(0, "item_bloodstone")["slot"]
    arena.still(a)
    full = arena.world.unit(a)["max_mana"]
    for mana, spent in ((0.5 * full, 0.3 * full), (0.1 * full, 0.1 * full)):
        arena.world.set_unit(a, mana=mana, hp=100)
        use(arena, slot)
        assert mana - arena.world.unit(a)["mana"] == pytest.approx(spent, abs=0.5)
        arena.seconds(2.2)
        assert arena.hp(a) - 100 == pytest.approx(spent, abs=1)
        arena.seconds(250)
        arena.still(a)


@pytest.mark.parametrize(("patch", "after_kill", "after_death"), [("7.21d", 15, 12), ("7.19", 15, 10)])
def test_charges_of_a_bloodstone(core: Any, patch: str, after_kill: int, after_death: int) -> None:
    """Tooltip: one for an enemy hero's death within 1600; its bearer's own takes 3, in 7.19 a third (15 x 0.67 = 10.05
    are left)."""
    arena = item_duel(core, patch)
    assert arena.world.give_item(0, "item_bloodstone", 14)
    arena.place(arena.unit(5), 1590, 0)
    arena.world.kill(arena.unit(5), arena.unit(1))
    assert arena.world.ability(0, "item_bloodstone")["charges"] == after_kill
    arena.world.kill(arena.unit(0), arena.unit(6))
    assert arena.world.ability(0, "item_bloodstone")["charges"] == after_death


# ---- magic ----


def test_a_hood_takes_damage_before_resistance(core: Any) -> None:
    """Tooltip: 325 magical damage. A barrier takes it before the resistance (public wikis)."""
    arena = item_duel(core)
    use(arena, give(arena, "hood_of_defiance"))
    a = without_armor(arena, arena.unit(0))
    assert arena.world.damage(arena.unit(5), a, 300, "magical") == 0
    assert arena.world.damage(arena.unit(5), a, 125, "magical") == pytest.approx(100 * arena.magic(a), abs=0.1)


def test_raindrops_block_five_spells(core: Any) -> None:
    """Tooltip and the files: 120 of an instance of 50 or more, at most every 7 s, five times; then they are gone."""
    arena = item_duel(core)
    assert arena.world.give_item(0, "item_infused_raindrop", 5)
    arena.seconds(0.2)
    a, enemy = without_armor(arena, arena.unit(0)), arena.unit(5)
    share = arena.magic(a)
    assert arena.world.damage(enemy, a, 49, "magical") == pytest.approx(49 * share, abs=0.1)
    for left in range(4, -1, -1):
        assert arena.world.damage(enemy, a, 200, "magical") == pytest.approx(80 * share, abs=0.1)
        assert arena.world.damage(enemy, a, 200, "magical") == pytest.approx(200 * share, abs=0.1)
        held = next((i for i in arena.world.hero(0)["items"] if i and i[0] == "item_infused_raindrop"), None)
        assert (held[1] if held else 0) == left
        arena.seconds(7.1)


def test_linkens_sphere_blocks_once_and_lends_its_block(core: Any) -> None:
    """Tooltip: one targeted spell every 13 s; for an ally for 13 s, in which its bearer has none (public wikis: the use
    and the block share their cooldown)."""
    arena = item_duel(core, enemy="lion", away=400)
    slot, a, mate = give(arena, "sphere"), arena.unit(0), arena.unit(1)
    arena.place(mate, 0, 200)
    bolt = arena.teach(5, "lion_voodoo", 4)

    def hexed(target: int) -> bool:
        arena.world.order(arena.unit(5), "cast_unit", target=target, slot=bolt)
        arena.seconds(1)
        found = bool(arena.modifiers(target, "lion_voodoo"))
        arena.seconds(arena.field("lion_voodoo", "cooldown")[-1] - 0.6)
        arena.world.set_unit(arena.unit(5), mana=500)
        return found

    def cooled() -> None:
        arena.seconds(14)

    use(arena, slot, mate)
    lent = arena.modifiers(mate, "item_sphere")
    assert lent and lent[0]["left"] == pytest.approx(13, abs=0.3)
    assert not hexed(mate) and not arena.modifiers(mate, "item_sphere")
    assert arena.world.ability(0, "item_sphere")["ready"] > arena.world.time - 0.1
    cooled()
    assert not hexed(a)
    cooled()
    use(arena, slot, mate)
    assert hexed(a)


def test_holy_locket_strengthens_the_healing_of_its_bearer(core: Any) -> None:
    """Tooltip: heals and regeneration provided 25 % more, those received as before."""
    arena = item_duel(core)
    assert arena.world.give_item(0, "item_holy_locket")
    slots = give(arena, "mekansm", 0), give(arena, "flask", 1, charges=1)
    mate = wounded(arena, 100, 1)
    arena.still(mate)
    use(arena, slots[0], hero=0)
    assert arena.hp(mate) == pytest.approx(100 + 1.25 * 275, abs=4)
    a = wounded(arena, 100, 0)
    arena.still(a)
    use(arena, slots[1], a, hero=1)
    arena.seconds(8)
    assert arena.hp(a) == pytest.approx(500, abs=8)


def test_octarine_core_shortens_every_cooldown(core: Any) -> None:
    """Tooltip: a quarter, of spells and items."""
    arena = item_duel(core)
    assert arena.world.give_item(0, "item_octarine_core")
    slot = give(arena, "blade_mail")
    arena.world.order(arena.unit(0), "cast", slot=slot)
    arena.world.run_frames(1)
    left = arena.world.ability(0, "item_blade_mail")["ready"] - arena.world.time
    assert left == pytest.approx(25 * 0.75, abs=0.1)


@pytest.mark.parametrize(("item", "block"), [("stout_shield", 9), ("vanguard", 35), ("crimson_guard", 35),
                                             ("abyssal_blade", 35)])
def test_blocks_of_ranged_heroes(core: Any, item: str, block: float) -> None:
    """Tooltips: half as much as for melee heroes, about half of the time."""
    arena = item_duel(core, hero="sniper", enemy="axe")
    give(arena, item)
    a = without_armor(arena, arena.unit(0))
    taken = [round(200 - arena.world.damage(arena.unit(5), a, 200, "physical", attack=True), 1) for _ in range(60)]
    assert set(taken) == {0, block}
    assert 15 <= taken.count(block) <= 45


def test_an_aegis_brings_its_bearer_back(core: Any) -> None:
    """Tooltip: after 5 s, where it died, with full health and mana; once."""
    arena = item_duel(core, away=2000)
    a = arena.unit(0)
    assert arena.world.give_item(0, "item_aegis")
    at = arena.world.unit(a)
    arena.world.set_unit(a, mana=10)
    arena.world.kill(a, arena.unit(5))
    arena.seconds(4.8)
    assert not arena.world.unit(a)["alive"]
    arena.seconds(0.4)
    u = arena.world.unit(a)
    assert u["alive"] and (u["hp"], u["mana"]) == pytest.approx((u["max_hp"], u["max_mana"]), abs=3)
    assert abs(u["x"] - at["x"]) < 70 and abs(u["y"] - at["y"]) < 70
    assert not any(i and i[0] == "item_aegis" for i in arena.world.hero(0)["items"])

"""Zeus's abilities in both patches, computed by hand from the tooltips and abilities.json."""

from typing import Any

import pytest

from tests.dota.scenes.actions import cast, give, order_slot, use
from tests.dota.scenes.arena import Arena
from tests.dota.scenes.duels import river_scene
from tests.dota.scenes.readings import lost
from tests.dota.scenes.statuses import INVISIBLE, STUNNED
from tests.dota.scenes.units import down_river, river, river_creep, set_health


def duel(core: Any, patch: str, enemy: str = "nevermore", away: float = 400) -> Arena:
    """Return Zeus and an enemy; the second enemy is far away."""
    return river_scene(core, patch, ("zuus", "sniper"), (enemy, "viper"), {0: 0, 1: -900, 5: away, 6: 3000})


def hide(arena: Arena, hero: int = 5) -> int:
    """Let Riki become invisible by his passive, and return his unit."""
    unit = arena.unit(hero)
    arena.teach(hero, "riki_permanent_invisibility", 4)
    arena.seconds(5)
    assert arena.world.unit(unit)["status"] & INVISIBLE
    return unit


@pytest.mark.parametrize(("level", "strikes", "damage"), [(1, 5, 70), (2, 7, 95), (4, 15, 145)])
def test_arc_lightning_strikes_so_many_enemies(core: Any, patch: str, level: int, strikes: int, damage: float) -> None:
    """Tooltip: damage 70/95/120/145, 5/7/9/15 jumps, 500 from one to the next."""
    arena = duel(core, patch, away=3500)
    chain = [river_creep(arena, 300 + 30 * k) for k in range(strikes + 1)]
    hp = arena.hp(chain[0])
    cast(arena, "zuus_arc_lightning", level, chain[0], wait=0.3 + 0.25 * strikes)
    expected = [damage] * strikes + [0]
    assert [lost(arena, u, hp) for u in chain] == pytest.approx(expected, rel=1e-3)


def test_arc_lightning_jumps_every_quarter_second(core: Any, patch: str) -> None:
    """KV: jump_delay 0.25. The third is struck half a second after the first."""
    arena = duel(core, patch, away=3500)
    chain = [river_creep(arena, 300 + 200 * k) for k in range(3)]
    hp = arena.hp(chain[0])
    slot = arena.teach(0, "zuus_arc_lightning", 1)
    order_slot(arena, slot, chain[0])
    struck: list[float] = []
    for _ in range(60):
        arena.world.run_frames(1)
        struck += [arena.world.time] * (sum(arena.hp(u) < hp for u in chain) - len(struck))
    assert [t - struck[0] for t in struck] == pytest.approx([0, 0.25, 0.5], abs=0.035)


def test_arc_lightning_reaches_500_and_goes_to_the_nearest(core: Any, patch: str) -> None:
    arena = duel(core, patch, away=3500)
    first, near, far, beyond = (river_creep(arena, x) for x in (300, 600, 780, 1300))
    hp = arena.hp(first)
    cast(arena, "zuus_arc_lightning", 1, first, wait=0.5)
    assert [arena.hp(u) < hp for u in (first, near, far)] == [True, True, False]
    arena.seconds(1.5)
    assert arena.hp(far) < hp and arena.hp(beyond) == hp  # 520 from the last


def test_arc_lightning_looks_for_the_next_when_it_jumps(core: Any, patch: str) -> None:
    """An enemy that left the 500 before the jump is spared, and one that came is struck."""
    arena = duel(core, patch, away=3500)
    first, leaves, comes = river_creep(arena, 300), river_creep(arena, 450), river_creep(arena, 2000)
    hp = arena.hp(first)
    slot = arena.teach(0, "zuus_arc_lightning", 1)
    order_slot(arena, slot, first)
    while arena.hp(first) == hp:
        arena.world.run_frames(1)
    down_river(arena, leaves, 2600)
    down_river(arena, comes, 600)
    arena.seconds(1)
    assert [arena.hp(u) < hp for u in (leaves, comes)] == [False, True]


def test_arc_lightning_jumps_to_no_unseen_enemy(core: Any, patch: str) -> None:
    """Public wikis: neither to invisible units nor into the fog."""
    arena = duel(core, patch, "riki", away=500)
    riki = hide(arena)
    first = river_creep(arena, 400)
    hp, hp_riki = arena.hp(first), arena.hp(riki)
    cast(arena, "zuus_arc_lightning", 4, first, wait=1)
    assert arena.hp(first) < hp and arena.hp(riki) == hp_riki


@pytest.mark.parametrize(("level", "damage"), [(1, 125), (2, 200), (3, 275), (4, 350)])
def test_lightning_bolt_on_a_unit(core: Any, patch: str, level: int, damage: float) -> None:
    arena = duel(core, patch)
    b = arena.unit(5)
    hp = arena.hp(b)
    cast(arena, "zuus_lightning_bolt", level, b, wait=0.55)
    assert lost(arena, b, hp) == pytest.approx(damage, rel=1e-3)


@pytest.mark.parametrize(("talent", "seconds"), [(False, 0.2), (True, 0.7)])
def test_lightning_bolt_stuns_for_a_moment(core: Any, patch: str, talent: bool, seconds: float) -> None:
    """0.2 s (patch 7.30e raises it from 0.2; public wikis), 0.5 s more with the talent."""
    arena = duel(core, patch)
    b = arena.unit(5)
    if talent:
        arena.world.teach(0, "special_bonus_unique_zeus_3", 1)
    slot = arena.teach(0, "zuus_lightning_bolt", 1)
    order_slot(arena, slot, b)
    frames = 0
    for _ in range(60):
        arena.world.run_frames(1)
        frames += bool(arena.world.unit(b)["status"] & STUNNED)
    assert frames / 30 == pytest.approx(seconds, abs=0.04)


def test_lightning_bolt_interrupts_a_channel(core: Any, patch: str) -> None:
    """Note: it can interrupt channelled spells."""
    arena = duel(core, patch, "crystal_maiden")
    b = arena.unit(5)
    cast(arena, "crystal_maiden_freezing_field", 1, hero=5)
    assert arena.world.unit(b)["act"] == "channel"
    cast(arena, "zuus_lightning_bolt", 1, b)
    assert arena.world.unit(b)["act"] != "channel"


def test_lightning_bolt_on_the_ground_strikes_the_closest_hero(core: Any, patch: str) -> None:
    """Tooltip: on the ground it takes the closest enemy hero within 325; a creep is nearer here, a hero farther."""
    arena = duel(core, patch, away=500)
    near, far, small = arena.unit(5), arena.unit(6), river_creep(arena, 420)
    down_river(arena, far, 150)
    hp, hp_creep = arena.hp(near), arena.hp(small)
    cast(arena, "zuus_lightning_bolt", 1, at=river(400))
    assert lost(arena, near, hp) == pytest.approx(125, rel=1e-3)
    assert arena.hp(far) == hp and arena.hp(small) == hp_creep
    assert not arena.world.unit(far)["status"] & STUNNED


def test_lightning_bolt_on_the_ground_strikes_one_hero_although_it_dies(core: Any, patch: str) -> None:
    arena = duel(core, patch, away=500)
    near, far = arena.unit(5), arena.unit(6)
    down_river(arena, far, 200)
    arena.world.set_unit(near, hp=10)
    hp = arena.hp(far)
    cast(arena, "zuus_lightning_bolt", 1, at=river(400), wait=0.5)
    assert not arena.world.unit(near)["alive"]
    assert arena.hp(far) == hp and not arena.world.unit(far)["status"] & STUNNED


def test_lightning_bolt_on_the_ground_misses_heroes_beyond_its_reach(core: Any, patch: str) -> None:
    arena = duel(core, patch, away=400 + 340)
    hp = arena.hp(arena.unit(5))
    cast(arena, "zuus_lightning_bolt", 1, at=river(400))
    assert arena.hp(arena.unit(5)) == hp


def test_lightning_bolt_finds_the_invisible(core: Any, patch: str) -> None:
    """Tooltip: true sight in 750 around the place for 4.5 s; a bolt on the ground strikes an invisible hero."""
    arena = duel(core, patch, "riki", away=700)
    riki = hide(arena)
    assert not arena.world.visible(0, riki)
    hp = arena.hp(riki)
    cast(arena, "zuus_lightning_bolt", 1, at=river(500), wait=0.7)
    assert arena.world.visible(0, riki) and arena.hp(riki) < hp
    down_river(arena, riki, 1200)
    arena.seconds(0.3)
    assert arena.world.visible(0, riki)  # 700 away
    down_river(arena, riki, 1320)
    arena.seconds(0.3)
    assert not arena.world.visible(0, riki)  # 820 away
    down_river(arena, riki, 1200)
    arena.seconds(2.9)
    assert arena.world.visible(0, riki)  # 4.1 s after the bolt
    arena.seconds(0.7)
    assert not arena.world.visible(0, riki)


def test_lightning_bolt_gives_vision_of_the_place(core: Any, patch: str) -> None:
    """Tooltip: unobstructed vision in 750 for 4.5 s. No ally is near."""
    arena = duel(core, patch, away=2500)
    b = arena.unit(5)
    cast(arena, "zuus_lightning_bolt", 4, at=river(800), wait=0.7)
    down_river(arena, arena.unit(0), -2500)
    down_river(arena, b, 1500)
    arena.seconds(0.3)
    assert arena.world.visible(0, b)
    down_river(arena, b, 1650)
    arena.seconds(0.3)
    assert not arena.world.visible(0, b)
    down_river(arena, b, 1500)
    arena.seconds(4)
    assert not arena.world.visible(0, b)


@pytest.mark.parametrize(("level", "share"), [(1, 0.05), (4, 0.11)])
def test_static_field_shocks_whom_an_ability_hits(core: Any, level: int, share: float) -> None:
    """7.21: 5/7/9/11 % of the current health, before the ability's own damage; nobody else is shocked."""
    arena = duel(core, "7.21d")
    b, beside = arena.unit(5), arena.unit(6)
    down_river(arena, beside, 300, 100)
    arena.teach(0, "zuus_static_field", level)
    hp = arena.hp(b)
    cast(arena, "zuus_lightning_bolt", 1, b)
    assert lost(arena, b, hp) == pytest.approx(share * hp + 125, rel=1e-3)
    assert arena.hp(beside) == hp


def test_static_field_shocks_each_link_of_arc_lightning(core: Any) -> None:
    arena = duel(core, "7.21d", away=3500)
    chain = [river_creep(arena, 300 + 100 * k) for k in range(3)]
    arena.teach(0, "zuus_static_field", 1)
    hp = arena.hp(chain[0])
    cast(arena, "zuus_arc_lightning", 1, chain[0], wait=1)
    assert [lost(arena, u, hp) for u in chain] == pytest.approx([0.05 * hp + 70] * 3, rel=1e-3)


@pytest.mark.parametrize(("level", "share"), [(1, 0.04), (4, 0.10)])
def test_static_field_of_719_shocks_all_around(core: Any, level: int, share: float) -> None:
    """7.19: 4/6/8/10 % of the current health of every enemy within 1200, before the ability's own damage."""
    arena = duel(core, "7.19")
    b, unseen, beyond, small = arena.unit(5), arena.unit(6), river_creep(arena, 0, 1250), river_creep(arena, 500)
    down_river(arena, unseen, 1150)
    arena.teach(0, "zuus_static_field", level)
    hp, hp_creep = arena.hp(b), arena.hp(small)
    cast(arena, "zuus_lightning_bolt", 1, b)
    assert lost(arena, b, hp) == pytest.approx(share * hp + 125, rel=1e-3)
    assert lost(arena, unseen, hp) == pytest.approx(share * hp, rel=1e-3)
    assert lost(arena, small, hp_creep) == pytest.approx(share * hp_creep, rel=1e-3)
    assert arena.hp(beyond) == hp_creep


def test_static_field_of_719_spares_the_immune(core: Any) -> None:
    arena = duel(core, "7.19")
    other = arena.unit(6)
    down_river(arena, other, 300, 100)
    use(arena, give(arena, "black_king_bar", 6), hero=6)
    arena.teach(0, "zuus_static_field", 4)
    hp = arena.hp(other)
    cast(arena, "zuus_lightning_bolt", 1, arena.unit(5))
    assert arena.hp(arena.unit(5)) < hp and arena.hp(other) == hp


def test_static_field_ignores_items(core: Any, patch: str) -> None:
    """Note: items do not trigger it. Dagon deals 400 at its first rank."""
    arena = duel(core, patch)
    b = arena.unit(5)
    arena.teach(0, "zuus_static_field", 4)
    slot = give(arena, "dagon")
    hp = arena.hp(b)
    use(arena, slot, b)
    assert lost(arena, b, hp) == pytest.approx(400, rel=1e-3)


def test_static_field_spares_roshan(core: Any, patch: str) -> None:
    """Public wikis. Arc Lightning reaches him from a creep; he would block a spell that is aimed at him."""
    arena = duel(core, patch, away=3500)
    first, roshan = river_creep(arena, 300), arena.world.spawn("npc_dota_roshan", 2, 0, 0)
    down_river(arena, roshan, 500)
    arena.still(roshan)
    arena.teach(0, "zuus_static_field", 4)
    hp = arena.hp(roshan)
    cast(arena, "zuus_arc_lightning", 1, first, wait=0.6)
    assert lost(arena, roshan, hp) == pytest.approx(70, rel=1e-3)


def test_static_field_ends_nothing_that_damage_ends(core: Any) -> None:
    """Its damage removes health until patch 7.30d: a Blink Dagger stays ready."""
    arena = duel(core, "7.19")
    other = arena.unit(6)
    down_river(arena, other, 300, 100)
    give(arena, "blink", 6)
    arena.teach(0, "zuus_static_field", 4)
    hp = arena.hp(other)
    cast(arena, "zuus_lightning_bolt", 1, arena.unit(5))
    assert arena.hp(other) < hp and arena.world.ability(6, "item_blink")["castable"]


@pytest.mark.parametrize(("level", "damage"), [(1, 225), (2, 325), (3, 425)])
def test_thundergods_wrath_strikes_all_heroes_anywhere(core: Any, patch: str, level: int, damage: float) -> None:
    arena = duel(core, patch)
    near, far, small = arena.unit(5), arena.unit(6), river_creep(arena, 300)
    arena.world.set_unit(far, x=6000, y=5500)
    arena.still(far)
    set_health(arena, far, hp=4000, max_hp=6000)
    arena.seconds(3.5)
    arena.still(far)
    hp, hp_far, hp_creep = arena.hp(near), arena.hp(far), arena.hp(small)
    cast(arena, "zuus_thundergods_wrath", level, wait=0.55)
    assert lost(arena, near, hp) == pytest.approx(damage, rel=1e-3)
    assert lost(arena, far, hp_far) == pytest.approx(damage, rel=1e-2)
    assert arena.hp(small) == hp_creep


def test_thundergods_wrath_shows_the_invisible_and_spares_them(core: Any, patch: str) -> None:
    """Tooltip: an invisible hero takes no damage, but its place is under true sight, 900 (KV) for 3 s; sight is 500."""
    arena = duel(core, patch, "riki", away=700)
    riki = hide(arena)
    hp = arena.hp(riki)
    cast(arena, "zuus_thundergods_wrath", 1, wait=0.7)
    assert arena.hp(riki) == hp and arena.world.visible(0, riki)
    arena.seconds(2)
    assert arena.world.visible(0, riki)
    arena.seconds(1)
    assert not arena.world.visible(0, riki)


def test_thundergods_wrath_strikes_the_invisible_under_true_sight(core: Any, patch: str) -> None:
    arena = duel(core, patch, "riki", away=700)
    riki = hide(arena)
    hp = arena.hp(riki)
    give(arena, "gem")
    arena.seconds(0.3)
    assert arena.world.visible(0, riki)
    cast(arena, "zuus_thundergods_wrath", 1)
    assert lost(arena, riki, hp) == pytest.approx(225, rel=1e-3)


def test_thundergods_wrath_shows_each_hero(core: Any, patch: str) -> None:
    """KV: sight 500 for 3 s where each hero was struck; it does not follow."""
    arena = duel(core, patch, away=3000)
    b = arena.unit(6)
    arena.world.set_unit(b, x=6000, y=5500)
    arena.seconds(0.3)
    assert not arena.world.visible(0, b)
    cast(arena, "zuus_thundergods_wrath", 1, wait=0.7)
    assert arena.world.visible(0, b)
    arena.world.set_unit(b, x=6000, y=4700)
    arena.seconds(0.3)
    assert not arena.world.visible(0, b)


@pytest.mark.parametrize("talent", [False, True])
def test_a_talent_lengthens_casts(core: Any, patch: str, talent: bool) -> None:
    """275 beyond Arc Lightning's 850: with the talent Zeus strikes from 1100 without walking."""
    arena = duel(core, patch, away=690)
    a, b = arena.unit(0), arena.unit(5)
    down_river(arena, a, -410)
    arena.seconds(0.2)
    if talent:
        arena.world.teach(0, "special_bonus_cast_range_275", 1)
    before, hp = arena.world.unit(a), arena.hp(b)
    cast(arena, "zuus_arc_lightning", 1, b, wait=0.5)
    after = arena.world.unit(a)
    assert ((after["x"], after["y"]) == (before["x"], before["y"])) == talent
    assert (arena.hp(b) < hp) == talent

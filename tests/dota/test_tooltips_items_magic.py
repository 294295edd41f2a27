"""Items that cast: bursts, hexes, silences, roots, and what changes the spells of their bearer."""

import math
from typing import Any

import pytest

from tests.dota.scenes.actions import give, use
from tests.dota.scenes.arena import CENTRE
from tests.dota.scenes.duels import item_duel
from tests.dota.scenes.statuses import ROOTED, SILENCED
from tests.dota.scenes.units import without_armor, wounded


@pytest.mark.parametrize("rank", range(1, 6))
def test_a_dagon_strikes_by_its_rank(core: Any, rank: int) -> None:
    """Tooltip: 400 to 800 damage within 600 to 800, for 120 to 200 mana, every 35 to 15 s."""
    arena = item_duel(core, away=550 + 50 * rank + 40)
    name = "dagon" if rank == 1 else f"dagon_{rank}"
    slot, enemy = give(arena, name), without_armor(arena, arena.unit(5))
    mana = arena.world.unit(arena.unit(0))["mana"]
    arena.world.order(arena.unit(0), "cast_unit", target=enemy, slot=slot)
    arena.world.run_frames(2)
    dealt = (300 + 100 * rank) * arena.magic(enemy) * arena.amp(arena.unit(0))
    assert 20000 - arena.hp(enemy) == pytest.approx(dealt, abs=0.5)
    assert mana - arena.world.unit(arena.unit(0))["mana"] == pytest.approx(100 + 20 * rank, abs=0.5)
    left = arena.world.ability(0, "item_" + name)["ready"] - arena.world.time
    assert left == pytest.approx(40 - 5 * rank, abs=0.1)


def test_a_sheepstick_disables_everything(core: Any) -> None:
    """Tooltip: silenced, muted and disarmed at a speed of 140 for 3.5 s; no dispel but a strong one ends it."""
    arena = item_duel(core)
    enemy = arena.unit(5)
    use(arena, give(arena, "sheepstick"), enemy)
    give(arena, "black_king_bar", hero=5)
    raze = arena.teach(5, "nevermore_shadowraze1", 1)
    arena.world.set_unit(enemy, attack_ready=0)
    arena.world.order(enemy, "attack", arena.unit(0))
    for seconds, free in ((1, False), (2.4, True)):
        arena.seconds(seconds)
        assert (arena.world.unit(enemy)["move_speed"] > 145) == free  # 140, and the share by agility
        assert arena.world.ability(5, "item_black_king_bar")["castable"] == free
        assert arena.world.ability(5, "nevermore_shadowraze1")["castable"] == free and raze >= 0
    assert arena.world.unit(enemy)["last_attack"] > arena.world.time - 1


@pytest.mark.parametrize("item", ["orchid", "bloodthorn"])
def test_soul_burn_repeats_a_share_of_the_damage(core: Any, item: str) -> None:
    """Tooltip: silenced for 5 s, then 30 % of the damage of that time as magic."""
    arena = item_duel(core)
    enemy = without_armor(arena, arena.unit(5))
    use(arena, give(arena, item), enemy)
    arena.world.damage(arena.unit(0), enemy, 1000, "pure")
    hp = arena.hp(enemy)
    arena.seconds(4.6)
    assert arena.hp(enemy) == hp
    arena.seconds(0.5)
    assert hp - arena.hp(enemy) == pytest.approx(300 * arena.magic(enemy) * arena.amp(arena.unit(0)), rel=0.01)


def test_euls_hurts_enemies_only(core: Any) -> None:
    """Tooltip: 50 magical damage to enemies upon landing; a basic dispel takes what helps or hurts by its side."""
    for target, damage in ((0, 0), (5, 50)):
        arena = item_duel(core)
        unit = without_armor(arena, arena.unit(target))
        use(arena, give(arena, "cyclone"), unit)
        assert arena.world.damage(arena.unit(5 - target), unit, 100, "pure") == 0
        arena.seconds(2.6)
        expected = damage * arena.magic(unit) * arena.amp(arena.unit(0))
        assert 20000 - arena.hp(unit) == pytest.approx(expected, abs=0.5)


def test_an_ether_blast_strikes_by_the_primary_attribute(core: Any) -> None:
    """Tooltip: twice the primary attribute and 75, against 40 % less resistance, and 80 % slower for 4 s."""
    arena = item_duel(core)
    slot, enemy = give(arena, "ethereal_blade"), without_armor(arena, arena.unit(5))
    speed = arena.world.unit(enemy)["move_speed"]
    strength, share = arena.world.unit(arena.unit(0))["str"], arena.magic(enemy)
    use(arena, slot, enemy)
    arena.seconds(0.5)
    expected = (2 * strength + 75) * 1.4 * share * arena.amp(arena.unit(0))
    assert 20000 - arena.hp(enemy) == pytest.approx(expected, rel=0.005)
    lowest = arena.data["rules"]["rules"]["combat"]["move_speed_min"]
    assert speed - 0.8 * arena.base_speed("nevermore") < lowest
    assert arena.world.unit(enemy)["move_speed"] == pytest.approx(lowest)


def test_rod_of_atos_roots_where_its_bolt_arrives(core: Any) -> None:
    """Tooltip: 2 s; range of the files 1,100."""
    arena = item_duel(core, away=1130)
    enemy = arena.unit(5)
    use(arena, give(arena, "rod_of_atos"), enemy)
    assert not arena.world.unit(enemy)["status"] & ROOTED
    arena.seconds(0.8)
    assert arena.world.unit(enemy)["status"] & ROOTED
    arena.seconds(1.8)
    assert not arena.world.unit(enemy)["status"] & ROOTED


def test_shivas_wave_and_aura(core: Any) -> None:
    """Tooltip: 200 damage and 40 % slower for 4 s by a wave within 900; 45 less attack speed within 1,200."""
    arena = item_duel(core, away=880)
    enemy, far = without_armor(arena, arena.unit(5)), without_armor(arena, arena.unit(6))
    arena.place(far, 0, 1190)
    before = [arena.world.unit(u) for u in (enemy, far)]
    slot = give(arena, "shivas_guard")
    arena.seconds(0.3)
    assert [arena.world.unit(u)["attack_speed"] - b["attack_speed"] for u, b in zip((enemy, far), before, strict=True)
            ] == pytest.approx([-45, -45])
    use(arena, slot)
    assert arena.hp(enemy) == 20000
    arena.seconds(2.6)
    assert 20000 - arena.hp(enemy) == pytest.approx(200 * arena.magic(enemy) * arena.amp(arena.unit(0)), abs=0.5)
    assert arena.hp(far) == 20000
    slower = before[0]["move_speed"] - arena.world.unit(enemy)["move_speed"]
    assert slower == pytest.approx(0.4 * arena.base_speed("nevermore"), abs=1)


def test_an_aether_lens_lengthens_the_reach_of_spells_and_items(core: Any) -> None:
    """Tooltip: 250 more cast range of targeted spells and items."""
    for lens, casts in ((False, False), (True, True)):
        arena = item_duel(core, away=600 + 240)
        if lens:
            assert arena.world.give_item(0, "item_aether_lens")
        enemy = without_armor(arena, arena.unit(5))
        slot = give(arena, "dagon")
        arena.world.order(arena.unit(0), "cast_unit", target=enemy, slot=slot)
        arena.world.run_frames(2)
        assert (arena.hp(enemy) < 20000) == casts


@pytest.mark.parametrize(("patch", "item", "less", "amp"), [("7.21d", "kaya", 0.12, 8), ("7.19", "kaya", 0.10, 10),
                                                            ("7.21d", "kaya_and_sange", 0.16, 12),
                                                            ("7.21d", "yasha_and_kaya", 0.16, 12)])
def test_kaya_saves_mana(core: Any, patch: str, item: str, less: float, amp: float) -> None:
    """Tooltip: spells and items cost so much less, and do so much more."""
    arena = item_duel(core, patch)
    amplified = arena.amp(arena.unit(0))
    mind = arena.world.unit(arena.unit(0))["int"]
    give(arena, item)
    a, rules = arena.unit(0), arena.data["rules"]["rules"]["attributes"]
    of_mind = (arena.world.unit(a)["int"] - mind) * rules["spell_amp_pct_per_int"]
    assert arena.amp(a) - amplified == pytest.approx((amp + of_mind) / 100, abs=1e-5)
    slot = give(arena, "force_staff")
    arena.world.set_unit(a, mana=200)
    use(arena, slot, a)
    assert 200 - arena.world.unit(a)["mana"] == pytest.approx(100 * (1 - less), abs=0.5)


def test_a_soul_ring_gives_mana_for_health(core: Any) -> None:
    """Tooltip: 170 health for 150 mana; it does not kill."""
    arena = item_duel(core)
    slot, a = give(arena, "soul_ring"), wounded(arena, 300)
    arena.world.set_unit(a, mana=0)
    use(arena, slot)
    assert (arena.hp(a), arena.world.unit(a)["mana"]) == pytest.approx((130, 150), abs=1)
    arena.seconds(25)
    arena.still(a)
    wounded(arena, 100)
    use(arena, slot)
    assert arena.world.unit(a)["alive"] and arena.hp(a) < 5


def test_an_armlet_does_not_kill(core: Any) -> None:
    """Tooltip: 54 health a second while it is on; neither that nor the lost strength kills."""
    arena = item_duel(core)
    slot, a = give(arena, "armlet"), arena.unit(0)
    before = arena.world.unit(a)
    use(arena, slot)
    now = arena.world.unit(a)
    gained = [now[k] - before[k] for k in ("dmg_bonus", "str", "armor")]
    assert gained == pytest.approx([31, 25, 4])
    arena.still(a)
    wounded(arena, 500)
    arena.seconds(2)
    assert arena.hp(a) == pytest.approx(500 - 108, abs=6)
    wounded(arena, 30)
    arena.seconds(2)
    assert arena.world.unit(a)["alive"] and arena.hp(a) <= 2
    use(arena, slot)
    assert arena.world.unit(a)["alive"] and arena.world.unit(a)["str"] == pytest.approx(before["str"])


def test_a_meteor_burns_buildings_less(core: Any) -> None:
    """Tooltip: 150 and 90 a second for 6 s on units, 75 and 50 on buildings, 0.5 s after a channel of 2.5 s."""
    arena = item_duel(core, away=2400)
    tower = next(u for u in arena.world.units("tower") if u["team"] == 1 and u["tier"] == 1 and u["lane"] == 1)
    a, slot = arena.unit(0), give(arena, "meteor_hammer")
    arena.world.set_unit(a, x=tower["x"] - 500, y=tower["y"], extra_hp=50000)
    arena.world.set_unit(a, hp=40000)
    arena.world.spawn("npc_dota_creep_goodguys_melee", 0, tower["x"] - 300, tower["y"] + 300)
    arena.seconds(0.4)
    hp = arena.hp(tower["index"])
    arena.world.order(a, "cast_point", x=tower["x"], y=tower["y"], slot=slot)
    arena.seconds(3.4)
    share = arena.magic(tower["index"]) * arena.amp(a)
    assert hp - arena.hp(tower["index"]) == pytest.approx(75 * share, rel=0.03)
    arena.seconds(6.4)
    assert hp - arena.hp(tower["index"]) == pytest.approx((75 + 6 * 50) * share, rel=0.03)


def test_travel_boots_of_rank_two_reach_heroes(core: Any) -> None:
    """Tooltip: to any allied unit including heroes; rank one reaches creeps and buildings only."""
    for item, there in (("travel_boots", False), ("travel_boots_2", True)):
        arena = item_duel(core, away=2400)
        mate, slot = arena.unit(1), give(arena, item)
        tower = next(u for u in arena.world.units("tower") if u["team"] == 0 and u["tier"] == 2 and u["lane"] == 0)
        arena.world.set_unit(mate, x=tower["x"] + 1500, y=tower["y"])
        at = arena.world.unit(mate)
        arena.world.order(arena.unit(0), "cast_point", x=at["x"], y=at["y"], slot=slot)
        arena.seconds(3.4)
        u = arena.world.unit(arena.unit(0))
        assert (math.dist((u["x"], u["y"]), (at["x"], at["y"])) < 300) == there
        assert math.dist((u["x"], u["y"]), CENTRE) > 500


@pytest.mark.parametrize(("item", "on"), [("guardian_greaves", None), ("satanic", None), ("lotus_orb", 0),
                                          ("cyclone", 0), ("black_king_bar", None)])
def test_items_with_a_basic_dispel_end_what_it_takes(core: Any, item: str, on: int | None) -> None:
    """Tooltips, of Satanic public wikis: a slow goes, a stun stays."""
    arena = item_duel(core, enemy="lion")
    a, slot = arena.unit(0), give(arena, item)
    venom = give(arena, "orchid", hero=5)
    use(arena, venom, a, hero=5)
    assert arena.world.unit(a)["status"] & SILENCED
    use(arena, slot, None if on is None else arena.unit(on))
    assert not arena.world.unit(a)["status"] & SILENCED


def test_nullifier_takes_what_helps_its_target(core: Any) -> None:
    """Tooltip: a basic dispel, from an enemy: a shield against magic goes, and items are muted."""
    arena = item_duel(core, enemy="sven")
    enemy = arena.unit(5)
    use(arena, give(arena, "ghost", hero=5), hero=5)
    assert arena.modifiers(enemy, "item_ghost")
    use(arena, give(arena, "nullifier"), enemy)
    arena.seconds(0.8)
    assert not arena.modifiers(enemy, "item_ghost")
    assert not arena.world.ability(5, "item_ghost")["castable"]

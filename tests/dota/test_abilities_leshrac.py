"""Leshrac's abilities against numbers computed by hand from their tooltips; his numbers are those of 7.21d."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.dota.scenes.actions import give, use
from tests.dota.scenes.arena import Arena
from tests.dota.scenes.readings import magical_damage
from tests.dota.scenes.statuses import INVISIBLE, STUNNED
from tests.dota.scenes.talents import duel, take
from tests.dota.scenes.units import down_river, river_creep
from tests.dota.test_abilities_lina import cast

Make = Callable[..., Arena]
EDICT, STORM, NOVA = "leshrac_diabolic_edict", "leshrac_lightning_storm", "leshrac_pulse_nova"


@pytest.fixture
def make(new_world: Any, data: dict[str, Any]) -> Make:
    def alone(**sides: Any) -> Arena:
        arena = duel(new_world, data, "leshrac", **sides)
        arena.world.set_unit(arena.unit(5), extra_armor=-arena.world.unit(arena.unit(5))["armor"])
        return arena

    return alone


@pytest.mark.parametrize(("rank", "damage", "inside", "outside"), [(1, 120, 145, 155), (4, 300, 220, 230)])
def test_split_earth_strikes_after_its_delay(make: Make, rank: int, damage: float, inside: float,
                                             outside: float) -> None:
    """0.35 s after the cast, within 150 to 225; a stun of 2 s. Units that left by then take nothing."""
    arena = make()
    enemy, leaves = arena.unit(5), arena.dummy(300, -100)
    near, far = arena.dummy(300, inside), arena.dummy(300 + outside, 0)
    hp = arena.hp(enemy)
    cast(arena, "leshrac_split_earth", rank, wait=0.3)
    assert arena.hp(enemy) == hp
    arena.place(leaves, 300, -400)
    arena.world.run_frames(3)
    assert hp - arena.hp(enemy) == pytest.approx(magical_damage(arena, enemy, damage), rel=1e-3)
    assert arena.hp(near) < 5000 and arena.hp(far) == arena.hp(leaves) == 5000
    (held,) = [m for m in arena.modifiers(enemy, "leshrac_split_earth") if m["status"] & STUNNED]
    assert held["left"] == pytest.approx(2, abs=0.11)


def edict(arena: Arena, rank: int = 2, wait: float = 10.6) -> None:
    arena.world.order(arena.unit(0), "cast", slot=arena.teach(0, EDICT, rank))
    arena.seconds(wait)


@pytest.mark.parametrize("held", ["nothing", "stout_shield", "invis_sword"])
def test_edict_strikes_one_enemy_forty_times(make: Make, held: str) -> None:
    """40 times 20 physical damage within 10 s. Notes: no damage block helps, and invisible units are struck."""
    arena = make()
    enemy = arena.unit(5)
    if held != "nothing":
        slot = give(arena, held, hero=5)
        arena.still(enemy)
    hp = arena.hp(enemy)
    if held == "invis_sword":
        use(arena, slot, hero=5)
    edict(arena)
    assert bool(arena.world.unit(enemy)["status"] & INVISIBLE) == (held == "invis_sword")
    assert hp - arena.hp(enemy) == pytest.approx(40 * 20 * arena.amp(arena.unit(0)), rel=1e-3)


def test_edict_lasts_ten_seconds_and_strikes_only_around(make: Make) -> None:
    """A strike every quarter of a second: 20 within the first 5 s. Beyond 500 nobody is struck."""
    arena = make()
    enemy, far = arena.unit(5), arena.dummy(0, 510)
    arena.place(enemy, 0, 490)
    hp = arena.hp(enemy)
    edict(arena, wait=0.5 + 5)
    each = 20 * arena.amp(arena.unit(0))
    assert (hp - arena.hp(enemy)) / each == pytest.approx(20, abs=1.1)
    arena.seconds(8)
    assert hp - arena.hp(enemy) == pytest.approx(40 * each, rel=1e-3)
    assert arena.hp(far) == 5000


def test_edict_begins_at_once(make: Make) -> None:
    """Public wikis: the first explosion comes with the cast, half a second after the order."""
    arena = make()
    enemy = arena.unit(5)
    hp = arena.hp(enemy)
    edict(arena, wait=0.5 + 0.13)
    assert hp - arena.hp(enemy) == pytest.approx(20 * arena.amp(arena.unit(0)), rel=1e-3)


def test_edict_damage_is_split_between_units(make: Make) -> None:
    """Tooltip: each strike takes one unit at random, so fewer units take more each."""
    arena = make()
    enemy, other = arena.unit(5), arena.dummy(200, 200)
    arena.world.set_unit(other, extra_armor=-arena.world.unit(other)["armor"])
    hp = arena.hp(enemy)
    edict(arena)
    each = 20 * arena.amp(arena.unit(0))
    taken = (hp - arena.hp(enemy)) / each, (5000 - arena.hp(other)) / each
    assert sum(taken) == pytest.approx(40, rel=1e-3)
    assert min(taken) > 8


def test_edict_strikes_on_after_his_death(make: Make) -> None:
    """Note: around where he died. Four strikes a second go on: 16 in 4 s, before he is back."""
    arena = make()
    enemy = arena.unit(5)
    each = 20 * arena.amp(arena.unit(0))
    edict(arena, wait=2.5)
    arena.world.kill(arena.unit(0))
    hp = arena.hp(enemy)
    arena.seconds(4)
    assert not arena.world.unit(arena.unit(0))["alive"]
    assert (hp - arena.hp(enemy)) / each == pytest.approx(16, abs=1.1)


@pytest.mark.parametrize("tier", [1, 2])
def test_edict_deals_more_to_towers(make: Make, tier: int) -> None:
    """40 % more to towers: 28 a strike. A protected tower is not struck: the strikes go to others."""
    arena = make()
    tower = next(u for u in arena.world.units("tower") if u["team"] == 1 and u["tier"] == tier)
    arena.world.set_unit(arena.unit(0), x=tower["x"] - 300, y=tower["y"], extra_hp=9000)
    arena.world.set_unit(arena.unit(0), hp=9000)
    arena.seconds(0.2)
    hp = arena.hp(tower["index"])
    other = None
    if tier == 2:
        other = arena.world.spawn("npc_dota_neutral_centaur_khan", 2, tower["x"] - 400, tower["y"])
        arena.world.set_unit(other, extra_hp=4000)
        arena.still(other)
        arena.world.set_unit(other, hp=4000, extra_armor=-arena.world.unit(other)["armor"])
    edict(arena)
    amp = arena.amp(arena.unit(0))
    if other is not None:
        assert arena.hp(tower["index"]) == hp
        assert 4000 - arena.hp(other) == pytest.approx(40 * 20 * amp, rel=1e-3)
        return
    r, armor = arena.data["rules"]["rules"]["armor"], arena.world.unit(tower["index"])["armor"]
    through = 1 - r["a"] * armor / (r["b"] + r["c"] * armor)
    assert hp - arena.hp(tower["index"]) == pytest.approx(40 * 28 * amp * through, rel=1e-3)


def test_more_explosions_take_no_longer(make: Make) -> None:
    """Talent: 40 more explosions within the same 10 s."""
    arena = make()
    take(arena, "leshrac_1")
    enemy = arena.unit(5)
    hp = arena.hp(enemy)
    edict(arena)
    assert hp - arena.hp(enemy) == pytest.approx(80 * 20 * arena.amp(arena.unit(0)), rel=1e-3)


def test_lightning_storm_jumps_from_enemy_to_enemy(make: Make) -> None:
    """Rank 1: four enemies, 80 to each and never twice, one every quarter of a second, no jump beyond 475."""
    arena = make()
    arena.place(arena.unit(5), -2000, 0)
    line = [river_creep(arena, 280 * (i + 1)) for i in range(5)]
    cast(arena, STORM, 1, line[0], wait=0.1)
    each = magical_damage(arena, line[0], 80)
    for struck in range(1, 5):
        lost = [(5000 - arena.hp(u)) / each for u in line]
        assert lost == pytest.approx([1] * struck + [0] * (5 - struck), rel=1e-3)
        arena.world.run_frames(8)
    arena.seconds(1)
    assert arena.hp(line[4]) == 5000 and 5000 - arena.hp(line[0]) == pytest.approx(each, rel=1e-3)


def test_lightning_storm_stops_where_nobody_is_near(make: Make) -> None:
    arena = make()
    first, near, far = (river_creep(arena, away) for away in (300, 765, 1245))
    arena.place(arena.unit(5), -2000, 0)
    cast(arena, STORM, 4, first, wait=2)
    assert arena.hp(near) < 5000 and arena.hp(far) == 5000


def test_lightning_storm_passes_over_the_unseen(make: Make) -> None:
    """Public re-implementations of the spell: no jump to units that his team does not see."""
    arena = make()
    hidden, first, behind = arena.unit(5), river_creep(arena, 300), river_creep(arena, 600)
    down_river(arena, hidden, 450)
    slot = give(arena, "invis_sword", hero=5)
    arena.still(hidden)
    hp = arena.hp(hidden)
    use(arena, slot, hero=5)
    arena.seconds(0.3)
    assert arena.world.unit(hidden)["status"] & INVISIBLE
    cast(arena, STORM, 4, first, wait=2)
    assert arena.hp(hidden) == hp and arena.hp(behind) < 5000


@pytest.mark.parametrize(("talent", "lasts"), [(False, 0.4), (True, 3.4)])
def test_lightning_storm_slows_whom_it_strikes(make: Make, talent: bool, lasts: float) -> None:
    """75 % slower for 0.4 s at rank 1, 3 s longer with the talent."""
    arena = make()
    if talent:
        take(arena, "leshrac_2")
    enemy = arena.unit(5)
    speed = arena.world.unit(enemy)["move_speed"]
    cast(arena, STORM, 1, enemy, wait=0.1)
    slow = max(100.0, speed - 0.75 * arena.base_speed("sven"))
    assert arena.world.unit(enemy)["move_speed"] == pytest.approx(slow, rel=1e-3)
    (m,) = arena.modifiers(enemy, STORM)
    assert m["left"] == pytest.approx(lasts, abs=0.14)
    arena.seconds(lasts + 0.2)
    assert arena.world.unit(enemy)["move_speed"] == pytest.approx(speed)


def switch(arena: Arena) -> None:
    arena.world.order(arena.unit(0), "cast", slot=arena.world.ability(0, NOVA)["slot"])
    arena.world.run_frames(5)


def nova(arena: Arena, rank: int = 1, mana: float = 300) -> None:
    """Learn Pulse Nova and switch it on with that mana."""
    arena.teach(0, NOVA, rank)
    arena.world.set_unit(arena.unit(0), mana=mana)
    switch(arena)


def mana_of(arena: Arena) -> float:
    mana: float = arena.world.unit(arena.unit(0))["mana"]
    return mana


def test_pulse_nova_strikes_once_a_second(make: Make) -> None:
    """70 mana to begin with, then 20 and 100 damage within 450 at once and each second."""
    arena = make()
    enemy, far = arena.unit(5), arena.dummy(0, 460)
    arena.place(enemy, 0, 440)
    hp = arena.hp(enemy)
    nova(arena)
    arena.world.run_frames(4)
    for pulses in (1, 2, 3):
        assert hp - arena.hp(enemy) == pytest.approx(pulses * magical_damage(arena, enemy, 100), rel=1e-3)
        assert mana_of(arena) == pytest.approx(300 - 70 - 20 * pulses, abs=0.01)
        arena.world.run_frames(30)
    assert arena.hp(far) == 5000


def test_switching_pulse_nova_off_is_free(make: Make) -> None:
    """It is ready a second after it was switched on. Patch 7.32d: switching off starts no cooldown before then."""
    arena = make()
    enemy = arena.unit(5)
    nova(arena)
    assert not arena.world.ability(0, NOVA)["castable"]
    arena.world.run_frames(27)
    mana, hp = mana_of(arena), arena.hp(enemy)
    switch(arena)
    state = arena.world.ability(0, NOVA)
    assert mana_of(arena) == mana and state["castable"] and not state["toggled"]
    arena.seconds(3)
    assert arena.hp(enemy) == hp and mana_of(arena) == mana


def test_pulse_nova_ends_without_mana(make: Make) -> None:
    """100 mana: 70 to begin with and one pulse of 20; the next second finds only 10."""
    arena = make()
    enemy = arena.unit(5)
    hp = arena.hp(enemy)
    nova(arena, mana=100)
    arena.seconds(1.5)
    assert hp - arena.hp(enemy) == pytest.approx(magical_damage(arena, enemy, 100), rel=1e-3)
    assert not arena.world.ability(0, NOVA)["toggled"] and mana_of(arena) == pytest.approx(10, abs=0.01)


def test_pulse_nova_spares_the_immune(make: Make) -> None:
    arena = make()
    enemy = arena.unit(5)
    slot = give(arena, "black_king_bar", hero=5)
    arena.still(enemy)
    use(arena, slot, hero=5)
    hp = arena.hp(enemy)
    nova(arena)
    arena.seconds(1.5)
    assert arena.hp(enemy) == hp


def test_pulse_nova_ends_at_his_death(make: Make) -> None:
    arena = make()
    nova(arena)
    arena.world.kill(arena.unit(0), arena.unit(5))
    assert not arena.world.ability(0, NOVA)["toggled"] and not arena.modifiers(arena.unit(0), NOVA)


@pytest.mark.parametrize("scepter", [False, True])
def test_the_scepter_calls_lightning_while_nova_is_on(make: Make, scepter: bool) -> None:
    """Every 1.75 s one random enemy within 750 takes Lightning Storm's 120 and its slow; Pulse Nova reaches 450 and
    strikes no harder than without it (no tooltip names its number for the scepter)."""
    arena = make()
    enemy, far = arena.unit(5), arena.dummy(0, 760)
    near = arena.dummy(0, -440)
    arena.place(enemy, 0, 740)
    if scepter:
        give(arena, "ultimate_scepter")
    arena.teach(0, STORM, 2)
    hp = arena.hp(enemy)
    arena.seconds(4)
    assert arena.hp(enemy) == hp
    nova(arena, mana=arena.world.unit(arena.unit(0))["max_mana"])
    arena.world.run_frames(30 * 8 - 5)
    bolts = [(hp - arena.hp(enemy)) / magical_damage(arena, enemy, 120),
             (5000 - arena.hp(near) - 8 * magical_damage(arena, near, 100)) / magical_damage(arena, near, 120)]
    assert sum(bolts) == pytest.approx(5 if scepter else 0, abs=1e-2)  # at 0, 1.75, 3.5, 5.25 and 7 s
    assert arena.hp(far) == 5000
    switch(arena)
    left = arena.hp(enemy)
    arena.seconds(4)
    assert arena.hp(enemy) == left

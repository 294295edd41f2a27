"""Items of patch 7.19 that say more, less or something else than in 7.21d."""

from typing import Any

import pytest

from tests.dota.scenes.actions import attack_once, give, use
from tests.dota.scenes.duels import item_duel
from tests.dota.scenes.units import lane_creep, without_armor, wounded

OLD = "7.19"


def gained(arena: Any, unit: int, before: dict[str, Any], *names: str) -> list[float]:
    now = arena.world.unit(unit)
    return [now[name] - before[name] for name in names]


@pytest.mark.parametrize("within", [True, False])
def test_vladmirs_offering_gives_regeneration_to_allies(core: Any, within: bool) -> None:
    """Tooltip: 2.5 health and 1 mana a second, 4 armor, within 900."""
    arena = item_duel(core, OLD)
    mate = arena.unit(1)
    arena.place(mate, -890 if within else -912, 0)
    before = arena.world.unit(mate)
    assert arena.world.give_item(0, "item_vladmir")
    arena.seconds(0.4)
    rules = arena.data["rules"]["rules"]["attributes"]  # regeneration grows by a share for each point
    health = 2.5 * (1 + before["str"] * rules["hp_regen_pct_per_str"] / 100)
    mana = 1 + before["int"] * rules["primary_benefit_factor"] * rules["mana_regen_pct_per_int"] / 100
    expected = [health, mana, 4] if within else [0, 0, 0]
    assert gained(arena, mate, before, "hp_regen", "mana_regen", "armor") == pytest.approx(expected, abs=0.02)


def test_drums_give_speed_to_those_around(core: Any) -> None:
    """Tooltip: an aura of 20 movement speed for allies within 900 (its own bearer's since 7.21)."""
    arena = item_duel(core, OLD)
    mate, far = arena.unit(1), lane_creep(arena, 0, -950, 0)
    before = [arena.world.unit(u) for u in (mate, far)]
    assert arena.world.give_item(0, "item_ancient_janggo", 6)
    arena.seconds(0.4)
    faster = [gained(arena, u, b, "move_speed")[0] for u, b in zip((mate, far), before, strict=True)]
    assert faster == pytest.approx([20, 0], abs=0.5)


def test_a_vessel_strengthens_an_allys_healing(core: Any) -> None:
    """Tooltip: 30 health a second and 1 % of the current health, and all healing 20 % more, for 8 s. From 1,000 the
    health grows by 1.2 (30 + 0.01 hp) a second: 1,000 e^(0.096) + 3,000 (e^(0.096) - 1) = 1,403."""
    arena = item_duel(core, OLD)
    slot, mate = give(arena, "spirit_vessel", charges=3), arena.unit(1)
    arena.world.set_unit(mate, extra_hp=5000)
    arena.still(mate)
    arena.world.set_unit(mate, hp=1000)
    use(arena, slot, mate)
    assert arena.world.unit(mate)["heal_amp"] == pytest.approx(1.2)
    arena.seconds(8)
    assert arena.hp(mate) == pytest.approx(1403, abs=12)
    assert arena.world.unit(mate)["heal_amp"] == pytest.approx(1)


@pytest.mark.parametrize(("target", "lasts"), [(1, 4), (5, 3)])
def test_a_ghost_of_ones_own_side_lasts_longer(core: Any, target: int, lasts: float) -> None:
    """Tooltip of Ethereal Blade: 4 s on allies, 3 s on enemies."""
    arena = item_duel(core, OLD)
    use(arena, give(arena, "ethereal_blade"), arena.unit(target))
    for _ in range(60):
        arena.world.run_frames(1)
        found = [m["left"] for m in arena.modifiers(arena.unit(target), "item_ethereal_blade") if m["status"]]
        if found:
            break
    assert max(found) == pytest.approx(lasts, abs=0.08)


@pytest.mark.parametrize("item", ["sange", "sange_and_yasha", "heavens_halberd"])
@pytest.mark.parametrize(("hero", "slow"), [("sven", 26), ("sniper", 13)])
def test_maim_slows_by_the_kind_of_its_bearer(core: Any, item: str, hero: str, slow: float) -> None:
    """Tooltip: by a chance of 40 %, 26 % and 26 attack speed for 5 s, half of it by ranged heroes."""
    arena = item_duel(core, OLD, hero=hero, enemy="axe", away=120, changes=(("item_" + item, "maim_chance", 100.0),))
    give(arena, item)
    enemy = without_armor(arena, arena.unit(5))
    before = arena.world.unit(enemy)
    attack_once(arena, arena.unit(0), enemy)
    arena.world.run_frames(1)  # statistics follow
    assert gained(arena, enemy, before, "attack_speed", "move_speed") == pytest.approx(
        [-slow, -slow / 100 * arena.base_speed("axe")], abs=1)
    (left,) = (m["left"] for m in arena.modifiers(enemy, "item_" + item))
    assert left == pytest.approx(5, abs=0.15)


def test_flutter(core: Any) -> None:
    """Tooltip of Butterfly: 35 % more speed for 2 s, every 25 s."""
    arena = item_duel(core, OLD)
    slot = give(arena, "butterfly")
    before = arena.world.unit(arena.unit(0))
    use(arena, slot)
    faster = gained(arena, arena.unit(0), before, "move_speed")[0]
    assert faster == pytest.approx(0.35 * arena.base_speed("sven"), abs=1)
    assert arena.world.ability(0, "item_butterfly")["ready"] - arena.world.time == pytest.approx(24.8, abs=0.2)
    arena.seconds(2)
    assert gained(arena, arena.unit(0), before, "move_speed")[0] == pytest.approx(0)


def test_pocket_deny(core: Any) -> None:
    """Tooltip of Bloodstone: its bearer dies at once, and nobody is paid."""
    arena = item_duel(core, OLD)
    slot = give(arena, "bloodstone", charges=14)
    gold, a = arena.world.hero(5)["gold"], wounded(arena, 100)
    arena.world.order(a, "cast_point", x=arena.world.unit(a)["x"] + 50, y=arena.world.unit(a)["y"], slot=slot)
    arena.seconds(0.5)
    assert arena.world.hero(0)["deaths"] == 1
    assert arena.world.hero(5)["gold"] == pytest.approx(gold, abs=2)


def test_a_solar_crest_on_either_side(core: Any) -> None:
    """Tooltip: 10 armor and 20 % evasion for an ally; 10 armor less for an enemy, whose evasion fails."""
    arena = item_duel(core, OLD)
    slot = give(arena, "solar_crest")
    assert arena.world.give_item(5, "item_talisman_of_evasion")
    before = {u: arena.world.unit(arena.unit(u)) for u in (1, 5)}
    use(arena, slot, arena.unit(1))
    assert gained(arena, arena.unit(1), before[1], "armor", "evasion") == pytest.approx([10, 0.2], abs=1e-4)
    arena.seconds(7.2)
    use(arena, slot, arena.unit(5))
    assert gained(arena, arena.unit(5), before[5], "armor")[0] == pytest.approx(-10)
    assert arena.world.unit(arena.unit(5))["evasion"] == 0


def test_a_ring_of_aquila_is_a_ring_of_basilius(core: Any) -> None:
    """Tooltip: 0.5 mana a second and 2 armor within 900; switched off, for heroes only."""
    arena = item_duel(core, OLD)
    mate, ally = arena.unit(1), lane_creep(arena, 0, -890, 0)
    before = [arena.world.unit(u)["armor"] for u in (mate, ally)]
    slot = give(arena, "ring_of_aquila")
    lent = []
    for _ in range(2):
        arena.seconds(0.8)
        lent.append([arena.world.unit(u)["armor"] - b for u, b in zip((mate, ally), before, strict=True)])
        arena.world.order(arena.unit(0), "cast", slot=slot)
    assert lent == [pytest.approx([2, 2]), pytest.approx([2, 0])]


def test_charges_shorten_the_respawn(core: Any) -> None:
    """Tooltip of Bloodstone: 3 s for each charge, of those that are left at death: 14 x 0.67 = 9, so 27 s."""
    waits = []
    for charges in (0, 14):
        arena = item_duel(core, OLD)
        arena.world.give_xp(0, 30000)
        if charges:
            assert arena.world.give_item(0, "item_bloodstone", charges)
        arena.seconds(0.4)
        died = arena.world.time
        arena.world.kill(arena.unit(0), arena.unit(5))
        while not arena.world.unit(arena.unit(0))["alive"]:
            arena.seconds(0.2)
        waits.append(arena.world.time - died)
    assert waits[0] - waits[1] in (pytest.approx(27, abs=0.5), pytest.approx(42, abs=0.5))

"""Items that help allies or weaken enemies: auras, barriers, heals, armor lent and taken, invisibility given."""

from typing import Any

import pytest

from tests.dota.scenes.actions import attack_once, give, use
from tests.dota.scenes.arena import CENTRE
from tests.dota.scenes.duels import item_duel
from tests.dota.scenes.statuses import INVISIBLE
from tests.dota.scenes.units import lane_creep, without_armor, wounded

# ---- heals and barriers ----


@pytest.mark.parametrize(("patch", "core_item", "limit"), [("7.21d", "", 65), ("7.21d", "item_octarine_core", 48.75),
                                                           ("7.19", "", 25)])
def test_the_limit_of_mekansm(core: Any, patch: str, core_item: str, limit: float) -> None:
    """Patch 7.21: tied to the cooldown on cast, shortened as it is; before that 25 s, as long as its armor lasts."""
    arena = item_duel(core, patch)
    if core_item:
        assert arena.world.give_item(0, core_item)
    slots = give(arena, "mekansm", 0), give(arena, "mekansm", 1)
    use(arena, slots[0], hero=0)
    left = next(m["left"] for m in arena.modifiers(arena.unit(1), "item_mekansm#0"))
    assert left == pytest.approx(limit, abs=0.3)
    arena.seconds(limit - 2)
    wounded(arena, 100, 1)
    use(arena, slots[1], hero=1)
    assert arena.hp(arena.unit(1)) < 150


def test_a_greaves_spares_those_whom_a_mekansm_healed(core: Any) -> None:
    """Mend and Restore share a limit (public wikis), 40 s after Mend; Mend dispels its caster only."""
    arena = item_duel(core)
    slot = give(arena, "guardian_greaves", 0)
    arena.world.set_unit(arena.unit(1), mana=0)
    wounded(arena, 100, 1)
    use(arena, slot, hero=0)
    assert arena.hp(arena.unit(1)) == pytest.approx(400, abs=5)
    assert arena.world.unit(arena.unit(1))["mana"] == pytest.approx(200, abs=1)
    left = next(m["left"] for m in arena.modifiers(arena.unit(1), "item_guardian_greaves#0"))
    assert left == pytest.approx(40, abs=0.3)


def test_greaves_protect_the_dying(core: Any) -> None:
    """Tooltip: 4.5 regeneration and 2 armor; below a fifth of the health 16 and 15 instead, for heroes."""
    arena = item_duel(core)
    mate, ally = arena.unit(1), lane_creep(arena, 0, -200, 100)
    arena.still(mate)
    before = [arena.world.unit(u) for u in (mate, ally)]
    assert arena.world.give_item(0, "item_guardian_greaves")
    arena.seconds(0.4)
    gained = [{k: arena.world.unit(u)[k] - b[k] for k in ("armor", "hp_regen")}
              for u, b in zip((mate, ally), before, strict=True)]
    assert gained == [pytest.approx({"armor": 2, "hp_regen": 4.5}, abs=0.01)] * 2
    for u in (mate, ally):
        arena.world.set_unit(u, hp=0.15 * arena.world.unit(u)["max_hp"])
    arena.seconds(0.2)
    gained = [{k: arena.world.unit(u)[k] - b[k] for k in ("armor", "hp_regen")}
              for u, b in zip((mate, ally), before, strict=True)]
    assert gained[0] == pytest.approx({"armor": 15, "hp_regen": 16}, abs=0.01)
    assert gained[1] == pytest.approx({"armor": 2, "hp_regen": 4.5}, abs=0.01)


def test_a_pipe_covers_creeps_and_takes_damage_before_resistance(core: Any, patch: str) -> None:
    """Tooltip: all nearby allies, 400 magical damage; the files: creeps too, nobody again for 50 s. A barrier takes
    the damage before the resistance lowers it (public wikis): of 500 on a hero 100 x 0.75 get through."""
    arena = item_duel(core, patch)
    slots = give(arena, "pipe", 0), give(arena, "pipe", 1)
    ally = lane_creep(arena, 0, -200, 100)
    without_armor(arena, ally, 5000)
    without_armor(arena, arena.unit(1), 5000)
    use(arena, slots[0], hero=0)
    share = [arena.magic(u) for u in (arena.unit(1), ally)]
    blows = [arena.world.damage(arena.unit(5), u, 500, "magical") for u in (arena.unit(1), ally)]
    assert blows == pytest.approx([100 * s for s in share], abs=0.1)
    use(arena, slots[1], hero=1)
    assert arena.world.damage(arena.unit(5), arena.unit(1), 100, "magical") == pytest.approx(100 * share[0], abs=0.1)
    arena.seconds(60)
    arena.world.set_unit(arena.unit(1), mana=500)
    use(arena, slots[1], hero=1)
    assert arena.world.damage(arena.unit(5), arena.unit(1), 400, "magical") == 0


# ---- armor lent and taken ----


@pytest.mark.parametrize(("patch", "item", "armor"), [
    ("7.21d", "medallion_of_courage", 7), ("7.21d", "solar_crest", 12), ("7.19", "medallion_of_courage", 7),
    ("7.19", "solar_crest", 10)])
@pytest.mark.parametrize("on_ally", [True, False])
def test_armor_that_a_caster_gives_away_is_his_own(core: Any, patch: str, item: str, armor: float,
                                                   on_ally: bool) -> None:
    """Tooltip: the ally gains, or the enemy loses, so much armor, and the caster loses as much for those 7 s."""
    arena = item_duel(core, patch)
    slot = give(arena, item)
    target = arena.unit(1 if on_ally else 5)
    before = [arena.world.unit(u)["armor"] for u in (arena.unit(0), target)]
    evasion = arena.world.unit(arena.unit(0))["evasion"]
    use(arena, slot, target)
    after = [arena.world.unit(u)["armor"] for u in (arena.unit(0), target)]
    assert after[0] - before[0] == pytest.approx(-armor)
    assert after[1] - before[1] == pytest.approx(armor if on_ally else -armor)
    if patch == "7.19" and item == "solar_crest":  # its evasion as well
        assert (evasion, arena.world.unit(arena.unit(0))["evasion"]) == pytest.approx((0.15, 0), abs=1e-4)
    arena.seconds(7.1)
    assert arena.world.unit(arena.unit(0))["armor"] == pytest.approx(before[0])


# ---- auras ----


def test_a_switched_off_ring_of_basilius_is_for_heroes_only(core: Any) -> None:
    """Tooltip: deactivated, its aura stops affecting other units."""
    arena = item_duel(core)
    mate, ally = arena.unit(1), lane_creep(arena, 0, -200, 100)
    before = [arena.world.unit(u)["armor"] for u in (mate, ally)]
    slot = give(arena, "ring_of_basilius")
    gained = []
    for _ in range(3):
        arena.seconds(0.8)
        gained.append([arena.world.unit(u)["armor"] - b for u, b in zip((mate, ally), before, strict=True)])
        arena.world.order(arena.unit(0), "cast", slot=slot)
    assert gained == [pytest.approx([2, 2]), pytest.approx([2, 0]), pytest.approx([2, 2])]


def test_drums_have_six_charges(core: Any) -> None:
    """The files: six charges, each use takes one; without any they are not used again."""
    arena = item_duel(core)
    slot = give(arena, "ancient_janggo", charges=6)
    mate = arena.unit(1)
    before = arena.world.unit(mate)["attack_speed"]
    for left in range(5, -1, -1):
        use(arena, slot)
        assert arena.world.ability(0, "item_ancient_janggo")["charges"] == left
        assert arena.world.unit(mate)["attack_speed"] - before == pytest.approx(35)
        arena.seconds(30)
    assert not arena.world.ability(0, "item_ancient_janggo")["castable"]


# ---- Urn of Shadows and Spirit Vessel ----


@pytest.mark.parametrize("item", ["urn_of_shadows", "spirit_vessel"])
def test_the_first_soul_counts_double(core: Any, item: str) -> None:
    """The files: two charges for an empty urn, one more for each further death within 1400."""
    arena = item_duel(core)
    give(arena, item)
    seen = []
    for distance in (500, 1500, 1300):
        arena.place(arena.unit(5), distance, 0)
        arena.world.kill(arena.unit(5), arena.unit(1))
        seen.append(arena.world.ability(0, "item_" + item)["charges"])
        while not arena.world.unit(arena.unit(5))["alive"]:
            arena.seconds(2)
    assert seen == [2, 2, 3]


def test_an_urn_heals_an_ally_until_a_hero_hurts_him(core: Any) -> None:
    """Tooltip: 30 health a second for 8 s; 25 magical damage a second on an enemy."""
    arena = item_duel(core)
    slot = give(arena, "urn_of_shadows", charges=3)
    mate, enemy = wounded(arena, 100, 1), without_armor(arena, arena.unit(5))
    arena.still(mate)
    use(arena, slot, mate)
    arena.seconds(8)
    assert arena.hp(mate) == pytest.approx(340, abs=4)
    hp = arena.hp(enemy)
    use(arena, slot, enemy)
    arena.seconds(8.2)
    assert hp - arena.hp(enemy) == pytest.approx(8 * 25 * arena.magic(enemy) * arena.amp(arena.unit(0)), rel=0.01)


def test_a_vessel_lowers_healing_as_well(core: Any, patch: str) -> None:
    """Tooltip: regeneration and healing 70 % less."""
    arena = item_duel(core, patch)
    slot = give(arena, "spirit_vessel", charges=3)
    enemy = arena.unit(5)
    use(arena, slot, enemy)
    assert arena.world.unit(enemy)["heal_amp"] == pytest.approx(0.3)
    arena.seconds(8.2)
    assert arena.world.unit(enemy)["heal_amp"] == pytest.approx(1)


# ---- invisibility given ----


def test_glimmer_resists_only_once_it_has_faded_in(core: Any, patch: str) -> None:
    """Tooltip: after 0.6 s both, invisibility and 45 % resistance. An attack shows its bearer, who fades again
    (public wikis)."""
    arena = item_duel(core, patch, ally="sven", away=130)
    slot, a = give(arena, "glimmer_cape"), arena.unit(0)
    share = arena.magic(a)
    arena.world.order(a, "cast_unit", target=a, slot=slot)
    seen = []

    def look(seconds: float) -> None:
        arena.seconds(seconds)
        seen.append((bool(arena.world.unit(a)["status"] & INVISIBLE), round(arena.magic(a) / share, 3)))

    look(0.4)
    look(0.4)
    attack_once(arena, a, without_armor(arena, arena.unit(5)))
    look(0.2)
    look(0.8)
    assert seen == [(False, 1), (True, 0.55), (False, 1), (True, 0.55)]
    arena.seconds(4)
    assert not arena.world.unit(a)["status"] & INVISIBLE and arena.magic(a) == pytest.approx(share)


def test_an_amulet_has_no_cooldown_on_its_bearer(core: Any) -> None:
    """Tooltip: no cooldown when it is used on oneself, 7 s after an ally."""
    arena = item_duel(core)
    slot = give(arena, "shadow_amulet")
    for target, waits in ((0, False), (1, True)):
        use(arena, slot, arena.unit(target))
        assert (arena.world.ability(0, "item_shadow_amulet")["ready"] > arena.world.time) == waits
        assert arena.modifiers(arena.unit(target), "item_shadow_amulet")


def test_veil_and_halberd_and_buckler_by_their_numbers(core: Any) -> None:
    """Tooltips: 25 % less resistance for 16 s within 600 of a point; +2 armor, 15 s on heroes and 30 s on others."""
    arena = item_duel(core)
    enemy, mate, ally = arena.unit(5), arena.unit(1), lane_creep(arena, 0, -200, 100)
    share = arena.magic(enemy)
    slot = give(arena, "veil_of_discord")
    arena.world.order(arena.unit(0), "cast_point", x=CENTRE[0] + 500, y=CENTRE[1] + 590, slot=slot)
    arena.seconds(0.3)
    assert arena.magic(enemy) == pytest.approx(1.25 * share)
    armor = [arena.world.unit(u)["armor"] for u in (mate, ally)]
    use(arena, give(arena, "buckler"))
    lent = [arena.world.unit(u)["armor"] - before for u, before in zip((mate, ally), armor, strict=True)]
    assert lent == pytest.approx([2, 2])
    arena.seconds(15.5)
    lent = [arena.world.unit(u)["armor"] - before for u, before in zip((mate, ally), armor, strict=True)]
    assert lent == pytest.approx([0, 2])
    assert arena.magic(enemy) == pytest.approx(share)


@pytest.mark.parametrize(("patch", "reach", "mana"), [("7.21d", 1200, 160), ("7.19", 900, 135)])
def test_arcane_boots_reach_their_radius(core: Any, patch: str, reach: float, mana: float) -> None:
    """Tooltip: so much mana to allies within this radius."""
    for distance, gained in ((reach - 12, mana), (reach + 12, 0)):
        arena = item_duel(core, patch)
        mate, slot = arena.unit(1), give(arena, "arcane_boots")
        arena.place(mate, -distance, 0)
        arena.still(mate)
        arena.world.set_unit(mate, mana=0)
        arena.world.order(arena.unit(0), "cast", slot=slot)
        arena.world.run_frames(1)
        assert arena.world.unit(mate)["mana"] == pytest.approx(gained, abs=0.5)


def test_midas_spares_ancients(core: Any) -> None:
    """Tooltip: not on ancient creeps."""
    for kind, taken in (("npc_dota_neutral_black_dragon", False), ("npc_dota_neutral_centaur_khan", True)):
        arena = item_duel(core, away=2000)
        slot, target = give(arena, "hand_of_midas"), arena.dummy(200, 0, kind=kind)
        use(arena, slot, target)
        assert (arena.world.ability(0, "item_hand_of_midas")["ready"] > arena.world.time) == taken
        assert any(u["index"] == target for u in arena.world.units("neutral")) != taken

"""Stacking over all items and abilities: auras and boots apply once, resistances and evasion multiply, the largest of
blocks and crits counts, and a second cast renews the first."""

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.dota import effect_nodes
from tests.dota.fight import (
    DATA,
    ENEMY,
    HELPERS,
    ITEMS,
    MATE,
    SECOND,
    SEEN_HERO,
    Fight,
    case,
    definition,
    ways,
)
from tests.dota.scenes.patches import load_tables
from tests.dota.test_matrix_modifiers import lasting

STATS = ("armor", "magic_resist", "move_speed", "attack_speed", "dmg_min", "dmg_max", "dmg_bonus", "hp_regen",
         "mana_regen")


def states(stat: str, *without: str) -> list[str]:
    """Return the items whose `stats` have this stat and none of the others that would change it."""
    return [i for i, d in ITEMS.items() if stat in d.get("stats", {}) and not set(without) & set(d["stats"])]


def blocks() -> Iterator[tuple[str, float]]:
    for item, d in ITEMS.items():
        for n in effect_nodes.nodes(d):
            if n.primitive == "damage_block":
                yield item, effect_nodes.number(d, n.node["melee"], 1)


def has(item: str, primitive: str) -> bool:
    return any(n.primitive == primitive for n in effect_nodes.nodes(ITEMS[item]))


# Blindness is not among a unit's numbers: see test_matrix_stats.py.
AURAS = [i for i in ITEMS if any(n.primitive == "aura" and set(n.node.get("stats", {})) - {"miss_pct"}
                                 for n in effect_nodes.nodes(ITEMS[i]))]
EVASIVE, STEADY = states("evasion_pct"), states("status_res_pct")
RESISTANT = [i for i in states("mr_pct", "str", "all") if not has(i, "aura")]
BLOCKING = list(blocks())
BOOTS = [i for i in states("ms_pct", "agi", "all") if i != "item_power_treads"] + ["item_tranquil_boots"]
CRITS = ("item_lesser_crit", "item_greater_crit")
TWICE = {*AURAS, *EVASIVE, *STEADY, *RESISTANT, *BOOTS, *CRITS, *(item for item, _ in BLOCKING), "item_crimson_guard"}


def stats(fight: Fight, hero: int) -> dict[str, float]:
    u = fight.world.unit(fight.unit(hero))
    return {k: u[k] for k in STATS}


def with_items(core: Any, plain: dict[str, Any], *items: str) -> Fight:
    fight = Fight(core, plain, "sven_great_cleave")
    for item in items:
        assert fight.world.give_item(SEEN_HERO, item)
    fight.seconds(0.5)
    return fight


@pytest.mark.parametrize("item", AURAS)
def test_an_aura_gives_once_however_many_carry_it(core: Any, plain: dict[str, Any], item: str) -> None:
    seen = []
    for carriers in ((), (MATE,), (MATE, SEEN_HERO)):
        fight = Fight(core, plain, item)
        bare = stats(fight, SEEN_HERO)
        for hero in carriers:
            assert fight.world.give_item(hero, item)
        if SEEN_HERO in carriers:  # the holder's own stats are not part of the aura
            alone = Fight(core, plain, item)
            assert alone.world.give_item(SEEN_HERO, item)
            alone.seconds(0.5)
        fight.seconds(0.5)
        own = stats(alone, SEEN_HERO) if SEEN_HERO in carriers else bare
        seen.append((stats(fight, SEEN_HERO), own, stats(fight, ENEMY)))
    (_, _, untouched), (lent, bare, one), (both, alone_has, two) = seen
    assert lent != bare or one != untouched, "the aura gives nothing that is seen here"
    assert both == pytest.approx(alone_has)
    assert two == pytest.approx(one)


@pytest.mark.parametrize(("hero", "ability"), [("nevermore", "nevermore_dark_lord"),
                                               ("crystal_maiden", "crystal_maiden_brilliance_aura")])
def test_two_heroes_auras_give_once(new_world: Any, hero: str, ability: str) -> None:
    """Two of the same hero on one side: an aura's effect on allies applies once."""
    seen = []
    for knowing in (0, 1, 2):
        world = new_world((hero, hero, "sven"), ("axe",))
        for i in range(3):
            world.set_unit(world.hero(i)["unit"], x=-500 + 100 * i, y=-400)
        world.set_unit(world.hero(5)["unit"], x=-400, y=-500)
        for i in range(2):
            world.teach(i, ability, 4 if i < knowing else 0)
        world.step(6)
        mate, enemy = (world.unit(world.hero(i)["unit"]) for i in (2, 5))
        seen.append((mate["mana_regen"], enemy["armor"]))
    assert seen[1] != seen[0]
    assert seen[2] == pytest.approx(seen[1])


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations_with_replacement(EVASIVE, 2)))
def test_evasion_leaves_a_share(core: Any, plain: dict[str, Any], one: str, other: str) -> None:
    misses = 1.0
    for item in (one, other):
        misses *= 1 - ITEMS[item]["stats"]["evasion_pct"] / 100
    fight = with_items(core, plain, one, other)
    assert fight.world.unit(fight.unit(SEEN_HERO))["evasion"] == pytest.approx(1 - misses, abs=1e-5)


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations_with_replacement(RESISTANT, 2)))
def test_magic_resistance_leaves_a_share(core: Any, plain: dict[str, Any], one: str, other: str) -> None:
    bare = with_items(core, plain)
    passes = bare.magic(bare.unit(SEEN_HERO))
    for item in (one, other):
        passes *= 1 - ITEMS[item]["stats"]["mr_pct"] / 100
    fight = with_items(core, plain, one, other)
    assert fight.magic(fight.unit(SEEN_HERO)) == pytest.approx(passes, abs=1e-5)


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations_with_replacement(STEADY, 2)))
def test_status_resistance_leaves_a_share(core: Any, plain: dict[str, Any], one: str, other: str) -> None:
    """Measured by a stun of Storm Bolt, in seconds."""
    fight = Fight(core, plain, "sven_storm_bolt")
    whole = definition("sven_storm_bolt")["specials"]["bolt_stun_duration"]["v"][-1]
    for item in (one, other):
        assert fight.world.give_item(ENEMY, item)
        whole *= 1 - ITEMS[item]["stats"]["status_res_pct"] / 100
    seen: dict[tuple[int, int], Any] = {}
    fight.seconds(0.5)
    fight.cast(fight.prepare())
    fight.seen(30, seen)
    assert max(s.left for (_, hero), s in seen.items() if hero == ENEMY) == pytest.approx(whole, abs=0.04)


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(BLOCKING, 2)),
                         ids=lambda b: b[0].removeprefix("item_"))
def test_of_blocks_the_greatest_counts(core: Any, plain: dict[str, Any], one: tuple[str, float],
                                       other: tuple[str, float]) -> None:
    """Each block rolls its own chance; two never reduce the same hit; with two chances of one half, three quarters of
    hits."""
    fight = with_items(core, plain, one[0], other[0])
    hero, enemy = fight.unit(SEEN_HERO), fight.unit(ENEMY)
    fight.world.set_unit(hero, extra_armor=0)
    fight.world.set_unit(hero, extra_armor=-fight.world.unit(hero)["armor"])
    fight.healthy(SEEN_HERO)
    taken = [round(200 - fight.world.damage(enemy, hero, 200, "physical", attack=True), 1) for _ in range(80)]
    assert set(taken) == {0, one[1], other[1]}
    assert 1 - taken.count(0) / 80 == pytest.approx(0.75, abs=0.13)


def test_a_lent_block_is_one_of_them(core: Any, plain: dict[str, Any]) -> None:
    """Crimson Guard's active blocks 60 of each hit on an ally; on its bearer that or the item's own block."""
    fight = Fight(core, plain, "item_crimson_guard")
    lent, own = (ITEMS["item_crimson_guard"]["specials"][k]["v"][0]
                 for k in ("block_damage_melee_active", "block_damage_melee"))
    fight.cast(fight.prepare())
    fight.seconds(0.3)
    taken: dict[int, set[float]] = {}
    for hero in (SEEN_HERO, MATE):
        unit = fight.unit(hero)
        fight.world.set_unit(unit, extra_armor=0)
        fight.world.set_unit(unit, extra_armor=-fight.world.unit(unit)["armor"])
        blows = [fight.world.damage(fight.unit(ENEMY), unit, 200, "physical", attack=True) for _ in range(40)]
        taken[hero] = {round(200 - b, 1) for b in blows}
    assert taken == {MATE: {lent}, SEEN_HERO: {lent, own}}


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(BOOTS, 2)))
def test_of_boots_the_faster_counts(core: Any, plain: dict[str, Any], one: str, other: str) -> None:
    alone = [stats(with_items(core, plain, item), SEEN_HERO)["move_speed"] for item in (one, other)]
    both = stats(with_items(core, plain, one, other), SEEN_HERO)["move_speed"]
    assert both == pytest.approx(max(alone))


def test_of_crits_the_greatest_counts(core: Any, plain: dict[str, Any]) -> None:
    """With both, a hit is plain, or has one crit's factor, never the product."""
    fight = with_items(core, plain, *CRITS)
    hero = fight.unit(SEEN_HERO)
    fight.stand(ENEMY, 3000, 0)
    target = fight.dummy(120, 0, hp=1e6)
    fight.world.set_unit(target, extra_armor=-fight.world.unit(target)["armor"])
    u = fight.world.unit(hero)
    bands = [(1.0, "plain"), *((ITEMS[n]["specials"]["crit_multiplier"]["v"][0] / 100, n) for n in CRITS)]
    fight.world.set_unit(hero, attack_ready=0, extra_as=300)
    fight.world.order(hero, "attack", target)
    seen, hp = [], fight.hp(target)
    for _ in range(4000):
        fight.world.run_frames(1)
        lost, hp = hp - fight.hp(target), fight.hp(target)
        if lost > 1:
            (band,) = (name for times, name in bands
                       if u["dmg_min"] * times + u["dmg_bonus"] * times - 1 <= lost
                       <= u["dmg_max"] * times + u["dmg_bonus"] * times + 1)
            seen.append(band)
    assert set(seen) == {name for _, name in bands}


@pytest.fixture(scope="module")
def tireless(core: Any) -> dict[str, Any]:
    """Return tables in which nothing has a cooldown or is used up."""
    data = copy.deepcopy(DATA)
    for body in (*data["abilities"]["abilities"].values(), *data["items"]["items"].values()):
        if body.get("cooldown"):
            body["cooldown"] = [0]
    return {helper: load_tables(core, data) for helper in HELPERS}


# Abilities whose second cast is a different ability.
OTHERWISE = {"death_prophet_spirit_siphon": "by charges", "item_cyclone": "out of the world: reached by nobody",
             "item_black_king_bar": "shorter each time: tests/dota/test_effects_items.py",
             "item_pipe": "once in a time: tests/dota/test_tooltips_items_support.py",
             "item_crimson_guard": "once in a time: tests/dota/test_tooltips_items.py",
             "razor_plasma_field": "each way counts: tests/dota/test_tooltips_heroes.py",
             "item_smoke_of_deceit": "an enemy is near: tests/dota/test_effects_whole.py",
             "phantom_assassin_blur": "an enemy is near: tests/dota/test_abilities_phantom_assassin.py"}
AGAIN = [(s, w) for s, w in ways() if w != "ranged" and any(n.trigger == "cast" for n in lasting(s))
         and {"no_target", "unit_target", "point"} & set(definition(s)["behavior"])
         and not {"channelled", "toggle", "attack"} & set(definition(s)["behavior"]) and s not in OTHERWISE]


@pytest.mark.parametrize(("subject", "way"), [case(*a) for a in AGAIN])
def test_a_second_cast_renews_the_first(core: Any, tireless: dict[str, Any], subject: str, way: str) -> None:
    """The bearer has one modifier of each effect, with its full duration, unless the data count each victim."""
    fight = Fight(core, tireless, subject, way)
    nodes = effect_nodes.nodes(definition(subject))
    slot = fight.prepare()
    for hero in (SEEN_HERO, MATE, ENEMY, SECOND):
        fight.healthy(hero)
    left: list[dict[tuple[int, str], float]] = []
    for _ in range(2):
        fight.world.set_unit(fight.unit(SEEN_HERO), mana=9000)
        fight.cast(slot)
        longest: dict[tuple[int, str], float] = {}
        for _ in range(75):
            fight.world.run_frames(1)
            for hero in fight.names:
                names = [m["name"] for m in fight.modifiers(fight.unit(hero), subject + "#") if m["left"] < 1e6]
                for m in fight.modifiers(fight.unit(hero), subject + "#"):
                    n = nodes[int(m["name"].split("#")[1])]
                    if n.node.get("stack") != "per_affected_target":
                        assert names.count(m["name"]) <= 1, m["name"]
                    longest[hero, m["name"]] = max(longest.get((hero, m["name"]), 0), m["left"])
        left.append(longest)
    first, second = left
    assert first, "the fight shows nothing of it"
    for key, whole in first.items():
        if nodes[int(key[1].split("#")[1])].primitive not in ("leap", "knockback", "force_push"):
            assert second.get(key, 0) == pytest.approx(whole, abs=0.17), key

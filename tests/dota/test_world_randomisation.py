"""Randomised starts (Berner et al. 2019, appendix O.2), each magnitude separately."""

from typing import Any

import numpy as np
import pytest

from dota import presets
from dota.config import GameConfig, RandomisationConfig, evaluation_game
from dota.registry import load
from dota.tables import load_tables
from dota.vec_game import VecGame
from tests.dota.watching import duel, field

SEEDS = range(40)
STATS = ("str", "agi", "int", "armor", "move_speed", "hp_regen", "mana_regen", "magic_resist")
# For a hero without items: the stats that each magnitude changes, directly and through attributes.
MOVES = {"random_attributes": {"str", "agi", "int", "armor", "move_speed", "hp_regen", "mana_regen", "magic_resist"},
         "random_armor": {"armor"}, "random_move_speed": {"move_speed"}, "random_hp_regen": {"hp_regen"},
         "random_mana_regen": {"mana_regen"}, "random_magic_resist": {"magic_resist"}}


def body(new_world: Any, seed: int, **settings: Any) -> dict[str, float]:
    world = new_world(seed=seed, **settings)
    world.clear_items(0)
    unit = world.unit(world.hero(0)["unit"])
    return {name: unit[name] for name in STATS}


@pytest.mark.parametrize("magnitude", MOVES)
def test_a_magnitude_moves_its_own_stat(new_world: Any, magnitude: str) -> None:
    plain = body(new_world, 1)
    seen = [body(new_world, seed, **{magnitude: 0.1}) for seed in SEEDS]
    assert {name for name in STATS if any(s[name] != plain[name] for s in seen)} == MOVES[magnitude]


@pytest.mark.parametrize(("magnitude", "stat", "size", "relative"), [
    ("random_attributes", "str", 0.1, True), ("random_armor", "armor", 2.0, False),
    ("random_move_speed", "move_speed", 0.1, True), ("random_magic_resist", "magic_resist", 4.0, False)])
def test_a_magnitude_is_a_standard_deviation(new_world: Any, magnitude: str, stat: str, size: float,
                                             relative: bool) -> None:
    """Measured over 120 games, within a quarter; magic resistance changes the passing share, in percent of it."""
    plain = body(new_world, 1)[stat]
    seen = np.array([body(new_world, seed, **{magnitude: size})[stat] for seed in range(120)])
    if stat == "magic_resist":
        seen, plain = 100 * (1 - (1 - seen) / (1 - plain)), 0.0
    deviation = (seen / plain - 1 if relative else seen - plain).std()
    assert deviation == pytest.approx(size, rel=0.25)


def test_stats_stand_for_those_that_are_not_given() -> None:
    assert RandomisationConfig().magnitudes() == {
        "attributes": 0, "armor": 0, "move_speed": 0, "hp_regen": 0, "mana_regen": 0, "magic_resistance": 0, "gold": 0,
        "xp": 0, "item_drop": 0, "item_insert": 0, "consumables": 0, "skill": 0, "lane": 0, "lane_until_seconds": 600,
        "roshan": 0}
    given = RandomisationConfig(stats=0.1, armor=2.0, magic_resistance=0.0, gold=0.3).magnitudes()
    assert (given["attributes"], given["move_speed"], given["hp_regen"], given["mana_regen"]) == (0.1,) * 4
    assert (given["armor"], given["magic_resistance"], given["gold"]) == (2.0, 0.0, 0.3)
    assert RandomisationConfig(stats=0.1).magnitudes()["magic_resistance"] == 1.0


def test_all_of_them_given_one_by_one_are_the_same_games() -> None:
    said = duel(randomisation={"stats": 0.1})
    spelt = duel(randomisation={"attributes": 0.1, "armor": 0.1, "move_speed": 0.1, "hp_regen": 0.1,
                                "mana_regen": 0.1, "magic_resistance": 1.0})
    made = [VecGame(config, 4, seed=3, observations=False) for config in (said, spelt)]
    assert [made[0].hash(i) for i in range(4)] == [made[1].hash(i) for i in range(4)]


@pytest.mark.parametrize("until", [60.0, 600.0])
def test_an_assignment_of_lanes_ends_by_its_time(new_world: Any, until: float) -> None:
    ends = [new_world(seed=seed, random_lane=1.0, random_lane_until_s=until).hero(0)["lanes_until"] for seed in SEEDS]
    assert all(0 <= end <= until for end in ends)
    assert max(ends) > 0.8 * until and min(ends) < 0.2 * until


@pytest.mark.parametrize("patch", ["7.21d", "7.19"])
def test_an_item_put_in_is_one_that_the_hero_buys(core: Any, patch: str) -> None:
    """It is in the game's own list for the hero or in its build, and neither consumable nor unavailable."""
    tables = load_tables(patch)
    heroes = list(load().heroes)
    found: dict[str, set[str]] = {name: set() for name in heroes}
    for seed in SEEDS:
        for start in range(0, len(heroes), 9):
            nine = heroes[start:start + 9]
            world = core.World(tables, {"random_item_insert": 1.0}, nine[:5], nine[5:], seed)
            for hero in (*range(5), *range(5, 5 + len(nine[5:]))):
                state = world.hero(hero)
                if state["build_insert"]:
                    found[state["name"].removeprefix("npc_dota_hero_")].add(state["build_insert"])
    for name, items in found.items():
        pool = tables.hero("npc_dota_hero_" + name)["item_pool"]
        assert items <= set(pool), name
        assert len(items) > 3, name
        assert not any(tables.item(item)["excluded"] for item in items)
    assert found["lion"] - set(tables.hero("npc_dota_hero_lion")["item_order"])  # beyond his build


def test_an_item_of_the_build_comes_sooner_and_once(new_world: Any, tables: Any) -> None:
    order = tables.hero("npc_dota_hero_slark")["item_order"]  # the game has no list for him
    made = [new_world(("slark",), seed=seed, random_item_insert=1.0, keep_teleport=0) for seed in SEEDS]
    world = next(w for w in made if order.index(w.hero(0)["build_insert"]) >= 4)
    item = world.hero(0)["build_insert"]
    assert world.hero(0)["build_skip"] == 1 << order.index(item)
    world.set_gold(0, 60_000)
    world.step(1200)
    assert world.hero(0)["build_insert"] is None and world.hero(0)["build_next"] == len(order)
    assert [i[0] for i in world.hero(0)["items"] if i].count(item) == 1


@pytest.mark.parametrize(("hero", "item"), [("witch_doctor", "item_hood_of_defiance"),
                                            ("crystal_maiden", "item_phase_boots")])
def test_inserted_item_keeps_its_own_components(new_world: Any, tables: Any, hero: str, item: str) -> None:
    """With fifteen slots of more expensive items, each component replaces one of those and is kept."""
    made = [new_world((hero,), seed=seed, random_item_insert=1.0, keep_teleport=0) for seed in range(60)]
    world = next(w for w in made if w.hero(0)["build_insert"] == item)
    order = tables.hero("npc_dota_hero_" + hero)["item_order"]
    world.set_gold(0, tables.item(order[0])["cost"] + 50)
    world.step(60)
    assert (world.hero(0)["build_next"], world.hero(0)["build_insert"]) == (1, item)
    world.clear_items(0)
    while world.give_item(0, "reaver"):
        pass
    world.set_gold(0, tables.item(item)["cost"] + 100)
    for _ in range(100):
        world.step(2)
        if world.hero(0)["build_insert"] is None:
            break
    assert item in [i[0] for i in world.hero(0)["items"] if i]


def test_the_next_item_that_is_seen_is_the_one_put_in() -> None:
    """With enough gold some of these Svens buy it at once, whatever its position in their build."""
    item_of = dict(enumerate(load().names["item"], start=1))

    def seen(chance: float) -> set[str]:
        game = VecGame(duel(hero="sven", randomisation={"item_insert": chance, "gold": 1.0}), 24, seed=2)
        items: set[str] = set()
        for _ in range(40):
            game.step()
            items |= {item_of[int(field(game, "allied_heroes", "next_item", index=i)[0, 0])] for i in range(24)}
        return items

    plain, varied = seen(0.0), seen(1.0)
    sven = load_tables("7.21d").hero("npc_dota_hero_sven")
    assert plain <= set(sven["item_order"][:3])
    assert varied - plain and varied <= set(sven["item_pool"])


TARGETS = {"keep_tango": 2, "keep_salve": 1, "keep_clarity": 0, "keep_teleport": 3, "consumables_until_s": 300.0}


def test_the_buyers_targets_are_as_set_unless_they_are_drawn(new_world: Any) -> None:
    hero = new_world(**TARGETS).hero(0)
    assert (hero["keep"], hero["keep_until"]) == ([2, 1, 0, 3], 300.0)


def test_drawn_targets_lie_between_nothing_and_twice_as_much(new_world: Any) -> None:
    """Sampled for each hero; a target of zero stays zero."""
    drawn = [new_world(("sven", "lion"), seed=seed, random_consumables=1.0, **TARGETS).hero(h)
             for seed in SEEDS for h in (0, 1)]
    for k, most in enumerate((4, 2, 0, 6)):
        assert {hero["keep"][k] for hero in drawn} == set(range(most + 1))
    until = [hero["keep_until"] for hero in drawn]
    assert all(0 <= u <= 300 for u in until) and max(until) > 250 and min(until) < 50
    assert len({(*a["keep"], a["keep_until"]) for a in drawn}) > 70


def test_a_chance_of_one_in_four_draws_one_in_four(new_world: Any) -> None:
    drawn = [new_world(seed=seed, random_consumables=0.25, **TARGETS).hero(0)["keep_until"] for seed in range(200)]
    assert 0.15 < np.mean([u != 300.0 for u in drawn]) < 0.35


def test_the_buyer_stocks_the_sampled_consumables(new_world: Any) -> None:
    """With enough gold for the build: as many salves as its target, and none for a target of zero."""
    stocks = {}
    for seed in SEEDS:
        world = new_world(seed=seed, random_consumables=1.0, keep_salve=1, keep_teleport=0, upkeep_share=1.0)
        world.clear_items(0)
        world.set_gold(0, 100_000)
        world.step(400)
        hero = world.hero(0)
        if hero["keep_until"] > 60:
            stocks[hero["keep"][1]] = sum(i[1] for i in hero["items"] if i and i[0] == "item_flask")
    assert stocks == {0: 0, 1: 1, 2: 2}


def test_sampled_values_are_observed() -> None:
    game = VecGame(duel(randomisation={"consumables": 1.0}), 16, seed=5)
    seen = np.array([field(game, "allied_heroes", "purchase_settings", index=i)[0] for i in range(16)])
    assert all(set(seen[:, k].tolist()) == {0.0, 1.0, 2.0} for k in range(4))
    assert len(set(seen[:, 4].tolist())) == 16 and seen[:, 4].max() <= 1  # of ten minutes


def test_the_paper_s_game_is_evaluated_without_any_of_it() -> None:
    game: GameConfig = presets.load("rerun").game
    played = evaluation_game(game)
    assert all(game.randomisation.magnitudes().values())
    assert {n for n, m in played.randomisation.magnitudes().items() if m} == {"lane_until_seconds"}
    assert played.model_dump(exclude={"randomisation"}) == game.model_dump(exclude={"randomisation"})
    made = [VecGame(played, 1, seed=seed, observations=False) for seed in (1, 1)]
    assert made[0].hash(0) == made[1].hash(0)

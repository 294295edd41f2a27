"""Events of a timestep with unit, other unit and amount; rewards and totals count the same events."""

from typing import Any

import pytest

from dota import playback
from dota.events import FEED, Event, EventKind, events_of, line
from dota.game import Game
from dota.replay import Replay
from dota.vec_game import STATS, Controller, VecGame
from tests.dota.watching import duel


def named(world: Any, *kinds: EventKind) -> list[Event]:
    return [e for e in events_of(world.events()) if e.kind in kinds]


def test_the_start_tells_first_skills_and_purchases(new_world: Any) -> None:
    world = new_world(("nevermore",), ("sniper",))
    learned, bought = named(world, EventKind.LEARNED), named(world, EventKind.BOUGHT)
    assert {e.hero for e in learned} == {0, 5} and all(e.value == 1 and e.frame == 0 for e in learned)
    assert all(e.what.startswith("item_") and e.value > 0 for e in bought)
    spent = {hero: sum(e.value for e in bought if e.hero == hero) for hero in (0, 5)}
    assert spent == {hero: world.hero(hero)["spent"] for hero in (0, 5)}


def test_a_kill_names_killer_victim_and_assists(new_world: Any) -> None:
    world = new_world(("nevermore", "lion"), ("sniper",))
    world.step()
    units = [world.hero(h)["unit"] for h in (0, 1, 5)]
    world.damage(units[1], units[2], 50)
    world.kill(units[2], units[0])
    (death,), (kill,), (helped,) = (named(world, kind) for kind in
                                    (EventKind.HERO_DEATH, EventKind.HERO_KILL, EventKind.ASSIST))
    assert (death.unit, death.hero, death.other, death.other_hero, death.team) == (units[2], 5, units[0], 0, 1)
    assert (kill.unit, kill.hero, kill.other_hero, kill.team) == (units[0], 0, 5, 0)
    assert kill.value > 0
    assert (helped.unit, helped.hero, helped.other_hero) == (units[1], 1, 5)
    assert world.hero(5)["signals"]["hero_death"] == world.hero(0)["signals"]["killed_hero"] == 1


def test_last_hit_and_deny(new_world: Any) -> None:
    world = new_world(("nevermore",), ("sniper",))
    world.step()
    x, y = (world.unit(world.hero(0)["unit"])[axis] for axis in "xy")
    for team in (1, 0):
        creep = world.spawn("npc_dota_creep_badguys_melee" if team else "npc_dota_creep_goodguys_melee", team, x, y)
        world.kill(creep, world.hero(0)["unit"])
    (hit,), (deny,) = named(world, EventKind.LAST_HIT), named(world, EventKind.DENY)
    assert hit.hero == deny.hero == 0 and hit.value > 0
    assert "badguys" in hit.other_name and "goodguys" in deny.other_name
    assert len(named(world, EventKind.UNIT_DEATH)) == 2
    assert (world.hero(0)["last_hits"], world.hero(0)["denies"]) == (1, 1)


def test_buildings_megas_and_the_end(new_world: Any) -> None:
    world = new_world(("nevermore",), ("sniper",))
    world.step()
    for barracks in world.units("barracks"):
        if barracks["team"] == 1:
            world.kill(barracks["index"])
    assert len(named(world, EventKind.BUILDING_DEATH)) == 6
    (megas,) = named(world, EventKind.MEGAS)
    assert megas.team == 0 and megas.unit == -1
    (fort,) = (u["index"] for u in world.units("fort") if u["team"] == 1)
    world.kill(fort)
    world.step()
    # The game was over before this step: what it ended with stays to be read.
    assert named(world, EventKind.BUILDING_DEATH)[-1].unit == fort and world.winner == 1


def test_a_timestep_forgets_the_one_before(new_world: Any) -> None:
    world = new_world()
    assert world.events()
    world.step()
    world.step()
    assert not world.events()


def test_reading_or_not_reading_is_the_same_game() -> None:
    """Events, signals and views are not part of the hash, and reading them does not affect the game."""
    watched, alone = (VecGame(duel(), 1, seed=4, observations=seen) for seen in (True, False))
    for game in (watched, alone):
        game.controllers[:] = Controller.SCRIPTED
    for _ in range(200):
        for game in (watched, alone):
            game.step()
        watched.events(0)
    assert watched.hash(0) == alone.hash(0)


def test_without_views_between_the_steps_it_is_the_same_game() -> None:
    """time_parts plays the same commands again with no view between them, and compares the hashes itself."""
    game = VecGame(duel(), 2, seed=9, observations=False)
    assert game.time_parts(400, Controller.SCRIPTED)["alone"] > 0


@pytest.fixture(scope="module")
def played() -> tuple[Game, Replay, list[Event]]:
    game = Game(duel(), seed=11)
    game.controllers[:] = Controller.HARD
    tape, seen = game.record(), game.events()
    for _ in range(1500):
        game.step()
        seen += game.events()
    return game, tape, seen


def test_totals_are_the_sums_of_events(played: tuple[Game, Replay, list[Event]]) -> None:
    game, _, seen = played
    counted = {"last_hits": EventKind.LAST_HIT, "denies": EventKind.DENY, "kills": EventKind.HERO_KILL,
               "deaths": EventKind.HERO_DEATH, "assists": EventKind.ASSIST}
    for team in (0, 1):
        for column, kind in counted.items():
            number = sum(e.kind == kind and e.hero == team * 5 for e in seen)
            assert number == game.stats[team, 0, STATS.index(column)], column
    assert {EventKind.LAST_HIT, EventKind.CAST, EventKind.BOUGHT, EventKind.LEVEL_UP} <= {e.kind for e in seen}
    assert [e.frame for e in seen] == sorted(e.frame for e in seen)
    assert all(e.time == pytest.approx(game.config.start_seconds + e.frame / 30) for e in seen)


def test_a_replay_tells_the_same(played: tuple[Game, Replay, list[Event]]) -> None:
    _, tape, seen = played
    again = [event for game in playback.play(tape) for event in game.events(0)]
    assert again == seen


def test_lines_for_people(played: tuple[Game, Replay, list[Event]]) -> None:
    lines = [line(e) for e in played[2]]
    assert any("last_hit" in row and "nevermore" in row for row in lines)
    assert all(row.isascii() and "\n" not in row for row in lines)
    assert EventKind.LAST_HIT not in FEED and EventKind.HERO_KILL in FEED

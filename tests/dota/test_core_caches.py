"""Caches of the core follow from the rest of the state: unit positions, active modifiers. ``World.derived_fault()``
compares all of them; these tests call it in every frame of scenes that change them."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from dota.config import GameConfig, RandomisationConfig
from dota.vec_game import Controller, VecGame
from tests.dota.scenes.actions import give
from tests.dota.scenes.arena import CENTRE, Arena
from tests.dota.scenes.program import HEX, programmed
from tests.dota.test_playthrough import SHORT


@pytest.fixture
def arena(new_world: Any, data: dict[str, Any]) -> Arena:
    arena = Arena(new_world(("witch_doctor", "sniper"), ("nevermore", "viper"), neutrals=True), data)
    arena.place(arena.unit(0), 0, 0, 0.0)
    arena.place(arena.unit(5), 400, 0, math.pi)
    return arena


def frames(arena: Arena, count: int, until: Callable[[], bool] = lambda: False) -> int:
    """Play that many frames or until a condition holds, with a check after each; return their number."""
    for frame in range(1, count + 1):
        arena.world.run_frames(1)
        assert arena.world.derived_fault() == ""
        if until():
            return frame
    return count


def place(arena: Arena, unit: int) -> tuple[float, float]:
    u = arena.world.unit(unit)
    return u["x"], u["y"]


def test_walkers_in_each_others_way(arena: Arena) -> None:
    """Two columns walk through each other over many cells of the spatial hash."""
    begins = [CENTRE[0] - 600 + 60 * k for k in range(8)] + [CENTRE[0] + 600 - 60 * k for k in range(8)]
    units = [arena.world.spawn("npc_dota_creep_goodguys_melee", 0, x, CENTRE[1]) for x in begins]
    for k, unit in enumerate(units):
        arena.world.order(unit, "move", x=CENTRE[0] + (600 if k < 8 else -600), y=CENTRE[1])
    before = [place(arena, unit) for unit in units]
    frames(arena, 90)
    assert all(math.dist(place(arena, unit), was) > 300 for unit, was in zip(units, before, strict=True))


def test_jumps(arena: Arena) -> None:
    """A blink, a push over several frames, a teleport home, and a position set by the test."""
    a, b = arena.unit(0), arena.unit(5)
    blink, staff, scroll = give(arena, "blink"), give(arena, "force_staff"), give(arena, "tpscroll", charges=1)
    arena.world.order(a, "cast_point", x=CENTRE[0] - 900, y=CENTRE[1], slot=blink)
    was = place(arena, a)
    frames(arena, 30, lambda: math.dist(place(arena, a), was) > 600)
    assert math.dist(place(arena, a), was) > 600
    arena.world.set_unit(a, x=CENTRE[0], y=CENTRE[1])
    frames(arena, 1)
    was = place(arena, b)
    arena.world.order(a, "cast_unit", target=b, slot=staff)
    frames(arena, 30)
    assert math.dist(place(arena, b), was) > 400
    tower = next(u for u in arena.world.units("tower") if u["team"] == 0)
    arena.world.order(a, "cast_point", x=tower["x"], y=tower["y"], slot=scroll)
    frames(arena, 150, lambda: math.dist(place(arena, a), (tower["x"], tower["y"])) < 700)
    assert math.dist(place(arena, a), (tower["x"], tower["y"])) < 700


def test_deaths_births_and_returns(arena: Arena) -> None:
    """Deaths by attacks, spawns from a death, summons, and a respawn."""
    world, a, b = arena.world, arena.unit(0), arena.unit(5)
    golem = world.spawn("npc_dota_neutral_mud_golem", 2, CENTRE[0] + 200, CENTRE[1])
    frames(arena, 2)
    world.damage(a, golem, 1e5, "pure")
    assert world.derived_fault() == ""
    frames(arena, 2)
    ward = arena.teach(0, "witch_doctor_death_ward", 1)
    world.order(a, "cast_point", x=CENTRE[0] + 100, y=CENTRE[1], slot=ward)
    assert frames(arena, 30, lambda: bool(world.units("summon"))) < 30
    world.order(a, "stop")
    assert frames(arena, 30, lambda: not world.units("summon")) < 30
    world.kill(b, a)
    assert world.derived_fault() == ""
    assert frames(arena, 30 * 30, lambda: bool(world.unit(b)["alive"])) < 30 * 30


def test_a_restored_state_has_them_too(arena: Arena, new_world: Any) -> None:
    arena.world.order(arena.unit(0), "move", x=CENTRE[0] + 900, y=CENTRE[1])
    arena.teach(5, "nevermore_dark_lord", 2)
    frames(arena, 5)
    kept = arena.world.snapshot()
    frames(arena, 9)
    hashed = arena.world.hash()
    arena.world.restore(kept)
    assert arena.world.derived_fault() == ""
    frames(arena, 9)
    assert arena.world.hash() == hashed


@pytest.mark.parametrize("lineup", [SHORT["hunters"], SHORT["casters"], SHORT["three-lanes"]])
def test_games_of_heroes_who_fight(lineup: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
    config = GameConfig(heroes_per_team=len(lineup[0]), hero_pool=sorted({*lineup[0], *lineup[1]}), start_seconds=-10,
                        courier="scripted", randomisation=RandomisationConfig(xp=6.0, gold=0.5))
    vec = VecGame(config, 1, seed=721, observations=False)
    vec.controllers[:] = Controller.HARD
    for _ in range(900):
        vec.step()
        assert vec._core.derived_fault(0) == ""


# -- modifiers that rest until their end

SLOW = {"p": "mod", "to": "target", "stats": {"armor": -3}, "dur": 3}


def held(arena: Arena, unit: int) -> list[dict[str, Any]]:
    return arena.modifiers(unit, HEX)


def hex_on(arena: Arena, target: int) -> None:
    """Cast Lion's Hex with its current program and play until the frame in which its modifier exists."""
    slot = arena.world.ability(0, HEX)["slot"]
    left = max((m["left"] for m in held(arena, target)), default=0)
    arena.world.order(arena.unit(0), "cast_unit", target=target, slot=slot)
    assert frames(arena, 30, lambda: max((m["left"] for m in held(arena, target)), default=0) > left) < 30


def test_one_that_rests_ends_on_its_frame(core: Any) -> None:
    arena = programmed(core, SLOW)
    enemy = arena.unit(5)
    armor = arena.world.unit(enemy)["armor"]
    hex_on(arena, enemy)
    assert [m["rests"] for m in held(arena, enemy)] == [True]
    assert arena.world.unit(enemy)["armor"] == pytest.approx(armor - 3)
    assert frames(arena, 120, lambda: not held(arena, enemy)) == 3 * 30
    frames(arena, 1)
    assert arena.world.unit(enemy)["armor"] == pytest.approx(armor)


def test_one_that_is_renewed_lasts_from_then_on(core: Any) -> None:
    arena = programmed(core, SLOW)
    enemy = arena.unit(5)
    hex_on(arena, enemy)
    frames(arena, 60)
    hex_on(arena, enemy)
    assert len(held(arena, enemy)) == 1
    assert frames(arena, 120, lambda: not held(arena, enemy)) == 3 * 30


def test_stacks_rest_and_end_together(core: Any) -> None:
    arena = programmed(core, {"p": "stack_gain", "to": "target", "stack": "mark", "amount": 1, "max": 5, "dur": 3,
                              "per_stack": {"armor": -1}})
    enemy = arena.unit(5)
    armor = arena.world.unit(enemy)["armor"]

    def marks() -> int:
        return sum(m["stacks"] for m in arena.modifiers(enemy, "stack_mark"))

    slot = arena.world.ability(0, HEX)["slot"]
    for wanted in (1, 2, 3):
        arena.world.order(arena.unit(0), "cast_unit", target=enemy, slot=slot)
        assert frames(arena, 30, lambda: marks() == wanted) < 30  # noqa: B023
        if wanted < 3:
            frames(arena, 20)
    assert all(m["rests"] for m in arena.modifiers(enemy, "stack_mark"))
    assert arena.world.unit(enemy)["armor"] == pytest.approx(armor - 3)
    assert frames(arena, 120, lambda: marks() == 0) == 3 * 30


def test_one_that_rests_is_dispelled(core: Any) -> None:
    """Crystal Nova's modifier on Sniper is dispelled seconds before its end; its pool slot is no longer active."""
    arena = programmed(core, {"p": "dispel", "to": "target", "kind": "basic"}, enemy="crystal_maiden")
    mate = arena.unit(1)
    arena.place(mate, 200, 0)
    slot = arena.teach(5, "crystal_maiden_crystal_nova", 4)
    arena.world.order(arena.unit(5), "cast_point", x=CENTRE[0] + 200, y=CENTRE[1], slot=slot)
    assert frames(arena, 60, lambda: bool(arena.modifiers(mate, "crystal_maiden_crystal_nova"))) < 60
    slowed = arena.modifiers(mate, "crystal_maiden_crystal_nova")
    assert [m["rests"] for m in slowed] == [True] and slowed[0]["left"] > 3
    arena.world.order(arena.unit(0), "cast_unit", target=mate, slot=arena.world.ability(0, HEX)["slot"])
    assert frames(arena, 20, lambda: not arena.modifiers(mate, "crystal_maiden_crystal_nova")) < 20


def test_an_aura_modifier_ends_after_leaving_the_aura(arena: Arena) -> None:
    """Renewed once a timestep for the half second that the data let it linger: it ends that long after the last
    renewal."""
    mate = arena.unit(0)
    arena.teach(5, "nevermore_dark_lord", 1)
    lingers = arena.data["abilities"]["abilities"]["nevermore_dark_lord"]["effects"][0]["linger"]
    arena.seconds(0.3)
    assert [m["rests"] for m in arena.modifiers(mate, "nevermore_dark_lord")] == [True]
    frames(arena, 4, lambda: arena.world.frame % 4 == 0)
    arena.world.set_unit(mate, x=CENTRE[0] - 3000, y=CENTRE[1] - 3000)
    assert frames(arena, 20, lambda: not arena.modifiers(mate, "nevermore_dark_lord")) == round(30 * lingers)

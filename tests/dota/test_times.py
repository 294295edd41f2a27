"""Durations take the same number of frames whenever they begin, although the precision of float game time decreases."""

import math
from typing import Any

import numpy as np
import pytest

from dota.config import MAX_GAME_SECONDS, GameConfig
from tests.dota.scenes.arena import FRAME, Arena
from tests.dota.scenes.program import HEX, programmed

# Game times some frames beyond full seconds of minutes 0, 30, 60, 61 and 125.
BEGINS = (7 / 30, 1800 + 1 / 30, 3600 + 7 / 30, 3661 + 20 / 30, 7500 + 13 / 30)


SLACK = 1e-3  # world.hpp: kTimeSlack


def test_times_stay_distinct_in_the_longest_game() -> None:
    """A time has an error of at most half a float's step; a deadline, the sum of two, of two halves."""
    assert np.spacing(np.float32(MAX_GAME_SECONDS)) < SLACK
    assert GameConfig(max_game_seconds=MAX_GAME_SECONDS).max_game_seconds == 8000
    with pytest.raises(ValueError, match="max_game_seconds"):
        GameConfig(max_game_seconds=MAX_GAME_SECONDS + 0.5)


def begin(arena: Arena, when: float) -> None:
    """Set the time, and let Lion cast Hex on the enemy."""
    arena.world.set_time(when)
    arena.world.order(arena.unit(0), "cast_unit", target=arena.unit(5), slot=arena.world.ability(0, HEX)["slot"])


def frames_until(arena: Arena, condition: Any, most: int = 600) -> int:
    for frame in range(1, most):
        arena.world.run_frames(1)
        if condition():
            return frame
    raise AssertionError("it never came")


@pytest.mark.parametrize("when", BEGINS)
@pytest.mark.parametrize("seconds", [0.1, 0.5, 1.3, 2.9])
def test_a_stun_lasts_its_frames(core: Any, when: float, seconds: float) -> None:
    arena = programmed(core, {"p": "stun", "dur": seconds}, cast_point=[0.3])
    begin(arena, when)
    assert frames_until(arena, lambda: arena.world.unit(arena.unit(5))["status"] & 1) == 1 + round(0.3 * 30)
    assert frames_until(arena, lambda: not arena.world.unit(arena.unit(5))["status"] & 1) == round(seconds * 30)


@pytest.mark.parametrize("when", BEGINS)
@pytest.mark.parametrize(("every", "lasts"), [(0.1, 10), (0.3, 12), (0.7, 7)])
def test_a_poison_has_all_of_its_ticks(core: Any, when: float, every: float,
                                       lasts: float) -> None:
    """In the exact frames: a sum of floats would be a frame late and lose the last tick."""
    arena = programmed(core, {"p": "dot", "dps": 10, "interval": every, "dur": lasts, "type": "pure"})
    enemy = arena.unit(5)
    begin(arena, when)
    frames_until(arena, lambda: arena.modifiers(enemy, HEX))
    ticks, hp = [], arena.hp(enemy)
    for frame in range(1, int(30 * lasts) + 30):
        arena.world.run_frames(1)
        if arena.hp(enemy) < hp:
            ticks.append(frame)
        hp = arena.hp(enemy)
    assert ticks == [k * round(every * 30) for k in range(1, round(lasts / every) + 1)]


@pytest.mark.parametrize("when", BEGINS)
def test_cooldowns_end_on_their_frame(core: Any, when: float) -> None:
    arena = programmed(core, {"p": "stun", "dur": 0.1}, cooldown=[3.7])
    begin(arena, when)
    frames_until(arena, lambda: arena.world.unit(arena.unit(5))["status"] & 1)
    slot = arena.world.ability(0, HEX)["slot"]

    def stunned() -> bool:
        # Taken only when the cooldown is over, and carried out in the frame after that.
        arena.world.order(arena.unit(0), "cast_unit", target=arena.unit(5), slot=slot)
        return bool(arena.world.unit(arena.unit(5))["status"] & 1)

    assert frames_until(arena, lambda: not arena.world.unit(arena.unit(5))["status"] & 1) == 3
    assert frames_until(arena, stunned) == round(3.7 * 30) + 1 - 3


# Over the range that the rules allow.
SPEEDS = tuple(range(20, 701, 5))


@pytest.mark.parametrize("when", BEGINS[1:])
def test_attacks_lose_no_time(new_world: Any, when: float) -> None:
    """Five minutes of attacks at every attack speed: the last one is on the exact frame. A sum of floats was off by up
    to three frames, an hour into a game."""
    world = new_world(max_game_s=1e5)
    world.set_time(when)
    target = world.spawn("npc_dota_neutral_centaur_khan", 2, -500, -400)
    world.set_unit(target, extra_hp=1e8, attack_ready=1e9)
    creeps = []
    for speed in SPEEDS:
        creep = world.spawn("npc_dota_creep_goodguys_ranged", 0, -500, -100)
        world.set_unit(creep, extra_as=speed - 100, facing=-math.pi / 2)
        world.order(creep, "attack", target=target)
        creeps.append(creep)
    began = world.time
    world.run_frames(300 * 30)
    for speed, creep in zip(SPEEDS, creeps, strict=True):
        u = world.unit(creep)
        assert u["attack_speed"] == speed
        # The first swing begins in the first frame; the one that came last is the last whose point is reached by now.
        begun = began + FRAME + u["attack_point"]
        blows = math.floor((world.time + 1e-3 - begun) / u["attack_interval"])
        assert u["last_attack"] == pytest.approx(begun + blows * u["attack_interval"] + FRAME / 2, abs=FRAME / 2 + 2e-3)

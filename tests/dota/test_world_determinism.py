"""Equal seeds and commands give equal states; a restored snapshot continues identically."""

import random
import struct
from typing import Any

import pytest

from dota import _core
from dota.config import GameConfig
from dota.tables import load_tables
from dota.vec_game import Controller, VecGame

LINEUP = ("nevermore", "sniper", "lion", "crystal_maiden", "sven")
FULL = {"lanes": [True, True, True], "neutrals": True, "roshan": True, "runes": True, "keep_salve": 1}


def script(world: Any, steps: int) -> list[int]:
    """Walk every hero to mid and let it fight; return the hash every 25 timesteps."""
    out = []
    for t in range(steps):
        if t == 0:
            for h in (0, 1, 2, 3, 4):
                world.order(world.hero(h)["unit"], "attack_move", x=0, y=0)
                world.order(world.hero(5 + h)["unit"], "attack_move", x=-200, y=-200)
        world.step()
        if t % 25 == 0:
            out.append(world.hash())
    return out


def test_same_seed_same_hash(new_world: Any) -> None:
    a = script(new_world(LINEUP, LINEUP, seed=7, **FULL), 400)
    b = script(new_world(LINEUP, LINEUP, seed=7, **FULL), 400)
    assert a == b
    assert len(set(a)) == len(a)


def test_other_seed_other_hash(new_world: Any) -> None:
    a = script(new_world(LINEUP, LINEUP, seed=7, **FULL), 400)
    b = script(new_world(LINEUP, LINEUP, seed=8, **FULL), 400)
    assert a[-1] != b[-1]


def test_any_change_changes_the_hash(new_world: Any) -> None:
    world = new_world()
    before = world.hash()
    world.set_unit(world.hero(0)["unit"], hp=world.unit(world.hero(0)["unit"])["hp"] - 0.001)
    assert world.hash() != before


def test_snapshot_and_restore(new_world: Any) -> None:
    world = new_world(LINEUP, LINEUP, seed=3, **FULL)
    script(world, 300)
    saved = world.snapshot()
    here = world.hash()
    world.step(200)
    there = world.hash()
    world.restore(saved)
    assert world.hash() == here
    world.step(200)
    assert world.hash() == there


HEAD = 48  # magic, core, data, settings, size and checksum, eight bytes each


def refused(world: Any, snapshot: bytes, why: str) -> None:
    before = world.hash()
    with pytest.raises(ValueError, match=why):
        world.restore(snapshot)
    assert world.hash() == before


def test_a_snapshot_of_something_else_is_refused(new_world: Any) -> None:
    world = new_world(neutrals=True)
    saved = world.snapshot()
    refused(world, b"", "too few")
    refused(world, b"short", "too few")
    refused(world, b"\0" * len(saved), "not a snapshot of this kind")
    refused(world, saved[:7] + b"9" + saved[8:], "its format is '9'")
    refused(world, saved[:8] + bytes(8) + saved[16:], "another build")
    refused(world, saved[:-1], "cut or added to")
    refused(world, saved + b"\0", "cut or added to")
    for at in (HEAD, len(saved) // 2, len(saved) - 1):
        refused(world, saved[:at] + bytes([saved[at] ^ 1]) + saved[at + 1:], "damaged")
    refused(new_world(neutrals=False), saved, "other settings")


def test_a_snapshot_of_other_data_is_refused(new_world: Any) -> None:
    made = [_core.World(load_tables(patch), {}, ["nevermore"], ["sniper"], 1) for patch in ("7.21d", "7.19")]
    refused(made[1], made[0].snapshot(), "other data")


def test_randomised_starts_differ_and_repeat(new_world: Any) -> None:
    def start(seed: int) -> tuple[Any, ...]:
        world = new_world(seed=seed, random_attributes=0.2, random_gold=0.2, random_xp=2.0, random_item_drop=0.5,
                          random_lane=1.0, random_roshan=1.0)
        hero = world.hero(0)
        unit = world.unit(hero["unit"])
        return unit["max_hp"], hero["gold"], hero["xp"], hero["build_skip"], hero["lanes_allowed"]

    assert start(1) == start(1)
    assert len({start(s) for s in range(6)}) == 6
    assert {start(s)[4] for s in range(30)} <= set(range(1, 7))


def test_units_stay_finite_and_on_the_map(new_world: Any) -> None:
    world = new_world(LINEUP, LINEUP, seed=5, **FULL)
    script(world, 1200)
    for u in world.units():
        assert abs(u["x"]) <= 8400
        assert abs(u["y"]) <= 8400
        assert 0 <= u["hp"] <= u["max_hp"] + 1e-3
        assert u["mana"] == u["mana"]


def bots_playing(threads: int) -> VecGame:
    config = GameConfig(heroes_per_team=2, hero_pool=["lion", "sven", "sniper", "viper"], start_seconds=0)
    games = VecGame(config, 5, seed=12, threads=threads, observations=False)
    games.controllers[:] = [[Controller.HARD, Controller.RANDOM]] * games.games
    return games


def hashes(games: VecGame, steps: int) -> list[int]:
    for _ in range(steps):
        games.step()
    return [games.hash(i) for i in range(games.games)]


def test_any_number_of_threads_plays_the_same_games() -> None:
    alone = bots_playing(1)
    middle = hashes(alone, 200)
    saved = [alone.snapshot(i) for i in range(alone.games)]
    end = hashes(alone, 200)
    for threads in (2, 4):
        together = bots_playing(threads)
        assert hashes(together, 200) == middle
        # Snapshots of one go on in the other, from whatever it was at.
        for i, snapshot in enumerate(saved):
            together.restore(i, snapshot)
        assert hashes(together, 200) == end
        for i, snapshot in enumerate(saved):
            together.restore(i, snapshot)
        assert [together.hash(i) for i in range(together.games)] == middle
    assert len(set(end)) == len(end)


def test_caches_never_affect_the_game() -> None:
    """Caches follow from the state: one game keeps them, the other rebuilds them from repeated snapshots."""
    played, taken_up = (VecGame(GameConfig(start_seconds=0), 2, seed=3, observations=False) for _ in range(2))
    for games in (played, taken_up):
        games.controllers[:] = [[Controller.HARD, Controller.RANDOM], [Controller.HARD, Controller.HARD]]
    for _ in range(60):
        assert hashes(played, 10) == hashes(taken_up, 10)
        for i in range(2):
            taken_up.restore(i, taken_up.snapshot(i))
    assert played.game_time.min() > 75


def test_inconsistent_snapshot_is_refused(new_world: Any) -> None:
    """The checksum is valid: the content is checked as well."""
    world = new_world(LINEUP, LINEUP, seed=3, **FULL)
    world.step(200)
    saved, before = world.snapshot(), world.hash()
    world.restore(_core.sealed(saved))
    dice, faults = random.Random(1), 0
    for _ in range(60):
        data = bytearray(saved)
        for _ in range(40):
            at = dice.randrange(HEAD, len(data) - 4) // 4 * 4
            data[at:at + 4] = b"\xff\x7f\xc0\x7f"  # an index out of range, NaN
        try:
            world.restore(_core.sealed(bytes(data)))
        except ValueError as error:
            faults += 1
            assert "snapshot: " in str(error)
            assert world.hash() == before
        else:
            world.restore(saved)
    assert faults > 40


@pytest.mark.parametrize("length", [-7.5e11, 3e38, float("inf")])
def test_snapshot_with_oversized_unit_is_refused(new_world: Any, length: float) -> None:
    """Its edge would be in a cell beyond the range of an integer."""
    world = new_world(LINEUP, LINEUP, seed=3, **FULL)
    world.step(200)
    unit = world.hero(0)["unit"]
    world.set_unit(unit, hp=321.125)
    saved = bytearray(world.snapshot())
    assert saved.count(struct.pack("<f", 321.125)) == 1
    radius = saved.index(struct.pack("<f", 321.125)) + 6 * 4  # hp, mana, their maxima and regeneration, radius
    assert struct.unpack_from("<f", saved, radius) == (world.unit(unit)["radius"],)
    struct.pack_into("<f", saved, radius, length)
    with pytest.raises(ValueError, match="snapshot: "):
        world.restore(_core.sealed(bytes(saved)))


def test_a_facing_that_is_never_turned_round_is_refused(new_world: Any) -> None:
    world = new_world(LINEUP, LINEUP, seed=3, **FULL)
    world.set_unit(world.hero(0)["unit"], facing=1.2345)
    saved = bytearray(world.snapshot())
    at = saved.index(struct.pack("<f", 1.2345))
    assert saved.count(struct.pack("<f", 1.2345)) == 1
    struct.pack_into("<f", saved, at, 1e30)
    with pytest.raises(ValueError, match="snapshot: unit"):
        world.restore(_core.sealed(bytes(saved)))


def test_a_creep_that_follows_no_lane_is_refused(new_world: Any) -> None:
    """Its order says that it follows one. The lane is the byte that is 0, 1 and 2 in snapshots of the three lanes."""
    saved = []
    for lane in range(3):
        world = new_world(LINEUP, LINEUP, seed=3)
        world.spawn("npc_dota_creep_goodguys_melee", 0, 100, 200, lane=lane)
        saved.append(world.snapshot())
    at = next(i for i, values in enumerate(zip(*saved, strict=True)) if i >= HEAD and values == (0, 1, 2))
    refused(world, _core.sealed(saved[2][:at] + b"\xff" + saved[2][at + 1:]), "snapshot: unit")


def test_snapshot_with_negative_turn_rate_is_refused(new_world: Any) -> None:
    """A negative turn rate would let its facing grow without bound."""
    world = new_world(LINEUP, LINEUP, seed=3, **FULL)
    unit = world.hero(0)["unit"]
    world.set_unit(unit, facing=1.2345)
    saved = bytearray(world.snapshot())
    speeds = struct.pack("<2f", *(world.unit(unit)[name] for name in ("move_speed", "attack_range")))
    rate = saved.index(speeds, saved.index(struct.pack("<f", 1.2345))) + len(speeds)
    assert 0.4 <= struct.unpack_from("<f", saved, rate)[0] <= 1
    struct.pack_into("<f", saved, rate, -1e30)
    with pytest.raises(ValueError, match="snapshot: unit"):
        world.restore(_core.sealed(bytes(saved)))


@pytest.mark.parametrize(("at", "layout", "value"), [
    (0, "<d", -1e300), (0, "<d", float("-inf")), (8, "<f", 1e-30),  # its next tick, and the time from one to the next
    (-20, "<hh20xi8x8x4B", (-1, -1, 0, 3, 1, 0, 8)),  # no ability, of which it yet is a passive
    (-18, "<h", -1)])  # no part of its ability
def test_modifier_with_invalid_ticks_or_source_is_refused(new_world: Any, at: int, layout: str, value: Any) -> None:
    world = new_world(("viper",), ("nevermore",), seed=3)
    viper, other = (world.hero(hero)["unit"] for hero in (0, 5))
    world.set_unit(viper, x=0, y=0)
    world.set_unit(other, x=300, y=0)
    world.give_xp(0, 30000)
    world.step(3)  # abilities are learned
    slot = world.ability(0, "viper_viper_strike")["slot"]
    world.order(viper, "cast_unit", target=other, slot=slot)
    for _ in range(20):
        world.step()
        if ticking := [m for m in world.modifiers(other) if m["name"].startswith("viper_viper_strike")]:
            break
    saved = bytearray(world.snapshot())
    until = world.time + ticking[0]["left"]
    places = [i for i in range(HEAD + 8, len(saved) - 16, 8)
              if abs(struct.unpack_from("<f", saved, i - 8)[0] - until) < 1e-3
              and 0 < struct.unpack_from("<d", saved, i)[0] - world.time < 1.001]
    assert len(places) == 1
    struct.pack_into(layout, saved, places[0] + at, *(value if isinstance(value, tuple) else (value,)))
    with pytest.raises(ValueError, match="snapshot: a modifier"):
        world.restore(_core.sealed(bytes(saved)))

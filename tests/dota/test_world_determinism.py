"""Same seed and same commands, same state; a snapshot goes on as if nothing had been."""

from typing import Any

LINEUP = ("nevermore", "sniper", "lion", "crystal_maiden", "sven")
FULL = {"lanes": [True, True, True], "neutrals": True, "roshan": True, "runes": True, "keep_salve": 1}


def script(world: Any, steps: int) -> list[int]:
    """Walks every hero to mid and lets it fight; the hash every 25 timesteps."""
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


def test_a_foreign_snapshot_is_refused(new_world: Any) -> None:
    world = new_world()
    before = world.hash()
    try:
        world.restore(b"short")
    except ValueError as error:
        assert "snapshot" in str(error)
    else:
        raise AssertionError("a snapshot of the wrong size was taken")
    assert world.hash() == before


def test_randomised_starts_differ_and_repeat(new_world: Any) -> None:
    def start(seed: int) -> tuple[Any, ...]:
        world = new_world(seed=seed, random_stats=0.2, random_gold=0.2, random_xp=2.0, random_item_drop=0.5,
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

"""Walking: every lane is walkable, cliffs and trees are not, units avoid each other, and paths are reproducible."""

import math
from typing import Any

import numpy as np
import pytest

from tests.dota.scenes.patches import load_tables
from tests.dota.test_map import CELL, LOW

CREEP = ("npc_dota_creep_goodguys_melee", "npc_dota_creep_badguys_melee")
FPS = 30


def cell(p: tuple[float, float]) -> tuple[int, int]:
    return int((p[0] - LOW) // CELL), int((p[1] - LOW) // CELL)


def place(world: Any, unit: int) -> tuple[float, float]:
    u = world.unit(unit)
    return u["x"], u["y"]


@pytest.mark.parametrize("team", [0, 1])
@pytest.mark.parametrize("lane", [0, 1, 2])
def test_lanes_are_walked_from_spawn_to_the_enemy_base(
    core: Any, tables: Any, ground: Any, team: int, lane: int
) -> None:
    spawn, *way = core.map_lane(tables, team, lane)
    creep = ground.add(CREEP[team], team, spawn)
    speed = tables.unit(CREEP[team])["move_speed"]
    for goal in way:
        straight = math.dist(ground.position(creep), goal)
        frames = ground.walk([(creep, *goal)], 60.0, 6000)
        assert frames >= 0, f"stuck at {ground.position(creep)} on the way to {goal}"
        assert frames / FPS * speed <= 1.35 * straight + 150, "a detour no lane has"
    assert math.dist(ground.position(creep), way[-1]) < 450  # the last waypoint stands inside the fort


def test_hero_walks_between_fountains_on_open_ground_only(core: Any, tables: Any, ground: Any) -> None:
    spawn = core.map_places(tables)["hero_spawn"]
    hero = ground.add("npc_dota_hero_axe", 0, spawn[0])
    blocked = core.map_grid(tables, "blocked_at_start")
    level = core.map_grid(tables, "elevation")
    speed = tables.unit("npc_dota_hero_axe")["move_speed"]
    was = cell(ground.position(hero))
    for _frame in range(3 * 60 * FPS):
        before = ground.position(hero)
        if ground.walk([(hero, *spawn[1])], 50.0, 1) >= 0:
            break
        here = ground.position(hero)
        now = cell(here)
        assert math.dist(before, here) <= speed / FPS + 1e-2
        assert blocked[now[1], now[0]] == 0
        assert abs(int(level[now[1], now[0]]) - int(level[was[1], was[0]])) <= 1, "walked over a cliff"
        if now[0] != was[0] and now[1] != was[1]:
            assert blocked[now[1], was[0]] == 0 and blocked[was[1], now[0]] == 0, "cut a corner"
        was = now
    else:
        pytest.fail(f"not there after three minutes: {ground.position(hero)}")


def test_random_walks_arrive_or_end_at_the_nearest_open_ground(core: Any, tables: Any, ground: Any) -> None:
    rng = np.random.default_rng(3)
    blocked = core.map_grid(tables, "blocked_at_start")
    hero = ground.add("npc_dota_hero_sniper", 0, (0.0, 0.0))
    for goal in rng.uniform(-7000, 7000, (60, 2)):
        goal_cell = cell((goal[0], goal[1]))
        frames = ground.walk([(hero, float(goal[0]), float(goal[1]))], 20.0, 150 * FPS)
        assert frames >= 0, (goal, ground.position(hero))
        here = ground.position(hero)
        assert blocked[cell(here)[1], cell(here)[0]] == 0
        if blocked[goal_cell[1], goal_cell[0]] == 0 and ground.walkable((goal[0], goal[1])):
            assert math.dist(here, goal) <= 20 or not reachable(core, tables, goal_cell)


def reachable(core: Any, tables: Any, goal: tuple[int, int]) -> bool:
    """Return whether a cell is connected on foot to the middle of the map, by flood fill."""
    open_ = core.map_grid(tables, "blocked_at_start") == 0
    seen = np.zeros_like(open_)
    x, y = cell((0.0, 0.0))
    seen[y, x] = True
    while True:
        grown = seen.copy()
        grown[1:] |= seen[:-1]
        grown[:-1] |= seen[1:]
        grown[:, 1:] |= seen[:, :-1]
        grown[:, :-1] |= seen[:, 1:]
        grown &= open_
        if (grown == seen).all():
            return bool(seen[goal[1], goal[0]])
        seen = grown


@pytest.mark.parametrize("start", [-60.0, 0.0])
def test_a_unit_that_jumped_does_not_go_back_to_its_path(new_world: Any, start: float) -> None:
    """It was on its way round a corner: from where it stands now the goal lies straight ahead."""
    world = new_world(start_s=start)
    hero, goal = world.hero(0)["unit"], (-4907, 4719)
    world.set_unit(hero, x=-5227, y=5560)
    world.step(1)
    world.order(hero, "move", x=goal[0], y=goal[1])
    world.step(6)
    world.set_unit(hero, x=-5200, y=4781)
    for _ in range(6):
        before = math.dist(place(world, hero), goal)
        world.step(1)
        assert math.dist(place(world, hero), goal) < before


def test_turning_takes_its_time(tables: Any, ground: Any) -> None:
    hero = ground.add("npc_dota_hero_sniper", 0, (0.0, 0.0))
    ground.face(hero, 0.0)
    per_frame = tables.unit("npc_dota_hero_sniper")["turn_rate"] / 0.03 / FPS
    frames = 1
    while not ground.turn_towards(hero, (-1000.0, 1.0)):
        frames += 1
    assert frames == math.ceil((math.pi - math.radians(11.5)) / per_frame)
    assert abs(ground.facing(hero)) > math.pi - math.radians(11.6)
    ground.face(hero, 0.0)
    ground.walk([(hero, -1000.0, 0.0)], 1.0, 2)
    assert ground.position(hero) == (0.0, 0.0), "it walked before it had turned"


def test_a_rooted_unit_stays(ground: Any) -> None:
    hero = ground.add("npc_dota_hero_axe", 0, (0.0, 0.0))
    ground.set_status(hero, 1 << 1)
    assert ground.walk([(hero, 300.0, 0.0)], 1.0, 60) == -1
    assert ground.position(hero) == (0.0, 0.0)


def test_two_waves_that_meet_pass_through_each_other(core: Any, tables: Any, ground: Any) -> None:
    _, *way = core.map_lane(tables, 0, 2)
    a, b = way[1], way[2]  # a long open stretch of the bottom lane
    d = math.dist(a, b)
    ux, uy = (b[0] - a[0]) / d, (b[1] - a[1]) / d
    goals, radius = [], tables.unit(CREEP[0])["hull_radius"]
    for k in range(6):
        across, along = (k % 3 - 1) * 50.0, (k // 3) * 60.0
        p = (a[0] + ux * (d / 2 - 250 - along) - uy * across, a[1] + uy * (d / 2 - 250 - along) + ux * across)
        q = (a[0] + ux * (d / 2 + 250 + along) - uy * across, a[1] + uy * (d / 2 + 250 + along) + ux * across)
        # Each ends where the other wave began, in the order in which it walks.
        goals.append((ground.add(CREEP[0], 0, p), q[0] - 2 * ux * along, q[1] - 2 * uy * along))
        goals.append((ground.add(CREEP[1], 1, q), p[0] + 2 * ux * along, p[1] + 2 * uy * along))
    closest = math.inf
    for _frame in range(20 * FPS):
        if ground.walk(goals, 80.0, 1) >= 0:
            break
        at = [ground.position(g[0]) for g in goals]
        closest = min(closest, *(math.dist(p, q) for i, p in enumerate(at) for q in at[:i]))
    else:
        pytest.fail("the waves are stuck in each other")
    assert closest >= 2 * radius - 0.5, "bodies overlapped"


def test_a_creep_gets_out_of_the_pocket_between_two_fighters(ground: Any) -> None:
    for x, y in ((21.6, -24.3), (-14.1, -29.9)):
        ground.add(CREEP[0], 0, (x, y))
    creep = ground.add(CREEP[0], 0, (0.0, 0.0))
    ground.face(creep, -math.pi / 2)
    assert ground.walk([(creep, 32.0, -148.0)], 5.0, 3 * FPS) >= 0


def test_a_boxed_in_unit_neither_moves_nor_jumps(ground: Any) -> None:
    inner = ground.add("npc_dota_hero_axe", 0, (0.0, 0.0))
    for k in range(6):
        angle = k * math.pi / 3
        ground.add("npc_dota_hero_axe", 1, (50 * math.cos(angle), 50 * math.sin(angle)))
    ground.walk([(inner, 500.0, 0.0)], 1.0, 90)
    assert math.dist(ground.position(inner), (0.0, 0.0)) < 10


def test_occupied_goal_is_reached_by_touching_the_unit(tables: Any, ground: Any) -> None:
    ground.add("npc_dota_hero_axe", 1, (0.0, 0.0))
    hero = ground.add("npc_dota_hero_axe", 0, (-300.0, 0.0))
    assert ground.walk([(hero, 0.0, 0.0)], 1.0, 3 * FPS) >= 0
    assert 48 <= math.dist(ground.position(hero), (0.0, 0.0)) <= 53


def test_attackers_reach_a_building_from_every_side(core: Any, tables: Any, ground: Any) -> None:
    tower = next(b for b in core.map_buildings(tables) if b["id"] == "dota_badguys_tower1_bot")
    reach = 100.0 + 16.0 + tower["bounds"] - 1
    goals = []
    for k in range(8):
        angle = k * math.pi / 4
        at = (tower["pos"][0] + 330 * math.cos(angle), tower["pos"][1] + 330 * math.sin(angle))
        goals.append((ground.add(CREEP[0], 0, ground.free_place(at, 16.0)), *tower["pos"]))
    assert ground.walk(goals, reach, 5 * FPS) >= 0
    for creep, x, y in goals:
        assert math.dist(ground.position(creep), (x, y)) <= reach


def test_phased_and_flying_bodies_go_through(ground: Any) -> None:
    for phased in (True, False):
        walker = ground.add("npc_dota_hero_axe" if phased else "npc_dota_flying_courier", 0, (-200.0, 0.0))
        if phased:
            ground.set_status(walker, 1 << 11)
        for y in range(-300, 301, 40):
            ground.add("npc_dota_hero_axe", 1, (0.0, float(y)))
        assert ground.walk([(walker, 200.0, 0.0)], 1.0, 2 * FPS) >= 0


def test_a_felled_tree_opens_a_shorter_way(core: Any, tables: Any, ground: Any, data: dict[str, Any]) -> None:
    count = core.map_grid(tables, "tree_count")
    terrain = core.map_grid(tables, "terrain_blocked")

    def open_around(tx: int, ty: int) -> bool:
        x, y = (tx - LOW) // CELL, (ty - LOW) // CELL
        box = np.s_[y - 3 : y + 3, x - 3 : x + 3]
        return count[box].sum() == 4 and count[box][2:4, 2:4].sum() == 4 and not terrain[box].any()

    tree, (tx, ty, _) = next((i, t) for i, t in enumerate(data["map"]["trees"]) if open_around(t[0], t[1]))
    left, right = (tx - 150.0, float(ty) + 20), (tx + 150.0, float(ty) + 20)
    hero = ground.add("npc_dota_hero_axe", 0, left)
    around = ground.walk([(hero, *right)], 1.0, 300)
    ground.place(hero, left)
    ground.face(hero, 0.0)
    ground.cut_tree(tree)
    through = ground.walk([(hero, *right)], 1.0, 300)
    assert 0 < through < around


def trace(ground: Any, goals: list[tuple[int, float, float]], frames: int) -> list[tuple[float, float]]:
    out = []
    for _ in range(frames):
        ground.walk(goals, 5.0, 1)
        out += [ground.position(g[0]) for g in goals]
    return out


def test_the_same_walk_comes_out_the_same_whatever_was_cached(core: Any, tables: Any, data: dict[str, Any]) -> None:

    rng = np.random.default_rng(5)
    start, end = rng.uniform(-6500, 6500, (12, 2)), rng.uniform(-6500, 6500, (12, 2))

    def run(t: Any) -> list[tuple[float, float]]:
        g = core.Ground(t)
        goals = [
            (g.add("npc_dota_hero_axe", 0, g.free_place((float(s[0]), float(s[1])), 24.0)), float(e[0]), float(e[1]))
            for s, e in zip(start, end, strict=True)
        ]
        return trace(g, goals, 400)

    warm = run(tables)
    fresh = load_tables(core, data)
    other = core.Ground(fresh)
    other.walk([(other.add("npc_dota_hero_axe", 0, (0.0, 0.0)), 5000.0, -3000.0)], 5.0, 900)
    assert run(tables) == warm
    assert run(fresh) == warm


def test_a_copied_ground_goes_on_the_same(core: Any, tables: Any) -> None:
    g = core.Ground(tables)
    goals = [(g.add("npc_dota_hero_axe", 0, (-3000.0 + 70 * k, -2500.0)), 3000.0, 2500.0 - 50 * k) for k in range(8)]
    g.walk(goals, 5.0, 100)
    twin = g.copy()
    assert trace(g, goals, 200) == trace(twin, goals, 200)
    assert g.hash() == twin.hash()

"""Grids, positions and terrain: the core uses what the map file contains."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

LOW, CELL, SIDE = -8320, 64, 260


def decoded(runs: list[int]) -> npt.NDArray[np.int16]:
    """Decode [value, count, ...] to int16 [260, 260], row 0 at the lowest y."""
    return np.repeat(np.array(runs[::2], np.int16), runs[1::2]).reshape(SIDE, SIDE)


def centre(x: int, y: int) -> tuple[float, float]:
    return LOW + (x + 0.5) * CELL, LOW + (y + 0.5) * CELL


@pytest.mark.parametrize(
    "name", ["elevation", "terrain_blocked", "fow_blocker", "no_ward", "tree_count", "blocked_at_start"]
)
def test_run_lengths_decode_as_in_python(core: Any, tables: Any, data: dict[str, Any], name: str) -> None:
    np.testing.assert_array_equal(core.map_grid(tables, name), decoded(data["map"]["grids"][name]))


def test_building_cells_are_the_footprints(core: Any, tables: Any, data: dict[str, Any]) -> None:
    cells = core.map_grid(tables, "building")
    np.testing.assert_array_equal(cells > 0, decoded(data["map"]["grids"]["building_blocked"]) > 0)
    for y, x in np.argwhere(cells > 0):
        b = data["map"]["buildings"][cells[y, x] - 1]
        px, py = centre(x, y)
        assert max(abs(px - b["x"]), abs(py - b["y"])) <= b["bounds"] + CELL


def test_buildings_lanes_camps_and_places(core: Any, tables: Any, data: dict[str, Any]) -> None:
    m = data["map"]
    loaded = core.map_buildings(tables)
    assert [b["id"] for b in loaded] == [b["id"] for b in m["buildings"]]
    for ours, theirs in zip(loaded, m["buildings"], strict=True):
        assert ours["pos"] == (theirs["x"], theirs["y"]) and ours["unit"] == theirs["unit"]
        assert ours["team"] == ["radiant", "dire"].index(theirs["team"])
        assert ours["tier"] == theirs.get("tier", 0)
        unit = tables.unit(ours["unit"])
        for f in ("hp", "armor", "dmg_min", "dmg_max", "attack_time"):
            if f in theirs:
                assert unit[f] == pytest.approx(theirs[f]), (theirs["id"], f)
    for team, name in enumerate(("radiant", "dire")):
        for lane, side in enumerate(("top", "mid", "bot")):
            spawn, *way = core.map_lane(tables, team, lane)
            assert list(spawn) == m["lanes"][name][side]["spawn"]
            assert [list(p) for p in way] == m["lanes"][name][side]["waypoints"]
    camps = core.map_camps(tables)
    assert [c[0] for c in camps] == [c["id"] for c in m["camps"]]
    assert [c[1] for c in camps] == [["small", "medium", "large", "ancient"].index(c["tier"]) for c in m["camps"]]
    places = core.map_places(tables)
    assert [list(p) for p in places["bounty"]] == m["runes"]["bounty"]
    assert [list(p) for p in places["power"]] == m["runes"]["power"]
    assert places["roshan"] == (m["roshan"]["x"], m["roshan"]["y"])
    assert [list(t) for t in core.map_trees(tables)] == m["trees"]


def test_walkable_and_elevation_agree_with_the_grids(core: Any, tables: Any, ground: Any) -> None:
    blocked, level = core.map_grid(tables, "blocked_at_start"), core.map_grid(tables, "elevation")
    for y in range(0, SIDE, 7):
        for x in range(0, SIDE, 7):
            assert ground.walkable(centre(x, y)) == (blocked[y, x] == 0)
            assert ground.elevation(centre(x, y)) == level[y, x]
    assert not ground.walkable((9000, 0)) and not ground.walkable((0, -9000))


def test_a_cut_tree_opens_its_cells_and_grows_back(tables: Any, ground: Any, data: dict[str, Any], core: Any) -> None:
    count = core.map_grid(tables, "tree_count")
    terrain = core.map_grid(tables, "terrain_blocked")

    def cells(i: int) -> list[tuple[int, int]]:
        x, y = ((v - LOW) // CELL for v in data["map"]["trees"][i][:2])
        return [(x - 1, y - 1), (x, y - 1), (x - 1, y), (x, y)]

    alone = (
        i for i in range(len(data["map"]["trees"])) if all(count[b, a] == 1 and not terrain[b, a] for a, b in cells(i))
    )
    tree = next(alone)
    own = cells(tree)
    tx, ty, _ = data["map"]["trees"][tree]
    assert not any(ground.walkable(centre(*c)) for c in own)
    assert ground.tree_at((tx, ty), 10) == tree
    ground.cut_tree(tree)
    assert all(ground.walkable(centre(*c)) for c in own)
    assert ground.tree_at((tx, ty), 10) == -1
    regrow = data["rules"]["rules"]["trees"]["regrow_s"]
    ground.pass_time(regrow - 1)
    assert ground.walkable((tx, ty))
    hero = ground.add("npc_dota_hero_axe", 0, (tx, ty))
    ground.pass_time(2)
    assert ground.walkable((tx, ty)), "it grew on top of a unit"
    ground.place(hero, (tx + 500, ty))
    ground.pass_time(2)
    assert not any(ground.walkable(centre(*c)) for c in own)


def test_ground_under_a_fallen_building_opens(core: Any, tables: Any, ground: Any) -> None:
    index, tower = next(
        (i, b) for i, b in enumerate(core.map_buildings(tables)) if b["id"] == "dota_goodguys_tower1_mid"
    )
    assert not ground.walkable(tower["pos"])
    ground.fell_building(index)
    assert ground.walkable(tower["pos"])


def test_free_place_is_open_and_clear_of_bodies(core: Any, tables: Any, ground: Any, data: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    for p in rng.uniform(-7500, 7500, (200, 2)):
        q = ground.free_place((float(p[0]), float(p[1])), 24.0)
        assert ground.walkable(q)
        if ground.walkable((float(p[0]), float(p[1]))):
            assert q == pytest.approx((p[0], p[1]), abs=1e-2)
    ground.add("npc_dota_hero_axe", 0, (0.0, 0.0))
    x, y = ground.free_place((0.0, 0.0), 24.0)
    assert 48 <= (x * x + y * y) ** 0.5 <= 120


def test_units_near_is_a_plain_search_in_index_order(ground: Any) -> None:
    rng = np.random.default_rng(2)
    at = rng.uniform(-8000, 8000, (300, 2)).astype(np.float32)
    at[:100] = rng.uniform(-600, 600, (100, 2))
    for p in at:
        ground.add("npc_dota_neutral_kobold", 0, (float(p[0]), float(p[1])))
    for q, radius in [((0, 0), 50), ((0, 0), 600), ((8000, 8000), 3000), ((-300, 250), 1200), ((0, 0), 20000)]:
        d = np.linalg.norm(at - np.array(q, np.float32), axis=1)
        assert ground.units_near(q, radius) == list(np.flatnonzero(d <= radius))
    for i in range(0, 300, 3):
        ground.place(i, (7000.0, -7000.0))
        at[i] = (7000, -7000)
    assert ground.units_near((7000, -7000), 1) == list(range(0, 300, 3))
    for _round in range(6):
        for i in rng.permutation(300)[:120]:
            p = rng.uniform(-700, 700, 2).astype(np.float32)
            ground.place(int(i), (float(p[0]), float(p[1])))
            at[i] = p
        d = np.linalg.norm(at - np.array((100, -100), np.float32), axis=1)
        assert ground.units_near((100, -100), 500) == list(np.flatnonzero(d <= 500))

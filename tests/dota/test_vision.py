"""Fog of war: heights, trees, day and night, true sight; felled trees against a recomputed map."""

from typing import Any

import numpy as np
import pytest

from tests.dota.scenes.patches import load_tables
from tests.dota.scenes.statuses import INVISIBLE, REVEALED, TRUE_SIGHTED
from tests.dota.test_map import CELL, LOW, SIDE, centre

FLYING = 1 << 15
HERO = "npc_dota_hero_sniper"


def fog(ground: Any, team: int) -> Any:
    """Return bool [130, 130], row 0 at the lowest y."""
    return np.array([[c == "#" for c in row] for row in ground.fog(team)])


def open_spots(core: Any, tables: Any, side: int) -> list[tuple[int, int]]:
    """Return cells whose neighbourhood of that size is level and free of trees and blockers."""
    level = core.map_grid(tables, "elevation")
    solid = core.map_grid(tables, "tree_count") + core.map_grid(tables, "fow_blocker")
    out = []
    for y in range(side, SIDE - side, 2):
        for x in range(side, SIDE - side, 2):
            box = np.s_[y - side : y + side + 1, x - side : x + side + 1]
            if (level[box] == level[y, x]).all() and not solid[box].any():
                out.append((x, y))
    return out


def test_a_lone_hero_sees_no_farther_than_its_radius(tables: Any, ground: Any) -> None:
    hero = ground.add(HERO, 0, (0.0, -200.0))
    unit = tables.unit(HERO)
    y, x = np.mgrid[0:130, 0:130]
    away = np.hypot(LOW + (x + 0.5) * 128 - 0.0, LOW + (y + 0.5) * 128 + 200.0)
    for day, radius in ((True, unit["vision_day"]), (False, unit["vision_night"])):
        ground.set_day(day)
        ground.update_vision()
        seen = fog(ground, 0)
        assert seen.any() and away[seen].max() <= radius + CELL
        assert not fog(ground, 1).any()
    ground.set_status(hero, FLYING)
    ground.set_day(True)
    ground.update_vision()
    seen = fog(ground, 0)
    assert seen[away <= unit["vision_day"] - CELL].all(), "flying vision is the whole disc"
    assert not seen[away > unit["vision_day"] + CELL].any()


def test_open_level_ground_is_fully_visible(core: Any, tables: Any, ground: Any) -> None:
    spots = open_spots(core, tables, 9)
    assert spots
    hero = ground.add(HERO, 0, (0.0, 0.0))
    for x, y in spots[:40]:
        ground.place(hero, centre(x, y))
        ground.update_vision()
        for dx in range(-8, 9):
            for dy in range(-8, 9):
                assert ground.cell_visible(0, centre(x + dx, y + dy)), (x, y, dx, dy)


def test_high_ground_is_not_seen_from_below_but_sees_down(core: Any, tables: Any, ground: Any) -> None:
    level = core.map_grid(tables, "elevation")
    solid = core.map_grid(tables, "tree_count") + core.map_grid(tables, "fow_blocker")
    blocked = core.map_grid(tables, "terrain_blocked")
    low, high = ground.add(HERO, 0, (0.0, 0.0)), ground.add(HERO, 1, (0.0, 0.0))
    tried = 0
    for y in range(20, SIDE - 20, 2):
        for x in range(20, SIDE - 20, 2):
            up = (x + 6, y)
            row = np.s_[y - 1 : y + 3, x - 2 : x + 10]
            steps = level[y, x : x + 7]
            if solid[row].any() or blocked[y, x] or blocked[y, x + 6] or (np.diff(steps) < 0).any():
                continue
            if (
                not (level[y : y + 2, x : x + 2] == steps[0]).all()
                or not (level[y : y + 2, x + 6 : x + 8] == steps[0] + 1).all()
            ):
                continue
            tried += 1
            ground.place(low, centre(x, y))
            ground.place(high, centre(*up))
            ground.update_vision()
            assert not ground.unit_visible(0, high), f"seen from below at {x, y}"
            assert ground.unit_visible(1, low), f"not seen from above at {x, y}"
    assert tried >= 20


def lone_tree(core: Any, tables: Any, data: dict[str, Any]) -> tuple[int, int, int]:
    """Return a tree on level open ground: index, x and y of the cell above and right of its point."""
    level = core.map_grid(tables, "elevation")
    count = core.map_grid(tables, "tree_count")
    other = core.map_grid(tables, "fow_blocker")
    for i, (tx, ty, _) in enumerate(data["map"]["trees"]):
        x, y = (tx - LOW) // CELL, (ty - LOW) // CELL
        box = np.s_[y - 1 : y + 1, x - 8 : x + 8]
        if tx % 128 or ty % 128 == 0:  # its cells are one row of fog cells high
            continue
        if (level[box] == level[y, x]).all() and count[box].sum() == 4 and not other[box].any():
            return i, x, y
    pytest.fail("no lone tree on the map")


def test_a_tree_blocks_and_a_felled_one_does_not(core: Any, tables: Any, ground: Any, data: dict[str, Any]) -> None:
    tree, x, y = lone_tree(core, tables, data)
    hero = ground.add(HERO, 0, centre(x - 6, y))
    enemy = ground.add(HERO, 1, centre(x + 4, y))
    ground.update_vision()
    assert not ground.unit_visible(0, enemy)
    ground.cut_tree(tree)
    ground.update_vision()
    assert ground.unit_visible(0, enemy) and ground.unit_visible(1, hero)
    ground.place(enemy, centre(x + 4, y + 40))
    ground.pass_time(data["rules"]["rules"]["trees"]["regrow_s"] + 1)
    ground.place(enemy, centre(x + 4, y))
    ground.update_vision()
    assert not ground.unit_visible(0, enemy), "it grew back"


def test_a_tree_is_seen_over_from_the_next_level(core: Any, tables: Any, data: dict[str, Any]) -> None:
    """Cells hidden from a viewer by trees alone are visible from one level higher."""
    g = core.Ground(tables)
    level = core.map_grid(tables, "elevation")
    seen_over = 0
    hero = g.add(HERO, 0, (0.0, 0.0))
    for tx, ty, tree_level in data["map"]["trees"][::5]:
        x, y = (tx - LOW) // CELL, (ty - LOW) // CELL
        for dx in (-9, 9):
            if not 0 <= x + 2 * dx < SIDE:
                continue
            way = level[y, min(x + dx, x - dx) : max(x + dx, x - dx) + 1]
            if level[y, x + dx] != tree_level + 1 or (way > tree_level + 1).any():
                continue
            g.place(hero, centre(x + dx, y))
            g.update_vision()
            seen_over += g.cell_visible(0, centre(x - int(np.sign(dx)) * 3, y))
    assert seen_over >= 5


def test_masks_with_felled_trees_equal_a_map_that_never_had_them(core: Any, tables: Any, data: dict[str, Any]) -> None:
    """Vision with felled trees is cached by the trees near the viewer; it must equal a map without them."""
    import copy


    rng = np.random.default_rng(7)
    down = sorted(rng.choice(len(data["map"]["trees"]), 300, replace=False).tolist())
    bare = copy.deepcopy(data)
    bare["map"]["trees"] = [t for i, t in enumerate(data["map"]["trees"]) if i not in set(down)]
    count = np.zeros((SIDE, SIDE), int)
    for tx, ty, _ in bare["map"]["trees"]:
        x, y = (tx - LOW) // CELL, (ty - LOW) // CELL
        count[y - 1 : y + 1, x - 1 : x + 1] += 1
    bare["map"]["grids"]["tree_count"] = [v for c in count.ravel().tolist() for v in (c, 1)]
    without = core.Ground(load_tables(core, bare))
    felled = core.Ground(tables)
    for s in rng.uniform(-7000, 7000, (25, 2)):
        for g in (without, felled):
            g.add(HERO, 0, (float(s[0]), float(s[1])))
    for half in (down[::2], down[1::2]):  # visibility computed with half of them felled must not be reused
        for i in half:
            felled.cut_tree(i)
        felled.update_vision()
    for day in (True, False):
        for _again in range(2):  # the second time from the cache
            for g in (without, felled):
                g.set_day(day)
                g.update_vision()
            np.testing.assert_array_equal(fog(felled, 0), fog(without, 0))


def test_invisible_units_need_true_sight(core: Any, tables: Any, ground: Any) -> None:
    x, y = open_spots(core, tables, 9)[0]
    ground.add(HERO, 0, centre(x, y))
    enemy = ground.add(HERO, 1, centre(x + 4, y))
    ground.set_status(enemy, INVISIBLE)
    ground.update_vision()
    assert ground.cell_visible(0, centre(x + 4, y)) and not ground.unit_visible(0, enemy)
    assert ground.unit_visible(1, enemy), "its own team always sees it"
    ground.set_status(enemy, INVISIBLE | TRUE_SIGHTED)
    assert ground.unit_visible(0, enemy)
    ground.set_status(enemy, INVISIBLE)
    ground.add("npc_dota_sentry_wards", 0, centre(x + 8, y))
    ground.update_vision()
    assert ground.unit_visible(0, enemy)


def test_revealed_units_show_through_the_teams_fog(ground: Any) -> None:
    one = ground.add(HERO, 0, (-3000.0, -3000.0))
    ground.update_vision()
    alone = fog(ground, 0)
    two = ground.add(HERO, 0, (3000.0, 3000.0))
    enemy = ground.add(HERO, 1, (6000.0, -6000.0))
    ground.update_vision()
    both = fog(ground, 0)
    assert (both[alone]).all() and both.sum() > alone.sum()
    assert ground.cell_visible(0, ground.position(one)) and ground.cell_visible(0, ground.position(two))
    assert not ground.unit_visible(0, enemy)
    ground.set_status(enemy, REVEALED)
    assert ground.unit_visible(0, enemy)


@pytest.mark.parametrize("flying", [True, False])
def test_an_observer_ward_does_not_see_over_trees(
    core: Any, tables: Any, ground: Any, data: dict[str, Any], flying: bool
) -> None:
    """It has ground vision; a flying unit sees over the tree."""
    _tree, x, y = lone_tree(core, tables, data)
    viewer = ground.add(HERO if flying else "npc_dota_observer_wards", 0, centre(x - 6, y))
    if flying:
        ground.set_status(viewer, FLYING)
    enemy = ground.add(HERO, 1, centre(x + 4, y))
    ground.update_vision()
    assert ground.unit_visible(0, enemy) == flying


def test_an_area_can_be_revealed(ground: Any) -> None:
    ground.update_vision()
    assert not ground.cell_visible(0, (1000.0, 1000.0))
    ground.reveal(0, (1000.0, 1000.0), 400.0, True)
    assert ground.cell_visible(0, (1000.0, 1000.0)) and not ground.cell_visible(1, (1000.0, 1000.0))
    assert not ground.cell_visible(0, (1600.0, 1000.0))


def test_vision_at_the_edges_of_the_map(ground: Any) -> None:
    for x, y in ((-8300.0, -8300.0), (8300.0, 8300.0), (-8300.0, 8300.0), (8300.0, -8300.0)):
        unit = ground.add(HERO, 0, (x, y))
        ground.set_status(unit, FLYING)
    ground.update_vision()
    seen = fog(ground, 0)
    size = seen[:20, :20].sum()
    assert size > 100
    for corner in (seen[:20, -20:], seen[-20:, :20], seen[-20:, -20:]):
        assert abs(int(corner.sum()) - int(size)) < 0.1 * size
    assert not seen[30:100, :].any() and not seen[:, 30:100].any()
    corners = (seen[:20, :20], seen[:20, -20:], seen[-20:, :20], seen[-20:, -20:])
    assert seen.sum() == sum(c.sum() for c in corners)


@pytest.mark.parametrize(("x", "y"), [(-8300.0, 0.0), (8300.0, 0.0), (0.0, -8300.0), (0.0, 8300.0)])
def test_sight_over_one_edge_does_not_come_back_at_the_other(ground: Any, x: float, y: float) -> None:
    ground.set_status(ground.add(HERO, 0, (x, y)), FLYING)
    ground.update_vision()
    rows, columns = np.nonzero(fog(ground, 0))
    assert len(rows) > 100
    assert np.hypot(LOW + (columns + 0.5) * 128 - x, LOW + (rows + 0.5) * 128 - y).max() < 1900

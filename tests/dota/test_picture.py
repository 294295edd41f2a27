"""A frame as a picture."""

import numpy as np

from dota.picture import SCALE, TEAMS, ground_of, render_frame


def frame(*units, projectiles=()):
    return {"units": list(units), "projectiles": list(projectiles), "areas": []}


def unit(x, y, kind="lane_creep", team=0, alive=True, hp=100):
    return {"kind": kind, "x": x, "y": y, "team": team, "alive": alive, "hp": hp, "max_hp": 100}


def test_a_unit_is_rendered_at_its_position():
    ground = ground_of("7.21d")
    empty = render_frame("7.21d", frame())
    assert empty.shape == (*(SCALE * n for n in ground.picture.shape[:2]), 3) and empty.dtype == np.uint8
    for x, y in ((0, 0), (3000, -2000)):
        picture = render_frame("7.21d", frame(unit(x, y, team=1)))
        rows, columns = np.nonzero((picture != empty).any(-1))
        side = len(empty)
        assert abs(columns.mean() - (x - ground.west) / ground.extent * side) < 2
        assert abs(side - rows.mean() - (y - ground.south) / ground.extent * side) < 2
        assert (picture[int(rows.mean()), int(columns.mean())] == TEAMS[1]).all()


def test_the_dead_are_not_drawn_and_the_edge_cuts_nothing_else():
    empty = render_frame("7.21d", frame())
    assert np.array_equal(render_frame("7.21d", frame(unit(0, 0, alive=False))), empty)
    render_frame("7.21d", frame(unit(-1e5, 1e5, "hero"), unit(8000, 8000, "fort"), projectiles=[(-8000, 8300, 0)]))


def test_health_is_shown():
    full, half = (render_frame("7.21d", frame(unit(0, 0, "hero", hp=hp))) for hp in (100, 50))
    green = [(picture == (90, 230, 90)).all(-1).sum() for picture in (full, half)]
    assert green[0] == 2 * green[1] > 0

"""Renderer of a spectator's frame to pixels with numpy alone, for ``render_mode="rgb_array"``."""

import functools
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from dota.spaces import DATA

SCALE = 2  # pixels along a side of a map cell
# Colours by the map's ground level; -9 is void, other levels look like 4.
GROUND = {-9: (20, 24, 28), 1: (58, 84, 92), 2: (86, 92, 66), 3: (98, 104, 76), 4: (112, 112, 92)}
TREES = (58, 76, 48)
TEAMS = ((96, 200, 110), (224, 92, 80), (200, 190, 120))
SIZES = {"hero": 8, "lane_creep": 3, "neutral": 3, "roshan": 8, "tower": 7, "barracks": 7, "fort": 12, "filler": 4,
         "shrine": 5, "fountain": 9, "courier": 3, "ward": 3, "summon": 4}  # radii in pixels
BUILDINGS = ("tower", "barracks", "fort", "filler", "shrine")
PROJECTILE = (250, 240, 160)
Picture = npt.NDArray[np.uint8]


def _decode_runs(flat: list[int], shape: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Expand a run-length list [value, count, ...]."""
    pairs = np.array(flat, np.int64).reshape(-1, 2)
    return np.repeat(pairs[:, 0], pairs[:, 1]).reshape(shape)


class MapPicture:
    """Map of a patch: ``picture`` uint8 [h, w, 3], one pixel a cell, north up; ``west``, ``south``, ``extent`` in world
    units."""

    def __init__(self, patch: str) -> None:
        data = json.loads((DATA / f"dota-{patch}" / "map.json").read_text(encoding="utf-8"))
        world = data["world"]
        self.west, self.south = float(world["min_x"]), float(world["min_y"])
        self.extent = float(world["cell"] * world["w"])
        shape = (world["h"], world["w"])
        levels, trees = (_decode_runs(data["grids"][name], shape) for name in ("elevation", "tree_count"))
        ground = np.zeros((*shape, 3), np.uint8)
        for level in np.unique(levels):
            ground[levels == level] = GROUND.get(int(level), GROUND[4])
        ground[trees > 0] = TREES
        self.picture: Picture = ground[::-1]


@functools.cache
def ground_of(patch: str) -> MapPicture:
    """Return the map of a patch, cached for the process."""
    return MapPicture(patch)


def _render_disc(image: Picture, x: float, y: float, radius: float, colour: tuple[int, int, int], square: bool) -> None:
    side = image.shape[0]
    left, right = max(0, int(x - radius)), min(side, int(x + radius) + 1)
    top, bottom = max(0, int(y - radius)), min(side, int(y + radius) + 1)
    if left >= right or top >= bottom:
        return
    part = image[top:bottom, left:right]
    if square:
        part[:] = colour
        return
    across, down = np.arange(left, right) - x, np.arange(top, bottom) - y
    part[across[None, :] ** 2 + down[:, None] ** 2 <= radius**2] = colour


def render_frame(patch: str, frame: dict[str, Any]) -> Picture:
    """Render one frame of ``VecGame.spectate`` to uint8 [520, 520, 3].

    The map has north up; Radiant is green, Dire red, neutrals yellow; heroes, towers and Ancients have health bars.
    """
    ground = ground_of(patch)
    image = np.repeat(np.repeat(ground.picture, SCALE, 0), SCALE, 1)
    side = image.shape[0]

    def at(x: float, y: float) -> tuple[float, float]:
        return (x - ground.west) / ground.extent * side, side - (y - ground.south) / ground.extent * side

    for unit in sorted(frame["units"], key=lambda u: u["kind"] == "hero"):
        if not unit["alive"]:
            continue
        x, y = at(unit["x"], unit["y"])
        size = SIZES.get(unit["kind"], 3)
        _render_disc(image, x, y, size, (0, 0, 0), unit["kind"] in BUILDINGS)
        _render_disc(image, x, y, size - 1, TEAMS[unit["team"]], unit["kind"] in BUILDINGS)
        if unit["kind"] in ("hero", "tower", "fort", "roshan") and unit["max_hp"] > 0:
            top, left = max(0, int(y - size - 5)), max(0, int(x - 10))
            length = round(20 * max(0.0, unit["hp"] / unit["max_hp"]))
            image[top : top + 3, left : left + 20] = (40, 0, 0)
            image[top : top + 3, left : left + length] = (90, 230, 90)
    for x, y, *_ in frame["projectiles"]:
        _render_disc(image, *at(x, y), 2, PROJECTILE, False)
    return image

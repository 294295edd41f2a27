"""Symmetric map: the Radiant's half of a patch's map, and its point reflection as the Dire's half."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch as patched

import numpy as np
import numpy.typing as npt

from dota import tables
from dota.spaces import DATA

PATCH = "7.21d"
LANES = {"top": "bot", "mid": "mid", "bot": "top"}  # turned by half a circle
Place = list[float]
Cells = npt.NDArray[np.int64]


def image(place: Place) -> Place:
    return [-place[0], -place[1]]


def own(x: float, y: float) -> bool:
    """Return whether a position is in the Radiant's half."""
    return x + y < 0


def cells_of(runs: list[int], side: int) -> Cells:
    """Decode a grid from its run lengths, [side, side], and replace the upper half by the lower one's reflection."""
    cells = np.repeat(runs[0::2], runs[1::2]).reshape(side, side)
    column = np.arange(side)
    border = column[None] + column[:, None]
    lower = (border < side - 1) | ((border == side - 1) & (column[None] < side // 2))
    return np.where(lower, cells, cells[::-1, ::-1])


def runs_of(cells: Cells) -> list[int]:
    flat = cells.reshape(-1)
    starts = np.flatnonzero(np.diff(flat, prepend=flat[0] - 1))
    lengths = np.diff(starts, append=flat.size)
    return [int(number) for pair in zip(flat[starts], lengths, strict=True) for number in pair]


def cells_under(trees: list[list[float]], world: dict[str, Any]) -> Cells:
    """Count the trees on each cell; a tree covers the four cells that meet at its point."""
    cells = np.zeros((world["h"], world["w"]), np.int64)
    for x, y, _ in trees:
        column, row = int((x - world["min_x"]) // world["cell"]), int((y - world["min_y"]) // world["cell"])
        cells[row - 1:row + 1, column - 1:column + 1] += 1
    return cells


def counterpart(building: str) -> str:
    """Return the Radiant building that corresponds to a Dire building, by their ids."""
    parts = building.replace("bad", "good").split("_")
    return "_".join(LANES.get(part, part) for part in parts)


def mirrored(given: dict[str, Any]) -> dict[str, Any]:
    """Return a patch's map with a mirrored Dire half: ground, trees, buildings, lanes, shops and spawns.

    Camps, runes and Roshan are unchanged: use it for games without them.
    """
    out = json.loads(json.dumps(given))
    out["trees"] = [t for t in given["trees"] if own(*t[:2])]
    out["trees"] += [[*image(t[:2]), *t[2:]] for t in out["trees"]]
    grids = {name: cells_of(runs, given["world"]["w"]) for name, runs in given["grids"].items() if name != "encoding"}
    grids["tree_count"] = cells_under(out["trees"], given["world"])
    standing = grids["terrain_blocked"] + grids["tree_count"] + grids["building_blocked"]
    grids["blocked_at_start"] = (standing > 0).astype(np.int64)
    out["grids"] |= {name: runs_of(cells) for name, cells in grids.items()}
    places = {b["id"]: b for b in given["buildings"]}
    for b in out["buildings"]:
        if b["team"] == "dire":
            b["x"], b["y"] = image([places[counterpart(b["id"])][axis] for axis in "xy"])
    fort = places["dota_goodguys_fort"]
    half = {lane: [p for p in way["waypoints"] if own(*p)] for lane, way in given["lanes"]["radiant"].items()}
    for lane, way in out["lanes"]["radiant"].items():
        # It goes on as the other side comes to meet it, up to its fort.
        there = [*reversed(half[LANES[lane]]), [fort["x"], fort["y"]]]
        way["waypoints"] = half[lane] + [image(p) for p in there]
    for lane, way in out["lanes"]["dire"].items():
        turned = out["lanes"]["radiant"][LANES[lane]]
        way["spawn"], way["waypoints"] = image(turned["spawn"]), [image(p) for p in turned["waypoints"]]
    shops = [s for s in given["shops"] if own(s["x"], s["y"])]
    out["shops"] = shops + [s | {"x": -s["x"], "y": -s["y"]} | ({"team": "dire"} if "team" in s else {}) for s in shops]
    out["hero_spawn"]["dire"] = image(given["hero_spawn"]["radiant"])
    return out


@contextmanager
def games_on_it(folder: Path) -> Iterator[None]:
    """Context in which new games use the symmetric map; ``folder`` is an empty folder for its data."""
    shutil.copytree(DATA / f"dota-{PATCH}", folder / f"dota-{PATCH}")
    file = folder / f"dota-{PATCH}/map.json"
    file.write_text(json.dumps(mirrored(json.loads(file.read_text()))))
    tables.load_tables.cache_clear()
    with patched.object(tables, "DATA", folder):
        try:
            yield
        finally:
            tables.load_tables.cache_clear()

"""What a team's policy told of a step, put into the frame of that step: the same for every process that plays games."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dota.spaces import Layout
from dota.spectator.camera import TEAM_HEROES, Camera

Array = npt.NDArray[Any]


def building_slots(layout: Layout) -> slice:
    """Which unit slots of an observation hold the enemy's buildings, in the order of the head that foresees which of
    those in sight are gone soon."""
    group = layout.groups["enemy_buildings"]
    return slice(group.start, group.start + group.count)


def show_thoughts(camera: Camera, side: int, told: Mapping[str, Array], *, values: Array, version: int, actions: Array,
                  available: Array, units: Array | None, buildings: slice) -> None:
    """Shows what a side's policy made of the frame that the camera has last looked at.

    Args:
        told: probabilities by name, each of which may be missing: ``choice`` [H, 30] of the available actions, ``aim``
            [H, units] of the unit slots, ``win_probability`` [H], ``net_worth_rank`` [H, 5], ``building_events``
            [H, buildings].
        values: float [H]; ``version`` of the policy; ``actions`` int16 [H, 6] that it chose.
        available: the ids that ``choice`` and the first column of ``actions`` index, [H, 30], 0 for none.
        units: which unit of the game stands in each unit slot [units], -1 for none (buildings out of sight among
            them); None where nobody knows.
        buildings: as `building_slots` gives them.
    """
    win = told.get("win_probability")
    camera.think(side, values, None if win is None else float(win.mean()), version,
                 np.take_along_axis(available, actions[:, :1].astype(np.int64), 1))
    if "net_worth_rank" in told:
        camera.rank(side, told["net_worth_rank"].astype(np.float32))
    if "building_events" in told and units is not None:
        # A head for each hero; the label is the team's.
        camera.foresee(side, units[buildings], told["building_events"].astype(np.float32).mean(0))
    for hero in range(len(actions)):
        place = side * TEAM_HEROES + hero
        if "choice" in told:
            offered = np.flatnonzero(available[hero])
            camera.choose(place, available[hero, offered], told["choice"][hero, offered])
        if "aim" in told and units is not None:
            camera.aim(place, units, told["aim"][hero, :len(units)].astype(np.float32))

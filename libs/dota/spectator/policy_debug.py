"""Conversion of a policy's outputs for a step into the frame of that step, for every process that plays games."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dota.spaces import Layout
from dota.spectator.camera import TEAM_HEROES, Camera

Array = npt.NDArray[Any]


def building_slots(layout: Layout) -> slice:
    """Return the unit slots of an observation's enemy buildings, in the order of the head that predicts their loss."""
    group = layout.groups["enemy_buildings"]
    return slice(group.start, group.start + group.count)


def record_policy_outputs(camera: Camera, side: int, outputs: Mapping[str, Array], *, values: Array, version: int,
                          actions: Array, available: Array, units: Array | None, buildings: slice) -> None:
    """Add a side's policy outputs to the frame that the camera recorded last.

    Args:
        outputs: probabilities by name, each optional: ``choice`` [H, 30] of the available actions, ``aim``
            [H, units] of the unit slots, ``win_probability`` [H], ``net_worth_rank`` [H, 5], ``building_events``
            [H, buildings].
        values: float [H]; ``version`` of the policy; ``actions`` int16 [H, 6] that it chose.
        available: the ids that ``choice`` and the first column of ``actions`` index, [H, 30], 0 for none.
        units: the game's unit in each unit slot [units], -1 for none (including unseen buildings); None when unknown.
        buildings: slots from `building_slots`.
    """
    win = outputs.get("win_probability")
    camera.record_outputs(side, values, None if win is None else float(win.mean()), version,
                          np.take_along_axis(available, actions[:, :1].astype(np.int64), 1))
    if "net_worth_rank" in outputs:
        camera.rank(side, outputs["net_worth_rank"].astype(np.float32))
    if "building_events" in outputs and units is not None:
        # A head for each hero; the label is the team's.
        camera.record_building_losses(side, units[buildings], outputs["building_events"].astype(np.float32).mean(0))
    for hero in range(len(actions)):
        seat = side * TEAM_HEROES + hero
        if "choice" in outputs:
            offered = np.flatnonzero(available[hero])
            camera.choose(seat, available[hero, offered], outputs["choice"][hero, offered])
        if "aim" in outputs and units is not None:
            camera.aim(seat, units, outputs["aim"][hero, :len(units)].astype(np.float32))

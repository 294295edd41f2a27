"""Game of a Dota 2 client: its world states (``CMsgBotWorldState``) as observations of the simulator's layout.

`ClientGame` takes the bytes that a client sends to a bot of one team, and writes the observation, the available actions
and the masks that a policy reads. docs/client-observations.md lists what a client does not report.
"""

import functools
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dota import _core
from dota.config import GameConfig
from dota.spaces import DATA, ActionPart, Layout
from dota.tables import core_layout, core_variant, load_tables


class ClientCommand(NamedTuple):
    """Choice of one hero: ``action`` is an index into ``Layout.actions``, ``delay`` a frame of the timestep.

    ``target`` and ``teleport`` are handles of the client, 0 for none; ``dx``, ``dy`` are offsets in the world's
    orientation, in steps of ``GameConfig.offset_cell``.
    """

    action: int
    delay: int
    target: int
    teleport: int
    dx: int
    dy: int


class ClientGame:
    """Game that a client plays, seen by one team.

    ``obs`` holds the arrays of ``layout.array_specs()`` without leading dimensions; `update` writes them. ``config`` is
    the given one with ``hide_unseen``, since a client does not report what that hides. Raises ValueError as ``Game``
    does.
    """

    def __init__(self, config: GameConfig) -> None:
        self.config = config.model_copy(update={"hide_unseen": True})
        self.layout = Layout(self.config)
        self._core = _core.ClientGame(core_layout(self.layout), core_variant(self.config),
                                      client_ids(self.config.patch))
        self.obs: dict[str, npt.NDArray[Any]] = self.layout.allocate()
        self._buffers = {name: a.view(np.uint16) if a.dtype == np.float16 else a for name, a in self.obs.items()}

    @property
    def team(self) -> int:
        """Team of the last frame: 0 Radiant, 1 Dire."""
        return int(self._core.team())

    @property
    def time(self) -> float:
        """Seconds since the horn."""
        return float(self._core.time())

    @property
    def counts(self) -> dict[str, Any]:
        """Counts since the start: ``frames`` taken, ``refused`` frames, ``unknown_fields``, and ``unknown_names``:
        occurrences of names and numbers that the patch lacks."""
        return dict(self._core.counts())

    def update(self, frame: bytes) -> str:
        """Take the next frame and write ``obs``. Return an empty string, or why the frame is refused.

        A refused frame changes nothing; the next intact frame brings the game up to date. Send every frame: a lost one
        loses the trees that fell in it.
        """
        if reason := str(self._core.update(frame)):
            return reason
        self._core.encode(self._buffers)
        return ""

    def choose(self, actions: npt.NDArray[np.int16]) -> list[ClientCommand]:
        """Decode ``actions`` int16 [H, 6], chosen from ``obs``, and remember them: observations show the last choice.

        Raises ValueError for another shape or dtype, and before the first frame.
        """
        shape = (self.layout.heroes, len(ActionPart))
        if actions.shape != shape or actions.dtype != np.int16:
            raise ValueError(f"actions must be int16 {shape}, not {actions.dtype} {actions.shape}")
        return [ClientCommand(*row) for row in self._core.choose(np.ascontiguousarray(actions))]

    def remember(self, commands: Sequence[ClientCommand]) -> None:
        """Remember choices that were made elsewhere, one for each own hero, as `choose` does. Raises ValueError before
        the first frame."""
        self._core.remember([tuple(command) for command in commands])

    def unit_handles(self) -> list[int]:
        """Return the client's handle of each unit row of the observation, 0 for an empty row."""
        return list(self._core.slot_handles())

    def hero_handles(self) -> list[int]:
        """Return the client's handles of the own heroes, 0 for one that was not seen yet."""
        return list(self._core.hero_handles())


@functools.cache
def client_ids(patch: str) -> dict[str, dict[int, int]]:
    """Return Valve's numbers of a patch's heroes, abilities and items, each with its index in the core's tables."""
    tables = load_tables(patch)
    heroes, abilities, items = (_numbers(patch, file) for file in ("heroes", "abilities", "items"))
    cast = abilities | items  # an item's active effect has the item's name and number
    return {"hero": {heroes[name]: i for i, name in enumerate(tables.heroes)},
            "ability": {cast[name]: i for i, name in enumerate(tables.abilities) if name in cast},
            "item": {items[name]: i for i, name in enumerate(tables.items)}}


def _numbers(patch: str, file: str) -> dict[str, int]:
    rows = json.loads((DATA / f"dota-{patch}" / f"{file}.json").read_text(encoding="utf-8"))[file]
    return {name: row["id"] for name, row in rows.items() if row.get("id")}


def read_world_state(frame: bytes) -> dict[str, Any]:
    """Decode a serialized world state for inspection.

    Keys: ``team_id``, ``game_time``, ``dota_time``, ``players`` (id, team, hero, alive, kills, deaths), ``units``
    (dicts), counts of the other lists, and ``unknown_fields``: fields that no schema from 2017 to 2026 has.
    Raises ValueError that says why the bytes are refused.
    """
    return dict(_core.read_world_state(frame))

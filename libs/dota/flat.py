"""Observation as one row of float32 numbers, for models without embeddings and sets."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dota.spaces import ID_SPACES, Layout

Array = npt.NDArray[Any]
# Id space of the id fields that are not named after theirs.
_SPACE_OF = {"next_item": "item", "area_effect": "area"}
_PARTS = ("shared", "private", "shared_ids", "private_ids")


class FlatObservation:
    """Function from the arrays of ``layout`` for ``heroes`` heroes to one row: shared, private, shared ids, private
    ids.

    Numbers keep the layout's fixed scales. An id is divided by the size of its id space, which only distinguishes rows;
    a model that embeds ids uses the arrays instead. ``size`` is the row's length, ``columns`` the indices of
    each ``block.field`` in the row: those of the shared part and of the first hero's part.
    """

    def __init__(self, layout: Layout, heroes: int = 1) -> None:
        self.heroes = heroes
        widths = {"shared": layout.shared, "private": layout.private * heroes, "shared_ids": layout.shared_ids,
                  "private_ids": layout.private_ids * heroes}
        starts = dict(zip(_PARTS, np.cumsum([0, *(widths[p] for p in _PARTS)]).tolist(), strict=False))
        self.size = sum(widths.values())
        self._slices = {p: slice(starts[p], starts[p] + widths[p]) for p in _PARTS}
        scales = {p: np.ones(getattr(layout, p), np.float32) for p in ("shared_ids", "private_ids")}
        self.columns: dict[str, Array] = {}
        for block in layout.blocks.values():
            for field in block.fields:
                if field.array not in _PARTS:
                    continue
                first = block.offset[field.array] + field.offset
                rows = first + np.arange(block.instances) * block.stride[field.array]
                columns = (rows[:, None] + np.arange(field.count)).ravel()
                self.columns[f"{block.name}.{field.name}"] = starts[field.array] + columns
                if field.array in scales:
                    space = _SPACE_OF.get(field.name, field.name)
                    scales[field.array][columns] = 1.0 / (ID_SPACES[space] or layout.units + 1)
        self._scales = {"shared_ids": scales["shared_ids"], "private_ids": np.tile(scales["private_ids"], heroes)}

    def __call__(self, arrays: Mapping[str, Array]) -> npt.NDArray[np.float32]:
        """Return a new array float32 [..., size] from arrays [..., (heroes,) width]; the heroes' axis is present for
        several heroes."""
        lead = arrays["shared"].shape[:-1]
        out = np.empty((*lead, self.size), np.float32)
        for part, where in self._slices.items():
            values = arrays[part].reshape(*lead, -1)
            if part in self._scales:
                np.multiply(values, self._scales[part], out=out[..., where])
            else:
                out[..., where] = values
        return out

"""Observation fields that a layout omits (``game.observation.omit``) and that surgery can add later."""

import difflib
from collections.abc import Mapping, Sequence

# Fields added after the first release, as block.field, with their generation (dota.config.FIELDS). A run's record holds
# the generation that the run began with, so that a release that adds a field does not change existing runs.
LATER: dict[str, int] = {}

# Blocks that are omitted as a whole. Blocks whose number of rows is configured are omitted by a count of 0 instead.
WHOLE_BLOCKS = ("minimap", "nearby_map", "abilities", "items")
COUNTED_BLOCKS = ("hero_modifiers", "unit_modifiers", "pickups")

# Fields that cannot be omitted, with the reason.
NEEDED = {
    "units.unit": "it says whether a slot is taken",
    "units.max_hp": "the labels of building events are read from it",
    "pickups.status": "it says whether a pickup is known", "pickups.pickup": "it says whether a slot is taken",
    "hero_modifiers.modifier": "it says whether a slot is taken",
    "unit_modifiers.modifier": "it says whether a slot is taken",
    "abilities.ability": "it says whether a slot is taken", "items.item": "it says whether a slot is taken",
    "previous_action.target_embedding": "the model makes it", "previous_action.action_embedding": "the model makes it",
}


def left_out(omit: Sequence[str], generation: int) -> tuple[str, ...]:
    """Return the omitted entries: ``omit``, and the fields that are newer than ``generation``."""
    later = (field for field, came in LATER.items() if came > generation)
    return (*omit, *(field for field in later if field not in omit and field.partition(".")[0] not in omit))


def omitted_fields(omit: Sequence[str], fields: Mapping[str, Sequence[str]],
                   floats: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return every field that ``omit`` excludes, as ``block.field``, in the order of the table.

    Args:
        omit: entries ``block.field`` or ``block``.
        fields: names of each block's fields, in order.
        floats: those of them that hold numbers and are transmitted.

    Raises ValueError that names an entry which is unknown (with the nearest one), duplicate, or required.
    """
    known = [*(f"{block}.{name}" for block, names in fields.items() for name in names), *WHOLE_BLOCKS]
    wanted: set[str] = set()
    for entry in omit:
        where = f"observation.omit: '{entry}'"
        if entry in COUNTED_BLOCKS:
            raise ValueError(f"{where} is omitted by setting its slot count to 0")
        if entry in NEEDED:
            raise ValueError(f"{where} cannot be omitted: {NEEDED[entry]}")
        if entry not in known:
            near = difflib.get_close_matches(entry, known, n=1)
            raise ValueError(f"{where} is not a field" + (f"; did you mean '{near[0]}'?" if near else
                             "; fields are named block.field, see docs/observations.md"))
        new = {f"{entry}.{name}" for name in fields[entry]} if entry in WHOLE_BLOCKS else {entry}
        if new & wanted:
            raise ValueError(f"{where} is listed twice")
        wanted |= new
    for block in ("global", "minimap", "nearby_map"):
        if block not in omit and floats[block] and all(f"{block}.{name}" in wanted for name in floats[block]):
            instead = "keep one of its fields" if block == "global" else f"leave out the block '{block}' instead"
            raise ValueError(f"observation.omit omits every field of {block}: {instead}")
    return tuple(name for name in known if name in wanted)

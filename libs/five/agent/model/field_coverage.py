"""Coverage of an observation layout's fields: the model refuses a layout with a field that it does not read."""

from collections.abc import Iterator

from dota.spaces import Block, Field, Layout
from five.agent.model.input_structure import feature_streams, sets

# Ids by block, one column each; those of nearby_map are a whole row. `input_structure.sets` has the ids of sets.
IDS = {"units": ("unit", "animation"), "allied_heroes": ("build", "next_item"), "nearby_map": ("area_effect",),
       "previous_action": ("action",)}
ROWS = ("nearby_map.area_effect",)
# Not an input on purpose: the recurrent state carries the target's embedding instead.
NOT_INPUTS = ("previous_action.target_slot",)


def unread_fields(layout: Layout) -> tuple[str, ...]:
    """Return the fields of the observation that no part of the network reads, as ``block.field``."""
    return tuple(_unread(layout))


def require_read(layout: Layout) -> None:
    """Raise ValueError naming the fields of ``layout`` that the network does not read."""
    unread = unread_fields(layout)
    if unread:
        raise ValueError(
            f"layout {layout.hash} has fields that the model does not read: {', '.join(unread)}; read them in "
            "five.agent.model.inputs and list them in five.agent.model.field_coverage, or leave them out with "
            "game.observation.omit")


def _unread(layout: Layout) -> Iterator[str]:
    read = {(stream.block.name, stream.array) for stream in feature_streams(layout).values()}
    ids = {spec.block.name: (spec.space,) for spec in sets(layout).values()} | IDS
    for block in layout.blocks.values():
        for field in block.fields if block.instances else ():
            name = f"{block.name}.{field.name}"
            if field.array == "model" or name in NOT_INPUTS:
                continue
            if field.array in ("shared", "private"):
                if (block.name, field.array) not in read:
                    yield name
            elif not _id_read(block, field, ids.get(block.name, ())):
                yield name


def _id_read(block: Block, field: Field, names: tuple[str, ...]) -> bool:
    return field.name in names and (field.count == 1 or f"{block.name}.{field.name}" in ROWS)

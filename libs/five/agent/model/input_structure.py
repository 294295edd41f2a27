"""Structure of the network's input tree (Berner et al. 2019, figure 17) as names and sizes: unit groups, sets of rows
and feature streams. It needs no torch."""

from typing import NamedTuple

from dota.spaces import HERO_ABILITIES, HERO_ITEMS, ID_SPACES, Array, Block, Layout
from five.agent.config import IdSpace, ModelConfig


class UnitWeightGroup(NamedTuple):
    """Unit slots that share weights; ``slots`` are in order."""

    name: str
    slots: tuple[int, ...]


class SetSpec(NamedTuple):
    """A set of rows that belong to an owner: a hero, another unit, or (pickups) the team-step itself."""

    block: Block
    per_owner: int
    first_owner: int  # unit slot of the first owner
    space: str  # id space of its rows


class FeatureStream(NamedTuple):
    """Numbers that are normalised field by field: the fields of ``block`` in ``array``.

    Each of ``groups`` has its own statistics.
    """

    block: Block
    array: Array
    groups: tuple[str, ...]

    @property
    def fields(self) -> int:
        """Return the number of fields of one row."""
        return self.block.width(self.array)


class MapSizes(NamedTuple):
    """Sizes of a map encoder's layers (`five.agent.model.map_encoder.MapEncoder`)."""

    pool: bool
    second: bool
    side: int


def unit_groups(layout: Layout) -> tuple[UnitWeightGroup, ...]:
    """Return the groups of units with their own weights (Berner et al. 2019, figure 17), without empty ones.

    The two groups of heroes come first.
    """
    def slots(*names: str) -> tuple[int, ...]:
        return tuple(s for n in names for s in range(layout.groups[n].start,
                                                     layout.groups[n].start + layout.groups[n].count))

    kinds = ("creeps", "buildings", "wards", "courier")
    groups = (
        UnitWeightGroup("allied_heroes", slots("allied_heroes")),
        UnitWeightGroup("enemy_heroes", slots("enemy_heroes")),
        UnitWeightGroup("allied_units", slots(*(f"allied_{k}" for k in kinds))),
        UnitWeightGroup("enemy_units", slots(*(f"enemy_{k}" for k in kinds))),
        UnitWeightGroup("neutrals", slots("neutral_creeps")),
    )
    return tuple(t for t in groups if t.slots)


def sets(layout: Layout) -> dict[str, SetSpec]:
    """Return the sets of rows by name, without empty ones. A name begins with the owner."""
    blocks, o, heroes = layout.blocks, layout.observation, 2 * layout.heroes
    named = {
        "hero_modifiers": SetSpec(blocks["hero_modifiers"], o.hero_modifiers, 0, "modifier"),
        "hero_abilities": SetSpec(blocks["abilities"], HERO_ABILITIES, 0, "ability"),
        "hero_items": SetSpec(blocks["items"], HERO_ITEMS, 0, "item"),
        "unit_modifiers": SetSpec(blocks["unit_modifiers"], o.unit_modifiers, heroes, "modifier"),
        "pickups": SetSpec(blocks["pickups"], o.pickups, 0, "pickup"),
    }
    return {name: spec for name, spec in named.items() if spec.block.instances > 0}


def feature_streams(layout: Layout) -> dict[str, FeatureStream]:
    """Return the streams by name, in the order of the normaliser's vector, without maps that the layout leaves out."""
    b, one = layout.blocks, ("",)
    units = tuple(group.name for group in unit_groups(layout))
    named = {"global": FeatureStream(b["global"], "shared", one)}
    if b["minimap"].instances:
        named["minimap"] = FeatureStream(b["minimap"], "shared", one)
    if b["nearby_map"].instances:
        named["nearby_map"] = FeatureStream(b["nearby_map"], "private", one)
    named["previous_action"] = FeatureStream(b["previous_action"], "private", one)
    named |= {name: FeatureStream(spec.block, "shared", one) for name, spec in sets(layout).items()}
    return named | {
        "units": FeatureStream(b["units"], "shared", units),
        "units/private": FeatureStream(b["units"], "private", units),
        "heroes": FeatureStream(b["heroes"], "shared", units[:2]),
        "heroes/private": FeatureStream(b["heroes"], "private", units[:2]),
        "allied_heroes": FeatureStream(b["allied_heroes"], "shared", one)}


def embedding_widths(config: ModelConfig) -> dict[IdSpace, int]:
    """Return the width of each id space's embedding, in the order of the tables. ``action`` is as wide as a key."""
    return {"unit": config.unit_embedding, "animation": config.animation_embedding,
            "modifier": config.modifier_embedding, "ability": config.ability_embedding, "item": config.item_embedding,
            "pickup": config.pickup_embedding, "build": config.build_embedding, "area": config.area_embedding,
            "action": config.key}


def id_rows(config: ModelConfig, space: IdSpace) -> int:
    """Return the number of rows of an id space's embedding; row 0 is "none"."""
    return max(ID_SPACES[space], config.id_rows.get(space, 0))


def map_sizes(side: int) -> MapSizes:
    """Return the sizes of the encoder of a map with ``side`` cells a side.

    Raises ValueError for a map that is too small for a 2x2 kernel.
    """
    if side < 2:
        raise ValueError(f"a map needs at least 2 cells a side for its 2x2 kernels, not {side}")
    first = side - 1
    pool = first >= 4
    last = first // 2 if pool else first
    second = last >= 2
    return MapSizes(pool, second, last - 1 if second else last)

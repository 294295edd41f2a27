"""The tree that the network walks (Berner et al. 2019, figure 17), as names and sizes: which groups of units have
weights of their own, which sets hang on whom, which streams of numbers are normalised together. Needs no torch."""

from typing import NamedTuple

from dota.spaces import HERO_ABILITIES, HERO_ITEMS, ID_SPACES, Array, Block, Layout
from five.agent.config import IdSpace, ModelConfig


class UnitGroup(NamedTuple):
    """A group of unit slots that share weights. ``slots`` are its unit slots, in order."""

    name: str
    slots: tuple[int, ...]


class SetSpec(NamedTuple):
    """A set of rows that hang on an owner: a hero, another unit, or (pickups) the team-step itself."""

    block: Block
    per_owner: int
    first_owner: int  # unit slot of the first owner
    space: str  # id space of its rows


class Stream(NamedTuple):
    """Numbers that are normalised field by field: the fields of ``block`` in ``array``; rows of each of ``groups``
    have statistics of their own."""

    block: Block
    array: Array
    groups: tuple[str, ...]

    @property
    def fields(self) -> int:
        """Numbers of one row."""
        return self.block.width(self.array)


class MapSizes(NamedTuple):
    """What is left of a map behind its layers: see `five.agent.model.map_encoder.MapEncoder`."""

    pool: bool
    second: bool
    side: int


def towers(layout: Layout) -> tuple[UnitGroup, ...]:
    """The five groups of units with weights of their own (Berner et al. 2019, figure 17); empty ones left out.
    The two groups of heroes come first."""
    def slots(*names: str) -> tuple[int, ...]:
        return tuple(s for n in names for s in range(layout.groups[n].start,
                                                     layout.groups[n].start + layout.groups[n].count))

    kinds = ("creeps", "buildings", "wards", "courier")
    found = (
        UnitGroup("allied_heroes", slots("allied_heroes")),
        UnitGroup("enemy_heroes", slots("enemy_heroes")),
        UnitGroup("allied_units", slots(*(f"allied_{k}" for k in kinds))),
        UnitGroup("enemy_units", slots(*(f"enemy_{k}" for k in kinds))),
        UnitGroup("neutrals", slots("neutral_creeps")),
    )
    return tuple(t for t in found if t.slots)


def sets(layout: Layout) -> dict[str, SetSpec]:
    """The sets of the tree by name; those without slots left out. Names begin with what owns them."""
    blocks, o, heroes = layout.blocks, layout.observation, 2 * layout.heroes
    found = {
        "hero_modifiers": SetSpec(blocks["hero_modifiers"], o.hero_modifiers, 0, "modifier"),
        "hero_abilities": SetSpec(blocks["abilities"], HERO_ABILITIES, 0, "ability"),
        "hero_items": SetSpec(blocks["items"], HERO_ITEMS, 0, "item"),
        "unit_modifiers": SetSpec(blocks["unit_modifiers"], o.unit_modifiers, heroes, "modifier"),
        "pickups": SetSpec(blocks["pickups"], o.pickups, 0, "pickup"),
    }
    return {name: spec for name, spec in found.items() if spec.block.instances > 0}


def streams(layout: Layout) -> dict[str, Stream]:
    """The streams by name, in the order of the normaliser's vector; those of maps that are left out are not there."""
    b, one = layout.blocks, ("",)
    units = tuple(tower.name for tower in towers(layout))
    found = {"global": Stream(b["global"], "shared", one)}
    if b["minimap"].instances:
        found["minimap"] = Stream(b["minimap"], "shared", one)
    if b["nearby_map"].instances:
        found["nearby_map"] = Stream(b["nearby_map"], "private", one)
    found["previous_action"] = Stream(b["previous_action"], "private", one)
    found |= {name: Stream(spec.block, "shared", one) for name, spec in sets(layout).items()}
    return found | {
        "units": Stream(b["units"], "shared", units), "units/private": Stream(b["units"], "private", units),
        "heroes": Stream(b["heroes"], "shared", units[:2]), "heroes/private": Stream(b["heroes"], "private", units[:2]),
        "allied_heroes": Stream(b["allied_heroes"], "shared", one)}


def embedding_widths(config: ModelConfig) -> dict[IdSpace, int]:
    """Width of each id space's embedding, in the order of the tables. ``action`` is as wide as a key."""
    return {"unit": config.unit_embedding, "animation": config.animation_embedding,
            "modifier": config.modifier_embedding, "ability": config.ability_embedding, "item": config.item_embedding,
            "pickup": config.pickup_embedding, "build": config.build_embedding, "area": config.area_embedding,
            "action": config.key}


def id_rows(config: ModelConfig, space: IdSpace) -> int:
    """Rows of an id space's embedding; row 0 is "none"."""
    return max(ID_SPACES[space], config.id_rows.get(space, 0))


def map_sizes(side: int) -> MapSizes:
    """Whether a map of ``side`` cells is pooled and has a second layer, and the side of what comes out.

    Raises ValueError for a map that is too small for a 2x2 kernel.
    """
    if side < 2:
        raise ValueError(f"a map needs at least 2 cells a side for its 2x2 kernels, not {side}")
    first = side - 1
    pool = first >= 4
    last = first // 2 if pool else first
    second = last >= 2
    return MapSizes(pool, second, last - 1 if second else last)

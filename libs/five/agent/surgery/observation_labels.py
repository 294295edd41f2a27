"""Labels of all entries of a team-step's arrays, which map observations from one layout to another."""

from collections.abc import Iterator

from dota.spaces import HERO_ABILITIES, HERO_ITEMS, Array, Layout
from five.agent.surgery.tensor_labels import field_labels

ARRAYS: tuple[Array, ...] = ("shared", "private", "shared_ids", "private_ids")

# The id space of each categorical field; target_slot is a unit slot plus one.
SPACES = {"units.unit": "unit", "units.animation": "animation", "allied_heroes.build": "build",
          "allied_heroes.next_item": "item", "hero_modifiers.modifier": "modifier",
          "unit_modifiers.modifier": "modifier", "abilities.ability": "ability", "items.item": "item",
          "pickups.pickup": "pickup", "nearby_map.area_effect": "area", "previous_action.action": "action",
          "previous_action.target_slot": "target_slot"}


def slot_labels(layout: Layout) -> tuple[str, ...]:
    """Return a label for each unit slot."""
    return tuple(f"{group.name}:{i}" for group in layout.groups.values() for i in range(group.count))


def cell_labels(layout: Layout) -> dict[Array, tuple[str, ...]]:
    """Return a label for each entry of each array's row: "block|instance|field[k]"."""
    found: dict[Array, tuple[str, ...]] = {}
    for array in ARRAYS:
        found[array] = tuple(f"{block}|{instance}|{label}" for block in layout.blocks
                             if layout.blocks[block].width(array)
                             for instance in instance_labels(layout, block)
                             for label in field_labels(layout, block, array))
    return found


def instance_labels(layout: Layout, block: str) -> tuple[str, ...]:
    """Return a label for each row of a block: its owner and its index within the owner."""
    return tuple(_instances(layout, block))


def _instances(layout: Layout, block: str) -> Iterator[str]:
    o, count = layout.observation, layout.blocks[block].instances
    slots, heroes = slot_labels(layout), 2 * layout.heroes
    per_owner = {"hero_modifiers": o.hero_modifiers, "abilities": HERO_ABILITIES, "items": HERO_ITEMS,
                 "unit_modifiers": o.unit_modifiers}
    for i in range(count):
        if block in ("units", "heroes", "allied_heroes"):
            yield slots[i]
        elif block in per_owner:
            owner = i // per_owner[block] + (heroes if block == "unit_modifiers" else 0)
            yield f"{slots[owner]}/{i % per_owner[block]}"
        elif block in ("minimap", "nearby_map"):
            side: int = getattr(o, block)
            yield f"{i // side},{i % side}/{side}"
        else:
            yield str(i)

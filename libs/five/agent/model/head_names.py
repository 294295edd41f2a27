"""The action heads by name: which there are, and which an action reads. Needs no torch."""

from dota.spaces import FOLLOW, MOVE, Action, MaskClass, TargetType
from five.agent.config import ModelConfig

DELAYS = 4
OFFSET_PAIRS = ("regular", "caster", "ward")

_PAIR_OF = {TargetType.UNIT_OFFSET: "regular", TargetType.TELEPORT: "regular", TargetType.POINT: "caster",
            TargetType.WARD: "ward"}
# What a split takes out of the head that it was cut from, by its name behind the dot.
_SPLIT_ACTIONS = {"move": MOVE, "follow": FOLLOW}
_SPLIT_CLASSES = {"attack": MaskClass.ATTACK, "enemy": MaskClass.ENEMY, "ally": MaskClass.ALLY}

# The pair of offsets that a split was cut from.
PARENT_PAIR = {"move": "caster", "follow": "regular"}


def offset_pairs(config: ModelConfig) -> tuple[str, ...]:
    """Names of the pairs of offset heads (x and y), the split ones behind the paper's three."""
    return OFFSET_PAIRS + tuple(name.removeprefix("offset.") for name in config.split_heads
                                if name.startswith("offset."))


def unit_splits(config: ModelConfig) -> tuple[str, ...]:
    """Names of the target-unit heads that were split from the regular one."""
    return tuple(name.removeprefix("unit.") for name in config.split_heads if name.startswith("unit."))


def offset_pair_of(action: Action, config: ModelConfig) -> str:
    """The pair of offset heads that the action reads; the first for one that reads none."""
    for name in offset_pairs(config)[len(OFFSET_PAIRS):]:
        if action.id == _SPLIT_ACTIONS[name]:
            return name
    return _PAIR_OF.get(action.target, OFFSET_PAIRS[0])


def unit_split_of(action: Action, config: ModelConfig) -> str:
    """The split target-unit head that the action reads; '' for the regular one."""
    for name in unit_splits(config):
        if action.mask == _SPLIT_CLASSES[name]:
            return name
    return ""

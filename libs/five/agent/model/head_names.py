"""Names of the action heads, and the heads that each action reads. It needs no torch."""

from dota.spaces import FOLLOW, MOVE, Action, MaskClass, TargetType
from five.agent.config import ModelConfig

DELAYS = 4  # one for each frame of a timestep, with the frameskip of Berner et al. 2019, table 2
OFFSET_PAIRS = ("regular", "caster", "ward")

_PAIR_OF = {TargetType.UNIT_OFFSET: "regular", TargetType.TELEPORT: "regular", TargetType.POINT: "caster",
            TargetType.WARD: "ward"}
# Actions that a split head takes over, by its name behind the dot.
_SPLIT_ACTIONS = {"move": MOVE, "follow": FOLLOW}
_SPLIT_CLASSES = {"attack": MaskClass.ATTACK, "enemy": MaskClass.ENEMY, "ally": MaskClass.ALLY}

# The pair of offset heads that a split head was copied from.
PARENT_PAIR = {"move": "caster", "follow": "regular"}


def offset_pairs(config: ModelConfig) -> tuple[str, ...]:
    """Return the names of the pairs of offset heads (x and y): the paper's three, then the split ones."""
    return OFFSET_PAIRS + tuple(name.removeprefix("offset.") for name in config.split_heads
                                if name.startswith("offset."))


def unit_splits(config: ModelConfig) -> tuple[str, ...]:
    """Return the names of the target-unit heads that were split from the regular one."""
    return tuple(name.removeprefix("unit.") for name in config.split_heads if name.startswith("unit."))


def offset_pair_of(action: Action, config: ModelConfig) -> str:
    """Return the pair of offset heads that the action reads; the first pair for an action without an offset."""
    for name in offset_pairs(config)[len(OFFSET_PAIRS):]:
        if action.id == _SPLIT_ACTIONS[name]:
            return name
    return _PAIR_OF.get(action.target, OFFSET_PAIRS[0])


def unit_split_of(action: Action, config: ModelConfig) -> str:
    """Return the split target-unit head that the action reads; '' for the regular one."""
    for name in unit_splits(config):
        if action.mask == _SPLIT_CLASSES[name]:
            return name
    return ""

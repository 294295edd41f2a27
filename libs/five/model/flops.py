"""How many floating-point operations a policy's forward pass takes."""

from torch import nn

from five.model.policy import Policy


def flops_per_team_step(policy: Policy, present: float = 1.0) -> float:
    """Operations of one team's forward pass, counting the matrix products (two for a multiply-add).

    ``present``: share of the slots of units and sets that are filled. Learning takes three times as much: the
    gradients of inputs and of weights are one product each. Scoring targets is left out: it is under a thousandth.
    """
    heroes, trunk = policy.layout.heroes, policy.trunk
    filled = {name: spec.block.instances * present for name, spec in trunk.reader.sets.items()}
    filled |= {tower.name: len(tower.slots) * present for tower in trunk.reader.towers}
    products = sum(filled[name] * _weights(layers) for name, layers in trunk.sets.items())
    for name, tower in trunk.towers.items():
        once = _weights(tower.get_submodule("first.shared"))
        products += filled[name] * (once + heroes * (_weights(tower) - once))
    for net, times in ((trunk.minimap, 1), (trunk.nearby_map, heroes)):
        for layer, positions in zip((net.first, net.second), net.positions, strict=True):
            products += times * positions * _weights(layer) if layer is not None else 0
    products += _weights(policy.join.shared) + heroes * _weights(policy.join.private)
    per_hero = sum(_weights(part) for part in (policy.core, policy.heads, policy.value, policy.auxiliary))
    products += heroes * (per_hero + policy.embeddings.table("action").numel())
    return 2.0 * products


def _weights(part: nn.Module) -> int:
    """Elements of its weight matrices: the multiply-adds of one row. Biases do not multiply, and the gate is a table
    that is looked up."""
    return sum(p.numel() for name, p in part.named_parameters() if p.dim() > 1 and not name.startswith("gate"))

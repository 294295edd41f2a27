"""The win head at a game's first observation, in two parts: what a team has itself, and what it knows of its enemies.

At the start of a game nobody has seen anybody: of all that a team's observation holds only the pool of the enemy heroes
follows from who they are, and all the rest from the team's own heroes. Up to the LSTM's input the network is a sum of
these two (`SplitLinear`), so that it can be computed once for each team and once for each set of enemies, and only what
is behind that sum for each pair of them.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from five.agent.model.cross_hero import cross_hero_pool
from five.agent.model.policy import Policy

ENEMIES = "enemy_heroes"  # the tower


class FactoredWinHead:
    """Of one policy. Everything is in float32, also of a policy that computes in bfloat16 otherwise."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        trunk = policy.trunk
        pools = trunk.private_width - policy.config.unit * (len(trunk.towers) + 1)  # after the map's part
        first = pools + policy.config.unit * list(trunk.towers).index(ENEMIES)
        self._enemies = slice(first, first + policy.config.unit)
        units = policy.core.units
        from_input, _, input_bias, state_bias = policy.core.lstm.parameters()
        # Of a state of zeros nothing is left to be forgotten: the gates enter, new and out remain.
        kept = torch.cat([torch.arange(k * units, (k + 1) * units) for k in (0, 2, 3)]).to(policy.device)
        self._gates = from_input.detach()[kept], (input_bias + state_bias).detach()[kept]

    @torch.no_grad()
    def parts(self, obs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """(own, enemies) float32 [B, H, I] of first observations, arrays leading with [B]: their sum is what the LSTM's
        input is before its activation."""
        policy = self._policy
        with torch.autocast(policy.device.type, enabled=False):
            inputs, trunk, floats, _ = policy._encode(obs)
            steps = trunk.private.shape[0]
            nobody = trunk.private.new_zeros(steps, policy.layout.heroes, policy.config.key)
            private = [trunk.private, floats["previous_action"], nobody]
            if policy.shows_action:
                private.append(policy.embeddings.embed("action", inputs.ids["previous_action"]))
            weights = policy.join.private.weight[:, self._enemies]
            enemies = F.linear(trunk.private[..., self._enemies], weights)
            return policy.join(trunk.shared, torch.cat(private, -1)) - enemies, enemies

    @torch.no_grad()
    def win(self, own: Tensor, enemies: Tensor) -> Tensor:
        """What the win head says of each hero, probabilities [B, H], of parts float32 [B, H, I]."""
        policy = self._policy
        with torch.autocast(policy.device.type, enabled=False):
            joined = cross_hero_pool(torch.relu(own + enemies), policy.config.pooled)
            enter, new, out = F.linear(joined, *self._gates).chunk(3, -1)
            h = out.sigmoid_() * (enter.sigmoid_() * new.tanh_()).tanh_()
            said: Tensor = policy.auxiliary.win_probability(h)[..., 0]
        return said.sigmoid()

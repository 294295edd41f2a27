"""The win head at a game's first observation, factored into a team's own part and its enemies' part.

At the start of a game no enemy is visible. Of a team's observation only the pool of the enemy heroes depends on who
they are; the rest depends on the team's own heroes. Up to the LSTM's input the network is a sum of these two parts
(`SplitLinear`). Each part is computed once, and only what follows the sum once per pair.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from five.agent.model.cross_hero import cross_hero_pool
from five.agent.model.policy import Policy

ENEMIES = "enemy_heroes"  # the unit group


class FactoredWinHead:
    """The factored win head of one policy. It computes in float32, also for a policy in bfloat16."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        trunk = policy.trunk
        pools = trunk.private_width - policy.config.unit * (len(trunk.towers) + 1)  # offset after the map
        first = pools + policy.config.unit * list(trunk.towers).index(ENEMIES)
        self._enemies = slice(first, first + policy.config.unit)
        units = policy.core.units
        from_input, _, input_bias, state_bias = policy.core.lstm.parameters()
        # With a state of zeros the forget gate has no effect: the input, cell and output gates remain.
        rows = torch.cat([torch.arange(k * units, (k + 1) * units) for k in (0, 2, 3)]).to(policy.device)
        self._gates = from_input.detach()[rows], (input_bias + state_bias).detach()[rows]

    @torch.no_grad()
    def encode(self, obs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return (own, enemies) float32 [B, H, I] of first observations [B, ...].

        Their sum is the LSTM's input before its activation.
        """
        policy = self._policy
        with torch.autocast(policy.device.type, enabled=False):
            inputs, trunk, floats, _ = policy._encode(obs)
            steps = trunk.private.shape[0]
            no_target = trunk.private.new_zeros(steps, policy.layout.heroes, policy.config.key)
            private = [trunk.private, floats["previous_action"], no_target]
            if policy.reads_last_action:
                private.append(policy.embeddings.embed("action", inputs.ids["previous_action"]))
            weights = policy.join.private.weight[:, self._enemies]
            enemies = F.linear(trunk.private[..., self._enemies], weights)
            return policy.join(trunk.shared, torch.cat(private, -1)) - enemies, enemies

    @torch.no_grad()
    def win_probability(self, own: Tensor, enemies: Tensor) -> Tensor:
        """Return the win probability of each hero [B, H] for parts float32 [B, H, I]."""
        policy = self._policy
        with torch.autocast(policy.device.type, enabled=False):
            joined = cross_hero_pool(torch.relu(own + enemies), policy.config.pooled)
            input_gate, cell, output_gate = F.linear(joined, *self._gates).chunk(3, -1)
            h = output_gate.sigmoid_() * (input_gate.sigmoid_() * cell.tanh_()).tanh_()
            logits: Tensor = policy.auxiliary.win_probability(h)[..., 0]
        return logits.sigmoid()

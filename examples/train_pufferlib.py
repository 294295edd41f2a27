"""PufferLib's own trainer on the game: an adapter of a few lines, and a policy that reads the mask.

    pip install pufferlib ./libs/dota
    python examples/train_pufferlib.py --train.device cpu --train.optimizer adam --train.learning-rate 0.001

PufferLib 3 gives each agent one array, so the mask follows the observation in the same row.
"""

import numpy as np
import pufferlib
import pufferlib.pytorch
import torch
from gymnasium.spaces import Box
from pufferlib import pufferl
from torch import nn

from dota.gymnasium_vector_env import DotaVectorEnv


class Games(pufferlib.PufferEnv):
    """Self-play in ``rows / 2`` games; a row is an observation with its mask."""

    def __init__(self, rows=32, buf=None, seed=0, **game):
        self.envs = DotaVectorEnv(rows, opponent="self", autoreset="same_step", game=game)
        view = self.envs.team.view
        self.single_observation_space = Box(-np.inf, np.inf, (view.flat.size + view.mask_width,), np.float32)
        self.single_action_space, self.num_agents = self.envs.single_action_space, rows
        super().__init__(buf)

    def reset(self, seed=None):
        seen, infos = self.envs.reset(seed=seed)
        np.concatenate([seen, infos["action_mask"]], 1, out=self.observations)
        return self.observations, []

    def step(self, actions):
        seen, self.rewards[:], self.terminals[:], self.truncations[:], infos = self.envs.step(actions)
        np.concatenate([seen, infos["action_mask"]], 1, out=self.observations)
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def close(self):
        self.envs.close()


class Policy(nn.Module):
    """Network with one hidden layer that never selects masked choices."""

    def __init__(self, env: Games, width: int = 128) -> None:
        super().__init__()
        self.actions = int(env.single_action_space.n)
        self.body = nn.Sequential(nn.Linear(env.single_observation_space.shape[0] - self.actions, width), nn.GELU())
        self.actor = pufferlib.pytorch.layer_init(nn.Linear(width, self.actions), std=0.01)
        self.critic = pufferlib.pytorch.layer_init(nn.Linear(width, 1), std=1)

    def forward_eval(self, row: torch.Tensor, state: object = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [n, N] and values [n, 1]."""
        hidden = self.body(row[:, : -self.actions])
        return self.actor(hidden).masked_fill(row[:, -self.actions :] == 0, -1e8), self.critic(hidden)

    forward = forward_eval  # without a recurrent part learning gives its segments as rows, too


def train(updates: int = 100, **game: float) -> int:
    """Trains for so many updates, with PufferLib's options from the command line; the updates that were made."""
    options = pufferl.load_config("default")
    env = Games(**game)
    horizon = options["train"]["bptt_horizon"]
    options["train"].update(env="five", batch_size=env.num_agents * horizon, minibatch_size=env.num_agents * horizon,
                            total_timesteps=updates * env.num_agents * horizon)
    trainer = pufferl.PuffeRL(options["train"], env, Policy(env).to(options["train"]["device"]))
    while trainer.epoch < updates:
        trainer.evaluate()
        trainer.train()
    trainer.close()
    return trainer.epoch


if __name__ == "__main__":
    print(f"{train()} updates")

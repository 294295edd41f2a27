"""PPO in one file, after CleanRL's, on the game with a flat observation and a masked choice.

    pip install torch gymnasium ./libs/dota
    python examples/ppo.py --minutes 10

Shadow Fiend plays itself in the middle lane: each game gives two rows of experience, one a side. A last hit earns 1, a
death costs 1. Hyperparameters are CleanRL's for Atari, untuned, but there are more rows, because the game steps many at
once faster. Before the first update, where the policy is uniform over what the mask allows, and at the end it plays
games against itself and against the scripted bot, and prints the last hits of a game.
"""

import argparse
import time

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import dota.gymnasium_env  # noqa: F401  registers Five/...

LEARNING_RATE, GAMMA, LAMBDA, CLIP, ENTROPY, VALUE, MAX_NORM = 2.5e-4, 0.99, 0.95, 0.1, 0.01, 0.5, 0.5
EPOCHS, MINIBATCH = 4, 512
REWARDS = {"last_hit": 1.0, "hero_death": -1.0}


def layer(inputs: int, outputs: int, gain: float = 2**0.5) -> nn.Linear:
    """A linear layer that starts as CleanRL's do."""
    made = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):
    """Two hidden layers, a masked choice and a value."""

    def __init__(self, observation: int, actions: int, width: int = 128) -> None:
        super().__init__()
        self.body = nn.Sequential(layer(observation, width), nn.ReLU(), layer(width, width), nn.ReLU())
        self.actor, self.critic = layer(width, actions, 0.01), layer(width, 1, 1.0)

    def forward(self, seen: torch.Tensor, mask: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        """Return the distribution over valid actions, and the value; inputs float32 [n, F] and int8 [n, N]."""
        hidden = self.body(seen)
        logits = self.actor(hidden).masked_fill(mask == 0, -1e8)
        return Categorical(logits=logits), self.critic(hidden).squeeze(-1)


def torch_of(array: np.ndarray) -> torch.Tensor:
    """The array as a tensor."""
    return torch.from_numpy(np.ascontiguousarray(array))


@torch.no_grad()
def last_hits(agent: Agent, opponent: str, rows: int, game: dict, seed: int = 1000) -> tuple[float, float]:
    """Last hits and minutes of a game against ``opponent``, means over the first game of each of ``rows`` rows."""
    envs = gymnasium.make_vec("Five/Mid-v0", num_envs=rows, opponent=opponent, game=game, autoreset="disabled")
    seen, infos = envs.reset(seed=seed)
    over = np.zeros(rows, bool)
    while not over.all():
        policy, _ = agent(torch_of(seen), torch_of(infos["action_mask"]))
        seen, _, terminated, truncated, infos = envs.step(policy.sample().numpy())
        over = terminated | truncated
    return float(infos["last_hits"].mean()), float(infos["game_time"].mean()) / 60


def measure(agent: Agent, when: str, rows: int, game: dict) -> float:
    """Prints the last hits of a game against each opponent; returns those against itself."""
    for opponent in ("scripted", "self"):
        found, length = last_hits(agent, opponent, rows, game)
        print(f"{when}: {found:.2f} last hits a game of {length:.1f} minutes against {opponent}", flush=True)
    return found


def train(minutes: float, rows: int, steps: int, updates: int | None, games: int, game: dict, seed: int
          ) -> tuple[float, float]:
    """Trains for so long, or so many updates; the last hits of a game against itself before and after."""
    torch.manual_seed(seed)
    envs = gymnasium.make_vec("Five/Mid-v0", num_envs=rows, opponent="self", threads=2, game=game,
                              rewards=REWARDS, zero_sum=False, autoreset="same_step")
    size, actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    agent = Agent(size, actions)
    optimizer = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE, eps=1e-5)
    before = measure(agent, "uniform over the mask", games, game)

    observations = torch.zeros(steps, rows, size)
    masks = torch.zeros(steps, rows, actions, dtype=torch.int8)
    chosen = torch.zeros(steps, rows, dtype=torch.int64)
    logs, earned, values = torch.zeros(3, steps, rows)
    ends = torch.zeros(steps, rows)
    seen, infos = envs.reset(seed=seed)
    start, update = time.monotonic(), 0
    while (update < updates) if updates else (time.monotonic() - start < 60 * minutes):
        for step in range(steps):
            observations[step], masks[step] = torch_of(seen), torch_of(infos["action_mask"])
            with torch.no_grad():
                policy, values[step] = agent(observations[step], masks[step])
                chosen[step] = policy.sample()
                logs[step] = policy.log_prob(chosen[step])
            seen, reward, terminated, truncated, infos = envs.step(chosen[step].numpy())
            earned[step], ends[step] = torch_of(reward).float(), torch_of(terminated | truncated).float()
        with torch.no_grad():
            following = agent(torch_of(seen), torch_of(infos["action_mask"]))[1]
            advantages, carried = torch.zeros(steps, rows), torch.zeros(rows)
            for step in reversed(range(steps)):
                going = 1 - ends[step]
                error = earned[step] + GAMMA * following * going - values[step]
                advantages[step] = carried = error + GAMMA * LAMBDA * going * carried
                following = values[step]
            returns = advantages + values
        flat = [t.flatten(0, 1) for t in (observations, masks, chosen, logs, advantages, returns)]
        for _ in range(EPOCHS):
            for part in torch.randperm(steps * rows).split(MINIBATCH):
                seen_of, mask_of, action, old, advantage, target = (t[part] for t in flat)
                policy, value = agent(seen_of, mask_of)
                ratio = (policy.log_prob(action) - old).exp()
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                gain = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
                loss = -gain - ENTROPY * policy.entropy().mean() + VALUE * 0.5 * (value - target).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), MAX_NORM)
                optimizer.step()
        update += 1
        if update % 20 == 0:
            spent = time.monotonic() - start
            print(f"update {update}, {spent:.0f} s, {update * rows * steps / spent:.0f} steps/s, "
                  f"reward {earned.mean():.4f}, entropy {policy.entropy().mean():.2f}", flush=True)
    after = measure(agent, f"after {update} updates", games, game)
    if before:
        print(f"against itself {after / before:.1f} times the uniform policy's", flush=True)
    return before, after


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="wall time of training")
    parser.add_argument("--updates", type=int, help="so many updates instead")
    parser.add_argument("--rows", type=int, default=64, help="rows of experience, two a game")
    parser.add_argument("--steps", type=int, default=64, help="steps of a row in an update")
    parser.add_argument("--games", type=int, default=100, help="rows of the measurement")
    parser.add_argument("--seconds", type=float, help="game time after which a game ends")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    train(asked.minutes, asked.rows, asked.steps, asked.updates, asked.games,
          {"max_game_seconds": asked.seconds} if asked.seconds else {}, asked.seed)

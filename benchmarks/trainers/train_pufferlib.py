"""Speed of PufferLib 3 on the games of ``laptop-1v1``, in its own process.

    PYTHONPATH=libs python benchmarks/trainers/train_pufferlib.py OUTPUT SECONDS [--learn]

With ``--learn`` it is also trained at settings to learn with, and its policy plays a bot in the end.

PufferLib 3 carries one array an agent, so that the mask travels behind the observation in the same row.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pufferlib
import pufferlib.models
import pufferlib.pytorch
import torch
from bot_games import Act, play_bot
from gymnasium.spaces import Box
from measurement import Speed
from pufferlib import pufferl
from self_play import LEARNING_RATE, ROWS, UNROLL, WIDTH, Array, Learning, self_play


class Games(pufferlib.PufferEnv):  # type: ignore[misc]
    """Self-play; a row is a hero's observation followed by its mask."""

    def __init__(self, rows: int, buf: Any = None) -> None:
        self._games = self_play(rows)
        view = self._games.team.view
        self.single_observation_space = Box(-np.inf, np.inf, (view.flat.size + view.mask_width,), np.float32)
        self.single_action_space = self._games.single_action_space
        self.num_agents = self.agents_per_batch = rows
        super().__init__(buf)

    def reset(self, seed: int | None = None) -> tuple[Array, list[Any]]:
        """Start all games."""
        observations, infos = self._games.reset(seed=seed)
        np.concatenate([observations, infos["action_mask"]], 1, out=self.observations)
        return self.observations, []

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, list[Any]]:
        """Play one step of all games."""
        observations, self.rewards[:], self.terminals[:], self.truncations[:], infos = self._games.step(actions)
        np.concatenate([observations, infos["action_mask"]], 1, out=self.observations)
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def close(self) -> None:
        """Close the games."""
        self._games.close()


class MaskedPolicy(pufferlib.models.Default):  # type: ignore[misc]
    """PufferLib's default network, which never selects masked choices."""

    def __init__(self, env: Games) -> None:
        super().__init__(env, WIDTH)
        actions = int(env.single_action_space.n)
        self._features = env.single_observation_space.shape[0] - actions
        self.encoder = torch.nn.Sequential(torch.nn.Linear(self._features, WIDTH), torch.nn.GELU())
        self._forbidden: torch.Tensor | None = None

    def encode_observations(self, observations: torch.Tensor, state: Any = None) -> torch.Tensor:
        """Encode the observations [n, F + A], and hold their masks for `decode_actions`."""
        self._forbidden = observations[:, self._features:] == 0
        encoded: torch.Tensor = self.encoder(observations[:, : self._features])
        return encoded

    def decode_actions(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits [n, A] and values [n, 1]."""
        assert self._forbidden is not None
        return self.decoder(hidden).masked_fill(self._forbidden, -1e8), self.value(hidden)


def actor(policy: pufferlib.models.LSTMWrapper, rows: int) -> Act:
    """Return the policy at the start of ``rows`` games."""
    state: dict[str, Any] = {"lstm_h": torch.zeros(rows, WIDTH), "lstm_c": torch.zeros(rows, WIDTH)}

    def act(observations: Array, masks: Array) -> Array:
        seen = torch.from_numpy(np.concatenate([observations, masks], 1, dtype=np.float32))
        with torch.no_grad():
            logits, _ = policy.forward_eval(seen, state)
        found: Array = pufferlib.pytorch.sample_logits(logits)[0].numpy()
        return found

    return act


def main(output: Path, seconds: float, learn: bool) -> None:
    """Train, then write the speed to ``output``, and with ``learn`` the results of games against a bot."""
    sys.argv = sys.argv[:1]  # PufferLib reads its options from the command line
    options = pufferl.load_config("default")
    options["train"].update(
        env="laptop-1v1", device="cpu", optimizer="adam", learning_rate=LEARNING_RATE, use_rnn=True,
        bptt_horizon=UNROLL, batch_size=ROWS * UNROLL, minibatch_size=ROWS * UNROLL, update_epochs=1,
        total_timesteps=10**9, checkpoint_interval=10**9)
    if learn:
        own = Learning()
        options["train"].update(minibatch_size=own.minibatch, ent_coef=own.entropy, gamma=own.discount,
                                gae_lambda=own.gae_lambda)
    env = Games(ROWS)
    policy = pufferlib.models.LSTMWrapper(env, MaskedPolicy(env), WIDTH, WIDTH)
    trainer = pufferl.PuffeRL(options["train"], env, policy)
    speed = Speed(seconds)
    while not speed.observe(trainer.global_step):
        trainer.evaluate()
        trainer.train()
    trainer.utilization.stop()
    games = play_bot(lambda env: actor(policy, env.num_envs)) if learn else {}
    speed.write(output, parameters=trainer.model_size, hero_steps=speed.hero_steps, **games)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), "--learn" in sys.argv[3:])

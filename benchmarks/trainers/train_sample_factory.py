"""Speed of Sample Factory 2 on the games of ``laptop-1v1``.

    PYTHONPATH=libs python benchmarks/trainers/train_sample_factory.py OUTPUT SECONDS [--learn]

Two sampling processes play half of the rows each. Sample Factory 2.1 knows no masks: a choice that is not allowed
does nothing. With ``--learn`` it is also trained at settings to learn with, and its policy plays a bot in the end.
"""

import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from bot_games import Act, play_bot
from measurement import Speed
from sample_factory.algo.learning.learner import Learner
from sample_factory.algo.runners.runner import AlgoObserver, Runner
from sample_factory.algo.utils.rl_utils import prepare_and_normalize_obs
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.model.actor_critic import create_actor_critic
from sample_factory.model.model_utils import get_rnn_size
from sample_factory.train import make_runner
from self_play import LEARNING_RATE, ROWS, UNROLL, WIDTH, Array, Learning, self_play

WORKERS = 2


class Games(gymnasium.Env[Array, Any]):
    """Self-play as one batched environment of many agents."""

    is_multiagent = True

    def __init__(self, rows: int, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self._games = self_play(rows)
        self.num_agents = rows
        self.observation_space = self._games.single_observation_space
        self.action_space = self._games.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, Any]:
        """Start all games."""
        observations, _ = self._games.reset(seed=seed)
        return observations, [{} for _ in range(self.num_agents)]

    def step(self, actions: Any) -> tuple[Array, Any, Any, Any, Any]:
        """Play one step of all games."""
        observations, rewards, terminated, truncated, _ = self._games.step(np.asarray(actions).reshape(-1))
        return observations, rewards, terminated, truncated, [{} for _ in range(self.num_agents)]


def make(name: str, cfg: Any = None, env_config: Any = None, render_mode: str | None = None) -> Games:
    """Return the games of one sampling process."""
    return Games(ROWS // WORKERS, render_mode)


class Observer(AlgoObserver):
    """Stops training when the speed was measured for long enough."""

    def __init__(self, speed: Speed) -> None:
        self.speed = speed
        self._learned = 0

    def on_start(self, runner: Runner) -> None:
        """Begin to read the learner's count."""
        threading.Thread(target=self._watch, args=(runner,), name="speed", daemon=True).start()

    def _watch(self, runner: Runner) -> None:
        while True:
            learned = runner.env_steps.get(0, 0)
            if learned != self._learned:
                self._learned = learned
                if self.speed.observe(learned):
                    runner.cfg.train_for_env_steps = 0
                    return
            threading.Event().wait(0.1)


def trained(cfg: Any, env: Any) -> Any:
    """Return the network of the last checkpoint of a training."""
    spaces = gymnasium.spaces.Dict({"obs": env.single_observation_space}), env.single_action_space
    network = create_actor_critic(cfg, *spaces)
    network.eval()
    checkpoints = Learner.get_checkpoints(Learner.checkpoint_dir(cfg, 0), "checkpoint_*")
    # The best mean reward in it is a numpy number, which torch.load refuses unless its types are named.
    with torch.serialization.safe_globals([np.core.multiarray.scalar, np.dtype, type(np.dtype(np.float64)),
                                           type(np.dtype(np.float32))]):
        network.load_state_dict(Learner.load_checkpoint(checkpoints, torch.device("cpu"))["model"])
    return network


def actor(cfg: Any, env: Any) -> Act:
    """Return the trained policy at the start of the rows' games."""
    network, state = trained(cfg, env), [torch.zeros(env.num_envs, get_rnn_size(cfg))]

    def act(observations: Array, masks: Array) -> Array:
        with torch.no_grad():
            seen = prepare_and_normalize_obs(network, {"obs": torch.from_numpy(observations)})
            chosen = network(seen, state[0])
        state[0] = chosen["new_rnn_states"]
        found: Array = chosen["actions"].numpy().reshape(-1)
        return found

    return act


def main(output: Path, seconds: float, learn: bool) -> None:
    """Train, then write the speed to ``output``, and with ``learn`` the results of games against a bot."""
    register_env("laptop-1v1", make)
    with tempfile.TemporaryDirectory() as folder:
        arguments = {
            "env": "laptop-1v1", "experiment": "speed", "train_dir": folder, "device": "cpu", "seed": 1,
            "batched_sampling": True, "num_workers": WORKERS, "num_envs_per_worker": 1, "worker_num_splits": 1,
            "rollout": UNROLL, "recurrence": UNROLL, "batch_size": ROWS * UNROLL // WORKERS, "num_epochs": 1,
            "use_rnn": True, "rnn_type": "lstm", "rnn_size": WIDTH, "encoder_mlp_layers": WIDTH,
            "normalize_input": False, "learning_rate": LEARNING_RATE, "env_frameskip": 1,
            "decorrelate_experience_max_seconds": 0, "log_to_file": False, "save_every_sec": 10**6,
            "use_record_episode_statistics": False}
        if learn:
            own = Learning()
            arguments |= {"batch_size": own.minibatch, "exploration_loss_coeff": own.entropy, "gamma": own.discount,
                          "gae_lambda": own.gae_lambda}
        options = [f"--{name}={value}" for name, value in arguments.items()]
        parser, _ = parse_sf_args(options)
        cfg, runner = make_runner(parse_full_cfg(parser, options))
        observer = Observer(Speed(seconds))
        runner.register_observer(observer)
        runner.init()
        runner.run()
        games = play_bot(lambda env: actor(cfg, env)) if learn else {}
        observer.speed.write(output, hero_steps=observer.speed.hero_steps, **games)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), "--learn" in sys.argv[3:])

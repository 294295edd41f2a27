"""Sample Factory's own trainer on the game: it takes the environment as it is.

    pip install sample-factory ./libs/dota
    python examples/train_sample_factory.py --env=Five/Mid-v0 --device=cpu --experiment=five

Sample Factory 2.1 has no action masks: a masked action does nothing, and the policy learns which are masked.
"""

import sys

import gymnasium
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import run_rl


def make(name, cfg=None, env_config=None, render_mode=None):
    """The environment of that id."""
    return gymnasium.make(name, render_mode=render_mode)


def train(arguments: list[str]) -> int:
    """Trains as the arguments say; 0 when it went to its end."""
    register_env("Five/Mid-v0", make)
    parser, _ = parse_sf_args(arguments)
    return int(run_rl(parse_full_cfg(parser, arguments)))


if __name__ == "__main__":
    sys.exit(train(sys.argv[1:]))

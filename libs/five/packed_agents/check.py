"""Check game of a packed agent: the first timesteps of a game against a bot, which end in a known state.

The native code for any processor plays it, because sums in another order would choose other actions now and then.
"""

import numpy as np
import torch

from dota.config import GameConfig, evaluation_game
from dota.spaces import ActionPart
from dota.vec_game import BOTS, TEAMS, Controller, VecGame, Winner
from five.agent.compute import torch_threads
from five.agent.model.native_actor import NativeActor, is_supported
from five.agent.model.policy import Policy
from five.agent.surgery import AgentSpec
from five.packed_agents.card import CheckGame

AGAINST, SEED, TIMESTEPS = "scripted-easy", 5, 1000
PRODUCTS = 2_000_000_000  # multiplications of a check game: some seconds of one core


def check_timesteps(spec: AgentSpec) -> int:
    """Return the length of an agent's check game: fewer timesteps for a large network."""
    return min(TIMESTEPS, max(TIMESTEPS // 10, PRODUCTS // (spec.parameters * spec.game.heroes_per_team)))


def play_check(policy: Policy, game: GameConfig, against: str = AGAINST, seed: int = SEED, timesteps: int = TIMESTEPS
               ) -> CheckGame:
    """Play the Radiant against a bot for ``timesteps``, or to the game's end if that is earlier. Return the outcome.

    Equal arguments give equal outcomes on every processor where the native actor supports the policy.
    """
    games = VecGame(evaluation_game(game), 1)
    games.controllers[0] = Controller.POLICY, BOTS[against]
    games.reset_as(0, seed)
    actions = np.zeros((1, TEAMS, games.layout.heroes, len(ActionPart)), np.int16)
    generator = torch.Generator().manual_seed(seed)
    played, before = 0, policy.actor
    with torch_threads(1):
        try:
            policy.actor = NativeActor(policy, "portable") if is_supported(policy) else None
            state = policy.initial_state(1)
            while played < timesteps and games.winner[0] == Winner.RUNNING:
                seen = {name: torch.from_numpy(array[0, :1]) for name, array in games.obs.items()}
                acted = policy.act(seen, state, generator=generator)
                state = acted.state
                actions[0, 0] = acted.actions[0].numpy()
                games.step(actions)
                played += 1
        finally:
            policy.actor = before
    return CheckGame(against=against, seed=seed, timesteps=played, hash=f"{games.hash(0):016x}")

"""Check games repeat to the bit and notice other weights."""

import torch

from five.packed_agents.check import play_check
from five.packed_agents.folder import PackedAgent


def test_a_loaded_agent_repeats_its_check_game(shared_agent: PackedAgent) -> None:
    check = shared_agent.card.check
    assert check.against == "scripted-easy" and check.timesteps > 70
    policy = shared_agent.policy()
    actor = policy.actor
    threads = torch.get_num_threads()
    for _ in range(2):
        assert play_check(policy, shared_agent.config.game) == check
    assert policy.actor is actor and torch.get_num_threads() == threads


def test_other_weights_play_another_game(shared_agent: PackedAgent) -> None:
    policy = shared_agent.policy()
    policy.value.weight.mul_(2.0)  # the value chooses nothing
    assert play_check(policy, shared_agent.config.game) == shared_agent.card.check
    policy.heads.primary.weight.mul_(100.0)
    assert play_check(policy, shared_agent.config.game).hash != shared_agent.card.check.hash


def test_fewer_timesteps_and_another_seed_end_elsewhere(shared_agent: PackedAgent) -> None:
    policy, game, check = shared_agent.policy(), shared_agent.config.game, shared_agent.card.check
    short = play_check(policy, game, timesteps=9)
    assert short.timesteps == 9 and short.hash != check.hash
    assert play_check(policy, game, seed=6).hash != check.hash

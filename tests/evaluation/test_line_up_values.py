"""Win probabilities of line-ups combined from each team's part equal those of real games."""

import numpy as np
import pytest
import torch

from dota.config import GameConfig
from dota.spaces import Layout
from five.agent.draft.leaves import HeroPool
from five.agent.model.factored_win_head import FactoredWinHead
from five.agent.model.policy import Policy
from five.evaluation import line_up_values
from five.evaluation.draft_table import make
from five.evaluation.line_up_values import FactoredReader, PerGameReader, factored_reader
from five.run.load import load

HEROES = ["sniper", "lion", "nevermore", "sven", "viper", "crystal_maiden", "axe", "riki"]


def policy_of(heroes: list[str], team: int, precision: str = "float32") -> tuple[Policy, GameConfig, HeroPool]:
    """A policy that tells line-ups apart as a trained one does: its weights are drawn, and its win head is loud."""
    config = load("laptop-5v5")
    game = config.game.model_copy(update={"hero_pool": heroes, "heroes_per_team": team})
    torch.manual_seed(1)
    policy = Policy(Layout(game), config.model.model_copy(update={"precision": precision})).eval().requires_grad_(False)
    for weight in (policy.join.private.weight, policy.core.lstm.weight_ih_l0):
        weight.mul_(5.0)
    head = policy.auxiliary.win_probability[2]
    assert isinstance(head, torch.nn.Linear)
    head.weight.mul_(20.0)
    return policy, game, HeroPool.from_game(heroes, team)


@pytest.mark.parametrize(("heroes", "team", "shared"), [(HEROES, 3, False), (HEROES[:5], 3, True)])
def test_factored_values_match_real_games(heroes: list[str], team: int, shared: bool) -> None:
    policy, game, pool = policy_of(heroes, team)
    assert pool.shared == shared
    every = np.arange(pool.line_ups)
    games = PerGameReader(policy, game, pool).read(every)
    assert games.std() > 0.005 and np.unique(games).size > 0.8 * len(every)
    np.testing.assert_allclose(FactoredReader(policy, game, pool, batch=7).read(every), games, atol=2e-6)


def test_factored_reader_is_used_for_large_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, game, pool = policy_of(HEROES, 3)
    assert pool.line_ups == 560 and factored_reader(policy, game, pool) is not None
    in_parts = make(policy, game, pool, {"version": 1}, threads=2)
    for worth, used in ((5, True), (6, False)):  # 560 line-ups, 2 * 56 games of the parts
        monkeypatch.setattr(line_up_values, "MIN_LINE_UPS_PER_GAME", worth)
        assert (factored_reader(policy, game, pool) is not None) == used
    np.testing.assert_allclose(in_parts.win, make(policy, game, pool, {"version": 1}).win, atol=2e-6)


def test_inaccurate_parts_are_not_used(
        monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    policy, game, pool = policy_of(HEROES, 3)
    parts = FactoredWinHead.encode

    def wrong(self: FactoredWinHead, obs: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        own, enemies = parts(self, obs)
        return own, torch.zeros_like(enemies)  # as if enemies showed elsewhere than in their pool

    monkeypatch.setattr(FactoredWinHead, "encode", wrong)
    assert factored_reader(policy, game, pool) is None
    assert "differ from real games" in caplog.text


def test_sets_of_line_ups_match_their_teams() -> None:
    for pool in (HeroPool(tuple(HEROES), 3), HeroPool(tuple(HEROES[:5]), 3, shared=True)):
        every = np.arange(pool.line_ups)
        sides = pool.sets(every)
        for side in range(2):
            np.testing.assert_array_equal(pool.radiant.members[sides[side]], pool.teams(every)[:, side])


def test_a_policy_in_bfloat16_is_read_in_float32() -> None:
    policy, game, pool = policy_of(HEROES[:5], 3, precision="bfloat16")
    exact, _, _ = policy_of(HEROES[:5], 3)
    every = np.arange(pool.line_ups)
    found = FactoredReader(policy, game, pool).read(every)
    np.testing.assert_allclose(found, PerGameReader(exact, game, pool).read(every), atol=2e-6)
    assert float(np.abs(found - PerGameReader(policy, game, pool).read(every)).max()) > 0

from typing import Any

import numpy as np
import pytest
import torch

from dota.config import GameConfig
from dota.replay import Replay
from dota.spaces import Layout
from dota.vec_game import STATS
from five.agent.model.policy import Policy
from five.evaluation.bot_games import quick_game_config
from five.evaluation.match import Contestant, MatchGame, PairedMatch, play, play_planned
from five.run.load import load
from tests.agent.model_cases import SMALL

torch.set_num_threads(1)


def small_game(**changes: object) -> GameConfig:
    """The laptop's 1v1 with short games."""
    return load("laptop-1v1").game.model_copy(update={"max_game_seconds": 40.0, "start_seconds": -5.0, **changes})


def policy(game: GameConfig, seed: int) -> Policy:
    torch.manual_seed(seed)
    return Policy(Layout(game), SMALL).eval().requires_grad_(False)


def test_pairs_are_played_from_both_sides() -> None:
    match = play(small_game(), Contestant.bot("scripted"), Contestant.bot("random"), pairs=3, seed=5, concurrent=4)
    assert sorted((g.pair, g.side) for g in match.games) == [(p, s) for p in range(3) for s in (0, 1)]
    assert all(g.seconds > 0 for g in match.games)
    assert sum(match.counts) == 6
    ours, theirs = match.statistics()
    assert ours["last_hits"] > theirs["last_hits"]  # the random bot gets none in forty seconds


def test_a_contestant_against_itself_scores_half_in_every_pair() -> None:
    """Same seed, sides swapped, a bot without randomness of its own: what one side wins the other loses."""
    game = small_game()
    match = play(game, Contestant.bot("scripted"), Contestant.bot("scripted"), pairs=4, seed=2)
    assert match.pair_scores().tolist() == [0.5] * 4
    first, second = match.statistics()
    assert first == pytest.approx(second)


def test_winner_scores_from_either_side() -> None:
    seen: list[MatchGame] = []
    hard, random = Contestant.bot("scripted-hard"), Contestant.bot("random")
    match = play(quick_game_config(), hard, random, pairs=1, seed=3, concurrent=2, on_game=seen.append)
    assert match.counts == (2, 0, 0) and match.score == 1 and match.pair_scores().tolist() == [1.0]
    assert {(g.pair, g.side) for g in seen} == {(0, 0), (0, 1)} and seen == match.games
    for game in match.games:
        ours, theirs = (dict(zip(STATS, row, strict=True)) for row in game.statistics.tolist())
        assert ours["last_hits"] > theirs["last_hits"] and ours["xp"] > theirs["xp"]
    turned = play_planned(quick_game_config(), random, hard, [(0, 1)], seed=3)
    (won,) = (game for game in match.games if game.side == 0)
    assert turned.counts == (0, 0, 1) and turned.seconds == won.seconds
    np.testing.assert_array_equal(turned.games[0].statistics, won.statistics[::-1])


@pytest.mark.parametrize("concurrent", [1, 4])
def test_each_game_starts_with_a_new_state(monkeypatch: pytest.MonkeyPatch, concurrent: int) -> None:
    game = small_game(max_game_seconds=0.5, start_seconds=-0.5)
    act, starts = Policy.act, list[int]()

    def watched(self: Policy, obs: Any, state: dict[str, torch.Tensor], **options: Any) -> Any:
        starts.append(int((state["h"].flatten(1) == 0).all(1).sum()))
        return act(self, obs, state, **options)

    monkeypatch.setattr(Policy, "act", watched)
    match = play(game, Contestant("a", policy(game, 1)), Contestant.bot("random"), pairs=2, concurrent=concurrent)
    assert sum(starts) == len(match.games) == 4 and len(starts) > 2 * 4 / concurrent


def test_seed_is_zero_unless_given() -> None:
    game, bots = small_game(max_game_seconds=10.0), [Contestant.bot("scripted"), Contestant.bot("random")]
    plain, zero, one = (play(game, bots[0], bots[1], pairs=1, **seed) for seed in ({}, {"seed": 0}, {"seed": 1}))
    assert [g.statistics.tolist() for g in plain.games] == [g.statistics.tolist() for g in zero.games]
    assert [g.statistics.tolist() for g in plain.games] != [g.statistics.tolist() for g in one.games]


def test_means_are_over_games_and_contestants() -> None:
    rows = [np.arange(2 * len(STATS), dtype=np.float32).reshape(2, -1) * k for k in (1, 3)]
    match = PairedMatch("a", "b", [MatchGame(7, 0, 1.0, 10.0, rows[0]), MatchGame(7, 1, 0.5, 30.0, rows[1]),
                                   MatchGame(2, 0, 0.0, 20.0, rows[0] * 2)])
    ours, theirs = match.statistics()
    assert list(ours.values()) == [2.0 * i for i in range(len(STATS))] and list(ours) == list(STATS)
    assert list(theirs.values()) == [2.0 * (i + len(STATS)) for i in range(len(STATS))]
    assert match.seconds == 20 and match.counts == (1, 1, 1) and match.score == 0.5
    assert match.pair_scores().tolist() == [0.0, 0.75]


def test_equal_arguments_give_equal_games() -> None:
    game = small_game(max_game_seconds=5.0)
    a, b = Contestant("a", policy(game, 1)), Contestant("b", policy(game, 2))
    one, two = (play(game, a, b, pairs=2, seed=9, concurrent=2) for _ in range(2))
    assert [g[:4] for g in one.games] == [g[:4] for g in two.games]
    np.testing.assert_array_equal([g.statistics for g in one.games], [g.statistics for g in two.games])


def test_parts_of_a_match_sample_other_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal numbers would make the pairs of two parts alike, and the interval over pairs too narrow."""
    act, numbers = Policy.act, list[float]()

    def watched(self: Policy, obs: Any, state: Any, *, generator: torch.Generator, **options: Any) -> Any:
        numbers.append(float(torch.rand(1, generator=generator.clone_state())))
        return act(self, obs, state, generator=generator, **options)

    monkeypatch.setattr(Policy, "act", watched)
    game = small_game(max_game_seconds=0.5, start_seconds=-0.5)
    player, bot = Contestant("a", policy(game, 1)), Contestant.bot("random")
    firsts: list[float] = []
    for planned in ([(0, 0), (0, 1)], [(4, 0), (4, 1)], [(4, 1)], [(0, 0)]):
        numbers.clear()
        play_planned(game, player, bot, planned, seed=3)
        firsts.append(numbers[0])
    assert len(set(firsts)) == 3 and firsts[0] == firsts[3]


def test_greedy_play_is_deterministic() -> None:
    game = small_game(max_game_seconds=5.0)
    a = Contestant("a", policy(game, 1))

    def greedy(draws: int) -> list[MatchGame]:
        torch.manual_seed(draws)
        return play(game, a, Contestant.bot("scripted"), pairs=1, seed=4, greedy=True).games

    np.testing.assert_array_equal([g.statistics for g in greedy(0)], [g.statistics for g in greedy(1)])


def test_the_first_game_can_be_recorded() -> None:
    kept: list[tuple[Replay, int]] = []
    play(small_game(), Contestant.bot("scripted"), Contestant.bot("random"), pairs=1, seed=1,
         record=lambda replay, final: kept.append((replay, final)))
    assert len(kept) == 1


def test_policy_of_another_layout_is_refused() -> None:
    other = small_game(observation=small_game().observation.model_copy(update={"allied_creeps": 3}))
    with pytest.raises(ValueError, match="layout"):
        play(small_game(), Contestant("a", policy(other, 0)), Contestant.bot("random"), pairs=1)


def test_unknown_bots_and_empty_matches_are_refused() -> None:
    with pytest.raises(ValueError, match="scripted-easy"):
        Contestant.bot("hard")
    with pytest.raises(ValueError, match="at least 1"):
        play(small_game(), Contestant.bot("random"), Contestant.bot("random"), pairs=0)


def test_interval_is_computed_from_pairs() -> None:
    statistics = np.zeros((2, 9), np.float32)
    level = PairedMatch("a", "b", [MatchGame(p, s, float(s), 1.0, statistics) for p in range(50) for s in (0, 1)])
    luck = PairedMatch("a", "b", [MatchGame(p, s, float(p % 2), 1.0, statistics) for p in range(50) for s in (0, 1)])
    assert level.score == luck.score == 0.5
    narrow, wide = (m.interval()[1] - m.interval()[0] for m in (level, luck))
    assert narrow < 0.1 < 0.25 < wide  # a hundred games of a coin that falls alike for both games of a pair
    sure = PairedMatch("a", "b", [MatchGame(p, 0, 1.0, 1.0, statistics) for p in range(20)])
    assert sure.interval()[0] < 0.9 and sure.interval()[1] == 1.0

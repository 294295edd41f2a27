import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from five.agent.config import LeagueConfig
from five.agent.league import ActiveVersion, League, OpponentChoice, PoolOpponent

PAPER = LeagueConfig()


def make_league(qualities: list[float], config: LeagueConfig = PAPER) -> League:
    return League.load(config, {"format": 1, "last_added": 10 * len(qualities), "opponents": [
        [10 * (i + 1), quality, 0, 0] for i, quality in enumerate(qualities)]})


def qualities(league: League) -> list[float]:
    return [o.quality for o in league.opponents]


def publish(league: League, version: int) -> bool:
    newcomer = league.candidate(version)
    if newcomer is not None:
        league.set_opponent(newcomer)
        league.last_added = version
    return newcomer is not None


def play(league: League, version: int, won: bool) -> None:
    after = league.after_game(version, league.win_drop(version) if won else None)
    assert after is not None
    league.set_opponent(after)


@pytest.mark.parametrize(("published", "added"), [
    (range(1, 45), [1, 11, 21, 31, 41]), ((3, 9, 19, 25, 40), [3, 19, 40])])
def test_version_joins_after_ten_others(published: list[int], added: list[int]) -> None:
    league = League(PAPER)
    assert [v for v in published if publish(league, v)] == added
    assert [o.version for o in league.opponents] == added and not publish(league, added[-1])


def test_new_opponent_gets_the_highest_quality() -> None:
    league = make_league([-3.0, -1.0, 0.0, -2.0])
    assert league.candidate(99) == PoolOpponent(99, 0.0) == League(PAPER).candidate(99)


def test_win_lowers_quality_by_equation_14() -> None:
    league = make_league([0.0, 0.0, 0.0, 0.0])
    play(league, 20, won=True)
    assert qualities(league) == pytest.approx([0, -0.01, 0, 0])
    # softmax(0, -ln 3) = (3/4, 1/4); N = 2: η / (2 * 1/4) = 0.02 and η / (2 * 3/4) = 1/150
    league = make_league([0.0, -math.log(3)])
    assert league.probabilities() == pytest.approx({10: 0.75, 20: 0.25})
    play(league, 20, won=True)
    assert qualities(league) == pytest.approx([0, -math.log(3) - 0.02])
    league = make_league([0.0, -math.log(3)])
    play(league, 10, won=True)
    assert qualities(league) == pytest.approx([0, -math.log(3) + 1 / 150])  # shifted: the best is 0


def test_loss_changes_no_quality() -> None:
    league = make_league([0.0, -1.0])
    play(league, 20, won=False)
    assert qualities(league) == [0, -1]
    assert [(o.games, o.wins) for o in league.opponents] == [(0, 0), (1, 0)]
    play(league, 20, won=True)
    play(league, 20, won=True)
    assert [(o.games, o.wins) for o in league.opponents] == [(0, 0), (3, 2)]


@pytest.mark.parametrize("top", [0.0, -900.0, -1e6])
def test_probabilities_depend_only_on_differences(top: float) -> None:
    """In a long run all qualities have fallen far below 0, where their exponentials are 0."""
    assert list(make_league([top, top - math.log(3)]).probabilities().values()) == pytest.approx([0.75, 0.25])


def test_quality_drop_is_bounded() -> None:
    league = make_league([0.0, -700.0, -2000.0])
    play(league, 20, won=True)
    play(league, 30, won=True)
    assert qualities(league) == [0, -701, -2001]


def test_removed_version_is_not_played() -> None:
    league = make_league([0.0, -1.0])
    league.remove(10)
    assert qualities(league) == [0] and 10 not in league and 20 in league
    assert league.after_game(10, 0.01) is None
    with pytest.raises(KeyError):
        league.probability(10)


def test_opponents_follow_the_paper_shares() -> None:
    league = make_league([0.0, -1.0, -2.0])
    rng = np.random.default_rng(0)
    choices = [league.choose(rng) for _ in range(20_000)]
    past = [c.past for c in choices if c.past is not None]
    assert len(past) / len(choices) == pytest.approx(0.2, abs=0.01)
    for version, p in league.probabilities().items():
        assert past.count(version) / len(past) == pytest.approx(p, abs=0.03)
    assert np.mean([c.side for c in choices]) == pytest.approx(0.5, abs=0.015)


def test_empty_pool_gives_the_newest_version() -> None:
    rng = np.random.default_rng(0)
    choices = [League(PAPER).choose(rng) for _ in range(50)]
    assert {(choice.past, choice.probability) for choice in choices} == {(None, 1.0)}
    with pytest.raises(LookupError, match="empty"):
        League(PAPER).sample(0.5)


def test_same_seed_gives_the_same_choices() -> None:
    league = make_league([0.0, -1.0, -2.0])
    choices = [[league.choose(np.random.default_rng(5)) for _ in range(20)] for _ in range(2)]
    assert choices[0] == choices[1]


def test_sample_follows_cumulative_probabilities() -> None:
    league = make_league([0.0, math.log(2), 0.0, -3000.0])
    uniforms = (0.0, 0.24, 0.26, 0.74, 0.76, math.nextafter(1, 0), 1.0)
    assert [league.sample(u) for u in uniforms] == [10, 10, 20, 20, 30, 30, 30]


@pytest.mark.parametrize("count", [63, 64, 65, 129, 300])
def test_pool_grows_beyond_its_first_array(count: int) -> None:
    league = League(PAPER)
    for version in range(count):
        league.set_opponent(PoolOpponent(version, float(-version)))
        assert len(league.probabilities()) == version + 1
    league.set_opponent(PoolOpponent(0, -1.0))
    league.remove(count - 1)
    league.set_opponent(PoolOpponent(count, -2.0))
    assert qualities(league) == [0.0, *(1.0 - version for version in range(1, count - 1)), -1.0]
    weights = np.exp(qualities(league))
    assert list(league.probabilities().values()) == pytest.approx((weights / weights.sum()).tolist())
    assert len(league._qualities) <= 2 * count + 64


def test_win_drop_is_that_of_the_assignment_and_bounded_in_a_turn() -> None:
    """η / (N p) with η = 0.01 and N = 2. The game was assigned with p = 0.1, the present one is 0.75."""
    league = make_league([0.0, -math.log(3)])
    assert league.win_drop(10) == pytest.approx(0.01 / (2 * 0.75))
    assert league.win_drop(10, OpponentChoice(10, 0, 0.1)) == pytest.approx(0.05)
    active = ActiveVersion(10, 0.1, 3, dropped=PAPER.max_quality_drop - 0.02)
    assert league.win_drop(10, OpponentChoice(10, 0, 0.1, active)) == pytest.approx(0.02)
    active.dropped = PAPER.max_quality_drop + 1
    assert league.win_drop(10, OpponentChoice(10, 0, 0.1, active)) == 0.0
    active.dropped = 0.0
    assert league.win_drop(10, OpponentChoice(10, 0, 0.1, active)) == pytest.approx(0.05)


@pytest.mark.parametrize("version", [-1, 0])
def test_versions_count_from_0(version: int) -> None:
    league = League(PAPER)
    if version < 0:
        with pytest.raises(ValueError, match="at least 0"):
            league.candidate(version)
    else:
        assert league.candidate(version) == PoolOpponent(0, 0.0)


def test_dump_and_load_restore_the_pool() -> None:
    league = League(PAPER)
    for version in range(0, 200, 10):
        publish(league, version)
    for i in range(50):
        play(league, 10 * (i % 20), won=i % 3 > 0)
    again = League.load(PAPER, json.loads(json.dumps(league.dump())))
    assert again.dump() == league.dump()
    assert not publish(again, 195) and publish(again, 200)
    with pytest.raises(ValueError, match="format"):
        League.load(PAPER, {"opponents": []})
    with pytest.raises(ValueError, match="finite"):
        make_league([0.0, math.nan])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.booleans()), max_size=200))
def test_probabilities_stay_a_distribution(events: list[tuple[int, bool, bool]]) -> None:
    """Also, a win never raises an opponent's probability."""
    league = League(LeagueConfig(quality_learning_rate=0.5, add_every_versions=1))
    for version, is_game, won in events:
        if not is_game:
            publish(league, version)
            continue
        before = league.probabilities()
        after_game = league.after_game(version, league.win_drop(version) if won and version in before else None)
        assert (after_game is not None) == (version in before)
        if after_game is not None:
            league.set_opponent(after_game)
        after = league.probabilities()
        if after_game is not None and won and len(before) > 1:
            assert after[version] < before[version] or before[version] < 1e-12
        else:
            assert after == before
    if p := league.probabilities():
        assert sum(p.values()) == pytest.approx(1)
        assert all(x >= 0 and math.isfinite(x) for x in p.values())
        assert max(qualities(league)) == 0
        assert League.load(LeagueConfig(), league.dump()).probabilities() == p


def test_expected_drop_is_equal_for_all_opponents() -> None:
    """Sampled with p and lowered by η / (N p), an opponent that always loses falls by η / N a game on average."""
    league = make_league([0.0, -1.0, -2.0, -3.0])
    before = np.array(qualities(league))
    expected = []
    for opponent, p in league.probabilities().items():
        other = make_league(before.tolist())
        play(other, opponent, won=True)
        shift = np.array(qualities(other)) - before
        i = opponent // 10 - 1
        expected.append(p * (shift[i] - np.delete(shift, i).mean()))
    assert expected == pytest.approx([-0.01 / 4] * 4)


def test_probabilities_follow_every_change() -> None:
    rng = np.random.default_rng(3)
    league, expected = League(LeagueConfig()), dict[int, float]()
    for _ in range(2000):
        version = int(rng.integers(150))
        if rng.random() < 0.3:
            league.remove(version)
            expected.pop(version, None)
        else:
            expected[version] = float(rng.normal())
            league.set_opponent(PoolOpponent(version, expected[version]))
        weights = np.exp(list(expected.values()))
        found = league.probabilities()
        assert list(found) == list(expected)
        np.testing.assert_allclose(list(found.values()), weights / weights.sum(), rtol=1e-12)
        if expected:
            uniform = rng.random()
            index = int(np.searchsorted(np.cumsum(weights / weights.sum()), uniform, side="right"))
            assert league.sample(uniform) == list(expected)[min(index, len(expected) - 1)]
            assert league.probability(next(iter(expected))) == next(iter(found.values()))

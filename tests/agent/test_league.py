import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from five.agent.config import LeagueConfig
from five.agent.league import League

PAPER = LeagueConfig()


def league(qualities, config=PAPER):
    state = {"format": 1, "last_added": 10 * len(qualities), "reported": [],
             "opponents": [[10 * (i + 1), q, 0, 0] for i, q in enumerate(qualities)]}
    return League.load(config, state)


def qualities(lg):
    return [o.quality for o in lg.opponents]


def test_every_tenth_version_joins():
    lg = League(PAPER)
    added = [v for v in range(1, 45) if lg.on_version(v)]
    assert added == [1, 11, 21, 31, 41]
    assert [o.version for o in lg.opponents] == added
    assert not lg.on_version(41)


def test_skipped_versions_do_not_stop_additions():
    lg = League(PAPER)
    assert [v for v in (3, 9, 19, 25, 40) if lg.on_version(v)] == [3, 19, 40]


def test_the_first_has_quality_0_and_new_ones_the_highest():
    lg = league([-3.0, -1.0, 0.0, -2.0])
    lg.add(99)
    assert qualities(lg) == [-3, -1, 0, -2, 0]
    empty = League(PAPER)
    empty.add(7)
    assert qualities(empty) == [0]


def test_a_win_at_equal_qualities_costs_eta():
    lg = league([0.0, 0.0, 0.0, 0.0])
    assert lg.report("g1", 20, won=True)
    assert qualities(lg) == pytest.approx([0, -0.01, 0, 0])


def test_a_win_by_hand():
    # softmax(0, -ln 3) = (3/4, 1/4); N = 2: η / (2 * 1/4) = 0.02 and η / (2 * 3/4) = 1/150
    lg = league([0.0, -math.log(3)])
    assert lg.probabilities() == pytest.approx({10: 0.75, 20: 0.25})
    lg.report("a", 20, won=True)
    assert qualities(lg) == pytest.approx([0, -math.log(3) - 0.02])
    lg = league([0.0, -math.log(3)])
    lg.report("a", 10, won=True)
    assert qualities(lg) == pytest.approx([0, -math.log(3) + 1 / 150])  # centred: the best is 0


def test_a_loss_changes_no_quality():
    lg = league([0.0, -1.0])
    assert lg.report("g", 20, won=False)
    assert qualities(lg) == [0, -1]
    assert [(o.games, o.wins) for o in lg.opponents] == [(0, 0), (1, 0)]


def test_a_tiny_probability_costs_at_most_the_bound():
    lg = league([0.0, -700.0, -2000.0])
    lg.report("a", 20, won=True)
    lg.report("b", 30, won=True)
    assert qualities(lg) == [0, -701, -2001]


def test_a_game_counts_once():
    lg = league([0.0, 0.0])
    assert lg.report("g", 10, won=True)
    before = lg.dump()
    assert not lg.report("g", 10, won=True)
    assert not lg.report("g", 20, won=True)
    assert lg.dump() == before


def test_remembered_games_are_bounded():
    lg = league([0.0], LeagueConfig(remembered_games=3))
    for i in range(10):
        lg.report(str(i), 10, won=False)
    assert lg.dump()["reported"] == ["7", "8", "9"]


def test_a_report_of_a_version_that_left_changes_nothing():
    lg = league([0.0, -1.0])
    lg.remove(10)
    assert qualities(lg) == [0]
    assert not lg.report("g", 10, won=True)


def test_the_newest_plays_eighty_of_a_hundred():
    lg = league([0.0, -1.0, -2.0])
    rng = np.random.default_rng(0)
    matches = [lg.choose(rng) for _ in range(20_000)]
    past = [m.past for m in matches if m.past is not None]
    assert len(past) / len(matches) == pytest.approx(0.2, abs=0.01)
    expected = lg.probabilities()
    for version, p in expected.items():
        assert past.count(version) / len(past) == pytest.approx(p, abs=0.03)
    assert np.mean([m.side for m in matches]) == pytest.approx(0.5, abs=0.015)


def test_without_a_pool_the_newest_plays_itself():
    rng = np.random.default_rng(0)
    assert all(League(PAPER).choose(rng).past is None for _ in range(50))


def test_the_same_seed_draws_the_same_matches():
    lg = league([0.0, -1.0, -2.0])
    draws = [[lg.choose(np.random.default_rng(5)) for _ in range(20)] for _ in range(2)]
    assert draws[0] == draws[1]


def test_a_restart_goes_on_with_the_whole_pool():
    lg = League(PAPER)
    for v in range(0, 200, 10):
        lg.on_version(v)
    for i in range(50):
        lg.report(f"g{i}", 10 * (i % 20), won=i % 3 > 0)
    again = League.load(PAPER, json.loads(json.dumps(lg.dump())))
    assert again.dump() == lg.dump()
    assert not again.report("g3", 30, won=True)
    assert not again.on_version(195)
    assert again.on_version(200)
    with pytest.raises(ValueError, match="format"):
        League.load(PAPER, {"opponents": []})


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.booleans()), max_size=200))
def test_invariants(events):
    """Whatever is added, beaten or lost: chances are a distribution, the best quality is 0, none is ever raised
    against the others by its own defeat."""
    lg = League(LeagueConfig(quality_learning_rate=0.5))
    for i, (version, is_game, won) in enumerate(events):
        if not is_game:
            lg.add(version)
            continue
        before = lg.probabilities()
        counted = lg.report(str(i), version, won)
        after = lg.probabilities()
        assert counted == (version in before)
        if counted and won and len(before) > 1:
            assert after[version] < before[version] or before[version] < 1e-12
        else:
            assert after == before
    p = lg.probabilities()
    if p:
        assert sum(p.values()) == pytest.approx(1)
        assert all(x >= 0 and math.isfinite(x) for x in p.values())
        assert max(qualities(lg)) == 0
        assert League.load(LeagueConfig(), lg.dump()).probabilities() == p


def test_the_expected_drop_is_the_same_for_every_opponent():
    """Drawn with p and dropped by η / (N p), an opponent that always loses falls by η / N a game on average."""
    lg = league([0.0, -1.0, -2.0, -3.0])
    before = np.array(qualities(lg))
    expected = []
    for opponent, p in lg.probabilities().items():
        one = league(before.tolist())
        one.report("g", opponent, won=True)
        after = np.array(qualities(one))
        shift = after - before
        i = opponent // 10 - 1
        expected.append(p * (shift[i] - np.delete(shift, i).mean()))
    assert expected == pytest.approx([-0.01 / 4] * 4)

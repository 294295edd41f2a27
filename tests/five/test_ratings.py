import json
from statistics import NormalDist

import numpy as np
import pytest
import trueskill
from hypothesis import given, settings
from hypothesis import strategies as st

from five.config import RatingConfig
from five.ratings import (
    RANDOM,
    Pairing,
    RatingTable,
    Skill,
    rate_references,
    wilson_interval,
    win_probability,
)

PAPER = RatingConfig()


def library():
    return trueskill.TrueSkill(mu=25.0, sigma=25 / 3, beta=25 / 6, tau=0.0, draw_probability=0.02)


def test_the_papers_parameters():
    assert (PAPER.sigma, PAPER.tau, PAPER.draw_probability) == (25 / 3, 0.0, 0.02)
    assert PAPER.beta == PAPER.sigma / 2
    assert PAPER.games_per_rating == 750


@pytest.mark.parametrize("result", [1.0, 0.5, 0.0])
@pytest.mark.parametrize(("mu", "sigma"), [(0.0, 25 / 3), (7.0, 2.0), (-3.0, 0.5)])
def test_an_update_is_the_librarys(result, mu, sigma):
    """Against the library with its usual origin at 25: only the scale's origin differs."""
    env = library()
    ours, theirs = env.create_rating(25 + mu, sigma), env.create_rating(25 + 4.0, 1.5)
    if result == 0.5:
        expected, _ = trueskill.rate_1vs1(ours, theirs, drawn=True, env=env)
    elif result:
        expected, _ = trueskill.rate_1vs1(ours, theirs, env=env)
    else:
        _, expected = trueskill.rate_1vs1(theirs, ours, env=env)
    new = RatingTable(PAPER).updated(Skill(mu, sigma), Skill(4.0, 1.5), result)
    assert new.mu == pytest.approx(expected.mu - 25, abs=1e-9)
    assert new.sigma == pytest.approx(expected.sigma, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.floats(-12, 12), st.floats(0.3, 9), st.floats(-12, 12), st.floats(0.01, 9))
def test_invariants_of_an_update(mu, sigma, other, other_sigma):
    table, me, ref = RatingTable(PAPER), Skill(mu, sigma), Skill(other, other_sigma)
    won, drawn, lost = (table.updated(me, ref, result) for result in (1.0, 0.5, 0.0))
    assert won.mu > mu > lost.mu
    assert won.mu > drawn.mu > lost.mu
    for new in (won, drawn, lost):
        assert 0 < new.sigma < sigma


def test_references_never_move():
    table = RatingTable(PAPER)
    table.add_reference("version-5", Skill(3.0, 1.0))
    before = dict(table.references)
    table.start("version-9")
    rng = np.random.default_rng(0)
    for i in range(60):
        table.report(f"g{i}", table.pair(rng), [1.0, 0.5, 0.0][i % 3])
    assert table.references == before
    assert table.references[RANDOM].mu == 0.0
    with pytest.raises(ValueError, match="references do not change"):
        table.add_reference("version-5", Skill(4.0, 1.0))


def test_only_references_within_ten_points_are_played():
    table = RatingTable(PAPER)
    for name, mu in (("a", 9.9), ("b", 10.1), ("c", 22.0), ("d", 30.0)):
        table.add_reference(name, Skill(mu, 1.0))
    table.start("v", mu=0.0)
    assert set(table.nearby()) == {RANDOM, "a"}
    table.start("v", mu=20.0)
    assert set(table.nearby()) == {"b", "c", "d"}
    table.start("v", mu=100.0)
    assert table.nearby() == ["d"]


def test_references_and_sides_are_met_in_equal_shares():
    table = RatingTable(PAPER)
    table.add_reference("a", Skill(2.0, 1.0))
    table.start("v", mu=1.0)
    rng = np.random.default_rng(0)
    pairings = [table.pair(rng) for _ in range(402)]
    counts = {key: sum((p.reference, p.side) == key for p in pairings)
              for key in ((RANDOM, 0), (RANDOM, 1), ("a", 0), ("a", 1))}
    assert sum(counts.values()) == 402
    assert max(counts.values()) - min(counts.values()) <= 1


def test_a_new_version_starts_at_the_last_ones_mean_with_full_uncertainty():
    table = RatingTable(PAPER)
    table.start("version-1")
    for i in range(20):
        table.report(str(i), Pairing("version-1", RANDOM, i % 2), 1.0)
    first = table.finish()
    second = table.start("version-2")
    assert first.skill.sigma < 5
    assert (second.skill.mu, second.skill.sigma) == (first.skill.mu, 25 / 3)


def test_a_version_that_left_all_behind_becomes_a_reference():
    table = RatingTable(PAPER)
    table.start("version-1", mu=0.0)
    for i in range(30):
        table.report(f"a{i}", Pairing("version-1", RANDOM, i % 2), 1.0)
    assert table.finish().skill.mu > 8.3
    assert "version-1" in table.references
    table.start("version-2")
    for i in range(30):
        table.report(f"b{i}", Pairing("version-2", "version-1", i % 2), float(i % 2))
    table.finish()
    assert "version-2" not in table.references


def test_the_scale_finds_a_true_gap():
    """A player who beats a reference with TrueSkill's chance for 5 points ends about 5 points above it."""
    table = RatingTable(RatingConfig(draw_probability=0.0, nearby=100.0))
    rng = np.random.default_rng(1)
    p = NormalDist().cdf(5.0 / (2**0.5 * PAPER.beta))
    table.start("v")
    for i in range(1500):
        table.report(str(i), table.pair(rng), float(rng.random() < p))
    assert table.current.skill.mu == pytest.approx(5.0, abs=0.7)
    won, drawn, lost = table.current.score(RANDOM)
    assert (won + drawn + lost, table.complete) == (1500, True)


def test_a_game_counts_once_and_for_its_player_only():
    table = RatingTable(PAPER)
    table.start("version-1")
    assert table.report("g", Pairing("version-1", RANDOM, 0), 1.0)
    skill = table.current.skill
    assert not table.report("g", Pairing("version-1", RANDOM, 0), 1.0)
    assert not table.report("h", Pairing("version-0", RANDOM, 0), 1.0)
    assert table.current.skill == skill
    with pytest.raises(ValueError, match="result"):
        table.report("i", Pairing("version-1", RANDOM, 0), 0.7)
    with pytest.raises(KeyError, match="nobody"):
        table.report("i", Pairing("version-1", "nobody", 0), 1.0)


def test_a_restart_keeps_all_ratings_and_goes_on():
    table = RatingTable(PAPER)
    rng = np.random.default_rng(0)
    for version in range(3):
        table.start(f"version-{version}")
        for i in range(40):
            table.report(f"{version}-{i}", table.pair(rng), float(rng.random() < 0.9))
        table.finish()
    table.start("version-3")
    table.report("x", table.pair(rng), 1.0)
    again = RatingTable.load(PAPER, json.loads(json.dumps(table.dump())))
    assert again.dump() == table.dump()
    assert not again.report("x", Pairing("version-3", RANDOM, 0), 1.0)
    one, two = np.random.default_rng(7), np.random.default_rng(7)
    assert [again.pair(one) for _ in range(9)] == [table.pair(two) for _ in range(9)]
    with pytest.raises(ValueError, match="format"):
        RatingTable.load(PAPER, {})


def test_nothing_is_paired_without_a_player():
    with pytest.raises(ValueError, match="start"):
        RatingTable(PAPER).pair(np.random.default_rng(0))


def test_references_are_rated_among_themselves_with_random_at_0():
    rng = np.random.default_rng(0)
    truth = {RANDOM: 0.0, "weak": 4.0, "strong": 9.0}
    games = []
    for _ in range(900):
        a, b = rng.choice(list(truth), 2, replace=False)
        p = NormalDist().cdf((truth[a] - truth[b]) / (2**0.5 * PAPER.beta))
        games.append((a, b, float(rng.random() < p)))
    rated = rate_references(games, PAPER)
    assert rated[RANDOM].mu == 0.0
    for name, mu in truth.items():
        assert rated[name].mu == pytest.approx(mu, abs=1.2)
    with pytest.raises(ValueError, match="fixes the scale"):
        rate_references([("a", "b", 1.0)], PAPER)


def test_win_probabilities():
    same = Skill(3.0, 1.0)
    assert win_probability(same, same, PAPER) == 0.5
    # The library's own worked value: with both σ 0 the spread is √2 β.
    assert win_probability(Skill(8.3, 0.0), Skill(0.0, 0.0), PAPER) == pytest.approx(0.92, abs=0.005)


@pytest.mark.parametrize(("wins", "games", "low", "high"), [
    (95, 100, 0.8882, 0.9785), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (50, 100, 0.4038, 0.5962)])
def test_wilson_interval(wins, games, low, high):
    assert wilson_interval(wins, games) == pytest.approx((low, high), abs=1e-4)


def test_wilson_interval_limits():
    assert wilson_interval(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="3 wins of 2"):
        wilson_interval(3, 2)

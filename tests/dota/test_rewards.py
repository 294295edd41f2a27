import re
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from dota.config import RewardConfig
from dota.rewards import PRESETS, SIGNALS, health_score, rewards

TEAM = {"win", "courier_death", "aegis", "ancient_hp", "megas", "tower1", "tower2", "tower3", "tower4", "shrine",
        "barracks"}
PAPER = {
    "win": 5, "hero_death": -1, "courier_death": -2, "xp": 0.002, "gold": 0.006, "gold_spent": 0.0006, "health": 2,
    "mana": 0.75, "killed_hero": -0.6, "last_hit": -0.16, "deny": 0.15, "aegis": 5, "ancient_hp": 5, "megas": 4,
    "tower1": 2.25, "tower2": 3, "tower3": 4.5, "tower4": 2.25, "shrine": 2.25, "barracks": 6, "lane_assign": -0.15}


def signals_of(name, value=1.0, hero=1, heroes=5):
    """Return signals with ``value`` for Radiant's hero, or for its whole team when the signal is a team's."""
    s = np.zeros((2, heroes, len(SIGNALS)), np.float32)
    s[0, slice(None) if name in TEAM else hero, SIGNALS.index(name)] = value
    return s


def test_signals_stand_in_the_order_of_the_core():
    text = (Path(__file__).parents[2] / "libs/dota/core/world/hero_state.hpp").read_text()
    names = re.search(r"enum class Signal[^{]*\{([^}]*)\}", text).group(1).replace("\n", "").split(",")
    snake = [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", n.strip()).lower() for n in names]
    assert snake == [*SIGNALS, "count"]


@pytest.mark.parametrize("name", SIGNALS)
def test_each_term_alone(name):
    amount = 3.0
    total, by_signal = rewards(signals_of(name, amount), np.array(0.0), 0.0)
    expected = np.zeros((2, 5))
    if name in TEAM:
        expected[0] = amount * PAPER[name]
        expected[1] = -amount * PAPER[name]
    else:
        expected[0, 1] = amount * PAPER[name]
        expected[1] = -amount * PAPER[name] / 5
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    other = np.delete(by_signal, SIGNALS.index(name), axis=-1)
    assert not other.any()
    np.testing.assert_allclose(by_signal.sum(-1), total, rtol=1e-5)


def test_the_gists_weights():
    differ = {n for n in SIGNALS if PRESETS["gist"][n] != PRESETS["paper"][n]}
    assert differ == {"last_hit", "deny", "courier_death", "gold_spent", "aegis"}
    assert (PRESETS["gist"]["last_hit"], PRESETS["gist"]["deny"]) == (0.16, 0.2)
    total, _ = rewards(signals_of("last_hit"), np.array(0.0), 0.0, RewardConfig(preset="gist"))
    assert total[0, 1] == pytest.approx(0.16)


def test_the_ten_rewards_sum_to_zero_each_step():
    rng = np.random.default_rng(0)
    s = rng.normal(size=(50, 2, 5, len(SIGNALS)))
    for spirit in (0.0, 0.3, 1.0):
        total, by_signal = rewards(s, rng.uniform(0, 3600, 50), spirit)
        np.testing.assert_allclose(total.sum((1, 2)), 0, atol=1e-4)
        np.testing.assert_allclose(by_signal.sum((1, 2)), 0, atol=1e-4)


@pytest.mark.parametrize("preset", ["paper", "gist"])
def test_game_time_scales_all_but_the_papers_win(preset):
    config = RewardConfig(preset=preset)
    for name in SIGNALS:
        late, _ = rewards(signals_of(name), np.array(1200.0), 0.0, config)
        early, _ = rewards(signals_of(name), np.array(0.0), 0.0, config)
        factor = 1.0 if (preset, name) == ("paper", "win") else 0.36
        np.testing.assert_allclose(late, early * factor, rtol=1e-5, atol=1e-9)


def test_before_the_horn_rewards_are_not_greater():
    before, _ = rewards(signals_of("xp"), np.array(-90.0), 0.0)
    at, _ = rewards(signals_of("xp"), np.array(0.0), 0.0)
    np.testing.assert_array_equal(before, at)


def test_team_spirit_mixes_with_the_teams_mean():
    total, _ = rewards(signals_of("hero_death"), np.array(0.0), 0.4)
    mean = -1 / 5
    expected = [0.4 * mean] * 5
    expected[1] = 0.6 * -1 + 0.4 * mean
    np.testing.assert_allclose(total[0], expected, rtol=1e-5)
    np.testing.assert_allclose(total[1], [-mean] * 5, rtol=1e-5)


def test_full_team_spirit_counts_team_events_five_times():
    team, _ = rewards(signals_of("megas"), np.array(0.0), 1.0, RewardConfig(weights={"megas": 1.0}))
    solo, _ = rewards(signals_of("deny"), np.array(0.0), 1.0, RewardConfig(weights={"deny": 1.0}))
    np.testing.assert_allclose(team, 5 * solo, rtol=1e-5)


def test_team_spirit_may_differ_between_games():
    s = np.stack([signals_of("xp", 100), signals_of("xp", 100)])
    both, _ = rewards(s, np.zeros(2), np.array([0.0, 1.0]))
    np.testing.assert_allclose(both[0], rewards(s[0], np.array(0.0), 0.0)[0], rtol=1e-6)
    np.testing.assert_allclose(both[1], rewards(s[1], np.array(0.0), 1.0)[0], rtol=1e-6)


def test_one_against_one():
    total, _ = rewards(signals_of("gold", 40, hero=0, heroes=1), np.array(0.0), 0.7)
    np.testing.assert_allclose(total, [[0.24], [-0.24]], rtol=1e-5)


def test_health_score():
    x = np.array([0.0, 0.5, 1.0])
    np.testing.assert_allclose(health_score(x), [0.0, (1.5 - 0.0625) / 2, 1.0])
    assert health_score(np.array(0.1)) - health_score(np.array(0.0)) > 0.2  # the last tenth counts double


def test_weights_may_be_overridden_by_name_only():
    assert RewardConfig(weights={"last_hit": 0.16}).weights == {"last_hit": 0.16}
    with pytest.raises(ValidationError, match="last_hti"):
        RewardConfig(weights={"last_hti": 0.16})


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="signals must be"):
        rewards(np.zeros((2, 5, 3)), np.array(0.0), 0.0)
    with pytest.raises(ValueError, match="game_time"):
        rewards(np.zeros((7, 2, 5, len(SIGNALS))), np.zeros(6), 0.0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        rewards(np.zeros((2, 5, len(SIGNALS))), np.array(0.0), 1.5)


def test_without_the_zero_sum_the_enemys_mean_stays():
    signals = np.zeros((2, 2, len(SIGNALS)), np.float32)
    signals[0, 0, SIGNALS.index("gold")] = 100
    config = RewardConfig(weights={"gold": 0.01}, time_decay=1.0)
    given, by_signal = rewards(signals, np.array(0.0), 0.5, config, zero_sum=False)
    assert np.allclose(given, [[0.75, 0.25], [0, 0]])
    assert np.allclose(by_signal.sum(-1), given)
    assert np.allclose(rewards(signals, np.array(0.0), 0.5, config)[0], [[0.75, 0.25], [-0.5, -0.5]])

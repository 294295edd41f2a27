"""With few versions in play at a time, the pool stays as drawable as with the paper's sampling for each game."""

import zlib
from collections import deque

import numpy as np
import pytest

from five.agent.config import LeagueConfig
from five.agent.league import ActiveVersions, League, OpponentChoice, PoolOpponent

VERSION_SECONDS = 63.0  # docs/scale.md, 64 and 512 GPUs
GAME_SECONDS = 4169.0
GAMES_PER_PLACE = 1 / 46.3  # a second, against past versions: 26 in a turn of 20 minutes
NEVER = 1e-8


def pool_after(days: float, places: int, config: LeagueConfig, seed: int) -> League:
    """Return the pool of a simulated run. Versions lose to a learner that is much newer, and half of the games to an
    equal one."""
    league, rng = League(config), np.random.default_rng(seed)
    active = ActiveVersions(config, lambda what: zlib.crc32(f"{seed}/{what}".encode()) / 2**32)
    playing: deque[tuple[float, OpponentChoice]] = deque()
    step, version, now = 1 / (GAMES_PER_PLACE * places), -1, 0.0
    while now < days * 86400:
        while version < int(now / VERSION_SECONDS):
            version += 1
            newcomer = league.candidate(version)
            if newcomer is not None:
                league.set_opponent(newcomer)
                league.last_added = version
        while playing and playing[0][0] <= now:
            _, choice = playing.popleft()
            assert choice.past is not None
            won = rng.random() > 0.5 * np.exp((choice.past - version) / 300)
            drop = league.win_drop(choice.past, choice) if won else None
            after = league.after_game(choice.past, drop)
            assert after is not None
            league.set_opponent(after)
            if drop is not None and choice.active is not None:
                choice.active.dropped += drop
        if config.active_past_versions:
            held = active.at(int(rng.integers(config.active_past_versions)), now, league)
            choice = OpponentChoice(held.version, 0, held.probability, held)
        else:
            past = league.sample(rng.random())
            choice = OpponentChoice(past, 0, league.probability(past))
        playing.append((now + GAME_SECONDS, choice))
        now += step
    return league


def undrawable(league: League) -> float:
    """Return the share of the pool that is never drawn again for practical purposes."""
    return float(np.mean([p < NEVER for p in league.probabilities().values()]))


def effective(league: League) -> float:
    """Return the effective number of opponents: the exponential of the entropy."""
    p = np.array([p for p in league.probabilities().values() if p > 0])
    return float(np.exp(-(p * np.log(p)).sum()))


def test_active_versions_keep_the_pool_of_the_papers_rule() -> None:
    places, seed = 16, 0
    paper = pool_after(2.5, places, LeagueConfig(), seed)
    few = pool_after(2.5, places, LeagueConfig(active_past_versions=places), seed)
    assert len(paper.opponents) == len(few.opponents) == 343
    assert undrawable(paper) == undrawable(few) == 0.0
    assert effective(few) == pytest.approx(effective(paper), rel=0.15)


SLOTS = LeagueConfig(active_past_versions=4, active_minutes=20)


def slots(uniforms: dict[str, float]) -> tuple[ActiveVersions, League]:
    """Return slots whose random numbers are given by text, and a pool of versions 0 to 9 with equal qualities."""
    league = League(SLOTS)
    for version in range(10):
        league.set_opponent(PoolOpponent(version, 0.0))
    return ActiveVersions(SLOTS, lambda what: uniforms.get(what, 0.05)), league


def test_slots_turn_one_after_another() -> None:
    """A turn takes 20 minutes. Slot k of four begins its turns k quarters of it earlier."""
    active, league = slots({})
    turns = {seconds: [active.at(slot, seconds, league).turn for slot in range(4)]
             for seconds in (0, 299, 300, 600, 899, 900, 1199, 1200, 2400)}
    assert turns == {0: [0, 0, 0, 0], 299: [0, 0, 0, 0], 300: [0, 0, 0, 1], 600: [0, 0, 1, 1], 899: [0, 0, 1, 1],
                     900: [0, 1, 1, 1], 1199: [0, 1, 1, 1], 1200: [1, 1, 1, 1], 2400: [2, 2, 2, 2]}


def test_slot_keeps_its_version_for_a_turn_unless_it_is_removed() -> None:
    active, league = slots({"place 0 turn 0": 0.35, "place 0 turn 1": 0.75})
    first = active.at(0, 10.0, league)
    assert (first.version, first.probability, first.dropped) == (3, pytest.approx(0.1), 0.0)
    first.dropped = 0.5
    league.set_opponent(PoolOpponent(11, 9.0))
    assert active.at(0, 1000.0, league) is first, "also when the qualities change"
    assert active.at(0, 1200.0, league).version == 11
    again, league = slots({"place 0 turn 0": 0.35})
    held = again.at(0, 10.0, league)
    league.remove(held.version)
    assert again.at(0, 20.0, league) is not held and again.at(0, 20.0, league).version == 4


def test_newest_turn_of_a_version_is_found() -> None:
    active, league = slots({"place 0 turn 0": 0.35, "place 1 turn 0": 0.35, "place 1 turn 1": 0.35,
                            "place 2 turn 0": 0.75})
    assert active.holding(3) is None
    old = active.at(0, 0.0, league)
    active.at(2, 0.0, league)
    newest = active.at(1, 1000.0, league)
    assert (old.version, newest.version, newest.turn) == (3, 3, 1)
    assert active.holding(3) is newest and active.holding(7) is active.at(2, 0.0, league)
    assert active.holding(8) is None and active.holding(2) is None


def test_one_turn_takes_a_bounded_amount() -> None:
    config = LeagueConfig(active_past_versions=1)
    league = League.load(config, {"format": 1, "last_added": 20, "opponents": [[10, 0.0, 0, 0], [20, -5.0, 0, 0]]})
    active = ActiveVersions(config, lambda what: 1.0)
    held = active.at(0, 0.0, league)
    assert held.version == 20 and active.at(0, 60.0, league) is held
    choice = OpponentChoice(20, 0, held.probability, held)
    for _ in range(30):
        drop = league.win_drop(20, choice)
        after = league.after_game(20, drop)
        assert after is not None
        league.set_opponent(after)
        held.dropped += drop
    assert league.opponents[1].quality == pytest.approx(-6.0)
    later = active.at(0, 3600.0, league)
    assert later is not held and later.probability < held.probability and later.dropped == 0

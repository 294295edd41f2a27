"""Refit of the bots' distance from random play."""

import json
import random
from typing import Any

import numpy as np
import pytest

from five.agent.anchor_refit import anchors_are_measured, refit_standings
from five.agent.config import RatingConfig
from five.agent.ladder import Ladder
from five.agent.ratings import RANDOM
from five.agent.skill_fit import fit_skills
from five.agent.standings import Standing
from tests.agent.test_ladder import World

CONFIG = RatingConfig(games_per_rating=50, games_per_round=50, first_rating_games=20, games_per_anchor_pair=20)
FAR = {RANDOM: 0.0, "scripted-easy": 22.0, "scripted": 26.0, "scripted-hard": 30.0}
BOTS = [name for name in FAR if name != RANDOM]
VERSIONS = {f"version-{i}": min(4.0 * i, 32.0) for i in range(1, 13)}


class Restarted(World):
    """A world whose ladder restarts from the rows after each write."""

    def write(self, rows: dict[str, Any] | None) -> bool:
        wrote = super().write(rows)
        self.ladder = Ladder(self.ladder.config, self.ladder._seed)
        self.ladder.apply_rows(json.loads(json.dumps(self.rows)), True)
        return wrote


def world(seed: int = 0, kind: type[World] = World, config: RatingConfig = CONFIG) -> World:
    return kind(config, seed, {**FAR, **VERSIONS}).anchor()


def climb(world: World) -> list[dict[str, Standing]]:
    """Rate all versions and return the standings after each."""
    after = []
    for player in VERSIONS:
        world.rate(player)
        after.append({name: Standing(**vars(s)) for name, s in world.ladder.standings.items()})
    return after


def played(player: str, sigma: float, results: dict[str, list[int]], mu: float = 50.0) -> Standing:
    return Standing(player, mu, sigma, 3, 0.5, player != "version-1", 1, results)


def connected(sigma: float = 8.0) -> tuple[dict[str, Standing], RatingConfig]:
    """Return one bot and a version that plays level with it and with random play: 40 games each."""
    config = RatingConfig(anchors=(RANDOM, "scripted"))
    level = [18, 4, 18]
    standings = {RANDOM: played(RANDOM, 1e-3, {"scripted": level}, 0.0), "scripted": played(
        "scripted", sigma, {RANDOM: level}), "version-1": played("version-1", 8.0, {"scripted": level, RANDOM: level})}
    return standings, config


@pytest.mark.parametrize(("sigmas", "measured"), [
    ([2.5, 2.5], True), ([2.5, 2.51], False), ([2.51, 2.5], False), ([0.1, 0.1], True)])
def test_anchors_are_measured_up_to_a_quarter_of_the_distance(sigmas: list[float], measured: bool) -> None:
    standings = {str(i): played(str(i), sigma, {}) for i, sigma in enumerate(sigmas)}
    assert anchors_are_measured(standings, RatingConfig(max_reference_distance=10.0)) is measured


def test_refit_counts_games_of_a_removed_anchor_once() -> None:
    standings, config = connected()
    expected = refit_standings(standings, config)
    assert expected is not None
    assert refit_standings(standings, config.model_copy(update={"anchors": (RANDOM,)})) == expected


def test_refit_counts_a_game_of_two_anchors_once() -> None:
    """Each σ of equally strong players follows from the Fisher information of its 40 or 80 games."""
    standings, config = connected()
    games = [(first, second, score) for first, second in ((RANDOM, "scripted"), (RANDOM, "version-1"),
             ("scripted", "version-1")) for score, count in ((1.0, 18), (0.5, 4), (0.0, 18)) for _ in range(count)]
    expected = fit_skills(games, config)
    refitted = refit_standings(standings, config)
    assert refitted is not None and refitted.keys() == {"scripted", "version-1"}
    for name, standing in refitted.items():
        assert standing.skill == expected.skills[name] and abs(standing.mu) < 1e-6
        assert standing.draw_probability == expected.draw_probability == pytest.approx(0.1, abs=0.01)
        before = standings[name]
        assert (standing.player, standing.trial, standing.reference, standing.aborted, standing.results) == (
            before.player, before.trial, before.reference, before.aborted, before.results)


@pytest.mark.parametrize(("factor", "succeeds"), [(1.001, True), (0.999, False)])
def test_refit_requires_a_narrower_deviation_of_the_anchors(factor: float, succeeds: bool) -> None:
    """The new σ of a bot is at most 0.6 of the present one. σ of versions and of random play do not count."""
    standings, config = connected()
    found = refit_standings(standings, config)
    assert found is not None
    standings["scripted"].sigma = factor * found["scripted"].sigma / 0.6
    standings["version-1"].sigma = 1e-9
    assert (refit_standings(standings, config) is not None) is succeeds


def test_refit_needs_games_of_every_anchor() -> None:
    standings, config = connected()
    three = RatingConfig(anchors=(RANDOM, "scripted", "scripted-hard"))
    assert refit_standings({**standings, "scripted-hard": played("scripted-hard", 8.0, {})}, three) is None
    assert refit_standings({name: played(name, 8.0, {}) for name in standings}, config) is None
    # Without a game of random play nothing fixes the scale.
    assert refit_standings({"version-1": played("version-1", 8.0, {"scripted": [1, 0, 1]})}, config) is None


def test_distance_is_open_if_random_play_never_wins() -> None:
    anchored = world()
    standings = {name: anchored.ladder.standings[name] for name in FAR}
    assert all(s.results[RANDOM][1:] == [0, 0] for name, s in standings.items() if name != RANDOM)
    assert not anchors_are_measured(standings, CONFIG) and anchored.ladder.unmeasured
    assert min(standings[name].sigma for name in BOTS) > 5
    near = World(CONFIG, 0, {"scripted-easy": 4.0, "scripted": 7.0, "scripted-hard": 10.0}).anchor()
    assert not near.ladder.unmeasured and "unmeasured" not in near.rows


@pytest.mark.parametrize("seed", range(4))
def test_anchors_are_refitted_once_and_then_frozen(seed: int) -> None:
    ladder = world(seed)
    before = {name: ladder.ladder.standings[name].skill for name in BOTS}
    after = climb(ladder)
    courses = [[standings[name].skill for standings in after] for name in BOTS]
    moves = {tuple(i for i, (a, b) in enumerate(zip([first, *course], course, strict=False)) if a != b)
             for first, course in zip(before.values(), courses, strict=True)}
    ((joined,),) = moves  # all bots once, at the same version
    assert 0 < joined < len(VERSIONS) - 1 and not ladder.ladder.unmeasured and "unmeasured" not in ladder.rows
    for name in BOTS:
        assert after[-1][name].sigma < 0.65 * before[name].sigma
        assert abs(after[-1][name].mu - FAR[name]) <= 2.5 * after[-1][name].sigma
    # All players rated until then are refitted once and frozen.
    for standings in after[joined + 1:]:
        for name, standing in after[joined].items():
            assert standings[name] == standing
    truth = {**FAR, **VERSIONS, "version-0": 0.0}
    misses = [(s.mu - truth[name]) / s.sigma for name, s in after[-1].items() if name != RANDOM]
    assert np.mean(np.abs(misses) <= 2) > 0.8
    # Games and order of ratings stay; only the ratings change.
    for name, standing in after[joined - 1].items():
        later = after[joined][name]
        assert (later.results, later.scores, later.trial, later.reference) == (
            standing.results, standing.scores, standing.trial, standing.reference)


def test_restart_after_every_write_gives_the_same_rows() -> None:
    one, other = world(), world(kind=Restarted)
    assert one.rows == other.rows and one.rows["unmeasured"]
    for either in (one, other):
        climb(either)
    assert one.rows == other.rows and "unmeasured" not in one.rows


def test_refit_is_one_atomic_write() -> None:
    ladder = world()
    for player in VERSIONS:
        while player not in ladder.ladder.standings:
            if ladder.ladder.trial is None:
                ladder.write(ladder.ladder.begin_rating(player))
                continue
            for game in ladder.ladder.pending_games():
                ladder.write(ladder.ladder.report_game(game.id, ladder.result(game), 60.0, []))
            outcome = ladder.ladder.advance()
            assert outcome is not None and outcome == ladder.ladder.advance()  # advance() alone changes nothing
            if outcome.refitted:
                rated = {s.player for s in [*outcome.standings, *outcome.refitted]}
                assert rated == {*ladder.ladder.standings, player} - {RANDOM}
                assert {f"rated:{name}" for name in rated} | {"open", "unmeasured"} <= set(outcome.rows)
                assert [s.player for s in outcome.standings] == [player]
            ladder.write(outcome.rows)
        if not ladder.ladder.unmeasured:
            return
    raise AssertionError("no version reached the bots")


def test_refit_is_independent_of_game_order() -> None:
    ends = []
    for order in (list, reversed, lambda games: random.Random(1).sample(games, len(games))):
        ladder = world()
        scores = np.random.default_rng(5)
        for player in VERSIONS:
            while player not in ladder.ladder.standings:
                if ladder.ladder.trial is None:
                    ladder.write(ladder.ladder.begin_rating(player))
                    continue
                played = [(game, ladder.result(game)) for game in ladder.ladder.pending_games()]
                for game, score in order(played):
                    ladder.write(ladder.ladder.report_game(game.id, score, float(scores.uniform(60, 900)), []))
                outcome = ladder.ladder.advance()
                assert outcome is not None
                ladder.write(outcome.rows)
        ends.append(ladder.ladder.standings)
    assert ends[0] == ends[1] == ends[2]


def test_ratings_of_an_earlier_release_stay_frozen() -> None:
    ladder = world()
    ladder.write({"unmeasured": None})  # as in a run of an earlier release
    before = {name: ladder.ladder.standings[name].skill for name in BOTS}
    climb(ladder)
    assert {name: ladder.ladder.standings[name].skill for name in BOTS} == before
    assert refit_standings(ladder.ladder.standings, CONFIG) is not None  # although a refit would succeed

"""The ladder with simulated players of known strengths."""

import json
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from five.agent.config import RatingConfig
from five.agent.ladder import ANCHORS, AssignedGame, Ladder
from five.agent.ratings import RANDOM
from five.agent.skill_fit import draw_margin
from five.agent.standings import Standing, parse_standings

CONFIG = RatingConfig(games_per_rating=40, games_per_round=20, games_per_anchor_pair=40)
TRUTH = {RANDOM: 0.0, "scripted-easy": 6.0, "scripted": 11.0, "scripted-hard": 15.0}
DRAWS = 0.2


class World:
    """Stored rows, and players whose performances are sampled from the model."""

    def __init__(self, config: RatingConfig = CONFIG, seed: int = 0, truth: dict[str, float] | None = None) -> None:
        self.rows: dict[str, Any] = {}
        self.ladder = Ladder(config, seed)
        self.rng = np.random.default_rng(seed)
        self.truth = {**TRUTH, "version-0": 0.0, **(truth or {})}
        self.margin = draw_margin(DRAWS, config.beta)

    def write(self, rows: dict[str, Any] | None) -> bool:
        if not rows:
            return False
        for name, row in json.loads(json.dumps(rows)).items():
            if row is None:
                self.rows.pop(name, None)
            else:
                self.rows[name] = row
        self.ladder.apply_rows(json.loads(json.dumps(rows)), False)
        return True

    def result(self, game: AssignedGame) -> float:
        gap = self.rng.normal(self.truth[game.first] - self.truth[game.second], math.sqrt(2) * CONFIG.beta)
        return 0.5 if abs(gap) < self.margin else float(gap > 0)

    def anchor(self) -> "World":
        """Rate the first version and then the anchors."""
        self.rate("version-0")
        self.write(self.ladder.begin_rating("version-x"))
        while self.ladder.trial is not None:
            self.step(self.result)
        return self

    def rate(self, player: str, result: Callable[[AssignedGame], float] | None = None) -> Standing:
        """Rate a player, and the anchors before if necessary."""
        while player not in self.ladder.standings:
            if self.ladder.trial is None:
                assert self.write(self.ladder.begin_rating(player))
                continue
            self.step(result or self.result)
        return self.ladder.standings[player]

    def step(self, result: Callable[[AssignedGame], float]) -> None:
        """Play the round."""
        for game in self.ladder.pending_games():
            self.write(self.ladder.report_game(game.id, result(game), 60.0, []))
        outcome = self.ladder.advance()
        assert outcome is not None
        self.write(outcome.rows)


def test_defaults_and_invalid_configurations() -> None:
    paper = RatingConfig()
    assert (paper.sigma, paper.beta, paper.tau, paper.draw_probability) == (25 / 3, 25 / 6, 0.0, 0.02)
    assert (paper.max_reference_distance, paper.games_per_rating) == (10.0, 750)
    for wrong in ({"anchors": ("scripted",)}, {"anchors": ("random", "random")}, {"required_references": ("scripted",),
                  "anchors": ("random",)}, {"tau": 0.1}, {"anchors": ("random", "human")}):
        with pytest.raises(ValidationError):
            RatingConfig.model_validate(wrong)


@pytest.mark.parametrize(("seeds", "within"), [(8, 0.85), pytest.param(60, 0.92, marks=pytest.mark.slow)])
def test_known_strengths_are_recovered_within_two_sigma(seeds: int, within: float) -> None:
    """Ratings range from random play to far above all bots, where errors of references accumulate."""
    config = RatingConfig(games_per_rating=60, games_per_round=60, games_per_anchor_pair=60)
    misses, deviations = [], []
    for seed in range(seeds):
        truth = {f"version-{i}": 4.0 * i for i in range(1, 7)}
        world = World(config, seed, truth).anchor()
        for player, mu in [(n, mu) for n, mu in world.truth.items() if n != RANDOM]:
            standing = world.rate(player)
            misses.append((standing.mu - mu) / standing.sigma)
            deviations.append(standing.sigma)
        assert any(name.startswith("version-") for name in world.ladder.references)
        assert world.ladder.standings[RANDOM].mu == 0.0
    # Expected are 95 % and 1; ratings of one seed share the errors of their references.
    assert np.mean(np.abs(misses) <= 2) > within and 0.75 < np.std(misses) < 1.25
    assert np.median(deviations) < 4.0


def test_first_version_is_rated_before_the_anchors() -> None:
    world = World(RatingConfig(first_rating_games=10), truth={"version-0": 3.0, "version-1": 3.0})
    first = world.rate("version-0")
    assert first.results.keys() == {RANDOM} and first.games == 10 and not first.reference
    assert set(world.ladder.standings) == {RANDOM, "version-0"}
    world.write(world.ladder.begin_rating("version-1"))
    assert world.ladder.trial is not None and world.ladder.trial.player == ANCHORS
    anchors = {frozenset((g.first, g.second)) for g in world.ladder.pending_games()}
    assert len(anchors) == 6 and world.rate("version-1").games == 750


def test_draw_probability_is_estimated() -> None:
    world = World(truth={"version-1": 5.0}).anchor()
    assert world.rate("version-1").draw_probability == pytest.approx(DRAWS, abs=0.08)


def test_rating_is_independent_of_game_order() -> None:
    """Results are reported shortest game first, longest first, and shuffled."""
    truth = {"version-1": 7.0}
    rated = []
    for key in (lambda seconds: seconds, lambda seconds: -seconds, lambda seconds: random.Random(seconds).random()):
        world = World(truth=truth, seed=4)
        world.anchor()
        world.write(world.ladder.begin_rating("version-1"))
        while "version-1" not in world.ladder.standings:
            games = []
            for game in world.ladder.pending_games():
                score = float(game.seed % 3) / 2  # depends on the game only; wins are short and drawn games long
                games.append((900.0 if score == 0.5 else 200.0 + game.seed % 97, game, score))
            for seconds, game, score in sorted(games, key=lambda g: key(g[0])):
                assert world.ladder.advance() is None  # until all games have ended
                world.write(world.ladder.report_game(game.id, score, seconds, []))
            outcome = world.ladder.advance()
            assert outcome is not None
            world.write(outcome.rows)
        rated.append(world.ladder.standings["version-1"])
    assert rated[0].games == sum(map(sum, rated[0].results.values())) == CONFIG.games_per_rating
    for other in rated[1:]:
        assert other == rated[0]


def test_duplicate_and_unknown_reports_do_not_count() -> None:
    world = World(truth={"version-1": 5.0}).anchor()
    world.write(world.ladder.begin_rating("version-1"))
    game = world.ladder.pending_games()[0]
    assert world.write(world.ladder.report_game(game.id, 1.0, 60.0, []))
    before = dict(world.rows)
    assert world.ladder.report_game(game.id, 0.0, 60.0, []) is None
    assert world.ladder.report_game("0.random.nobody.0.0", 1.0, 60.0, []) is None
    world.rate("version-1")
    assert world.ladder.report_game(game.id, 0.0, 60.0, []) is None  # also after its rating
    assert before != world.rows
    with pytest.raises(ValueError, match="1, 0.5 or 0"):
        world.ladder.report_game(game.id, 0.7, 60.0, [])


def test_games_are_assigned_in_pairs_and_equal_shares() -> None:
    world = World(truth={"version-1": 5.0, "version-2": 5.0}).anchor()
    world.rate("version-1")
    world.write(world.ladder.begin_rating("version-2"))
    games = world.ladder.pending_games()
    assert len({g.id for g in games}) == len(games) == CONFIG.games_per_round
    assert {g.first for g in games} == {"version-2"}
    by_seed: dict[int, set[int]] = {}
    for game in games:
        by_seed.setdefault(game.seed, set()).add(game.side)
    assert all(sides == {0, 1} for sides in by_seed.values())
    met = [sum(g.second == name for g in games) for name in {g.second for g in games}]
    assert max(met) - min(met) <= 2 and {g.second for g in games} == set(
        world.ladder.nearby_references(world.ladder.trial.mu))


def test_opponents_are_near_references_and_always_bots() -> None:
    world = World(truth={"version-1": 1.0, "version-2": 1.0}).anchor()
    world.rate("version-1")
    for name, standing in world.ladder.standings.items():
        standing.mu = {"random": 0.0, "scripted-easy": 9.0, "scripted": 20.0}.get(name, 40.0)
    assert world.ladder.nearby_references(0.0) == ["random", "scripted-easy"]
    assert world.ladder.nearby_references(100.0) in (["scripted-hard"], ["version-1"])
    world.ladder.config = CONFIG.model_copy(update={"required_references": ("scripted",)})
    world.ladder.standings["version-1"].mu = 0.0
    world.write(world.ladder.begin_rating("version-2"))
    assert {"random", "scripted-easy", "scripted"} <= {g.second for g in world.ladder.pending_games()}


def test_misplaced_version_gets_another_round() -> None:
    world = World(RatingConfig(games_per_rating=20, games_per_round=20, games_per_anchor_pair=60), truth={
        "version-1": 19.0}).anchor()
    standing = world.rate("version-1")
    assert standing.games > 20 and {"scripted", "scripted-hard"} & set(standing.results)


def test_references_are_frozen_and_fill_gaps() -> None:
    truth = {f"version-{i}": 2.0 * i for i in range(12)}
    world = World(truth=truth).anchor()
    frozen: dict[str, Any] = {}
    for player in truth:
        world.rate(player)
        for name, skill in world.ladder.references.items():
            assert frozen.setdefault(name, skill) == skill
    versions = sorted(s.mu for n, s in world.ladder.standings.items() if s.reference)
    assert len(versions) > len(TRUTH) and min(np.diff(versions)) > 0
    assert not all(world.ladder.standings[name].reference for name in truth)


def test_aborted_game_is_not_replaced() -> None:
    world = World(truth={"version-1": 5.0, "version-2": 5.0}).anchor()
    world.rate("version-1")
    world.write(world.ladder.begin_rating("version-2"))
    games = world.ladder.pending_games()
    world.write(world.ladder.abort_game(games[0].id))
    assert games[0] not in world.ladder.pending_games() and world.ladder.abort_game(games[0].id) is None
    standing = world.rate("version-2")
    assert standing.aborted == 1 and standing.games == CONFIG.games_per_rating - 1


def test_version_without_games_is_given_up() -> None:
    world = World(truth={"version-1": 5.0}).anchor()
    world.rate("version-1")
    world.write(world.ladder.begin_rating("version-2"))
    for game in world.ladder.pending_games():
        world.write(world.ladder.abort_game(game.id))
    outcome = world.ladder.advance()
    assert outcome is not None and outcome.standings == []
    world.write(outcome.rows)
    assert world.ladder.begin_rating("version-2") is None and world.ladder.begin_rating("version-3") is not None


def test_rating_that_cannot_be_fitted_is_given_up() -> None:
    world = World(truth={"version-1": 5.0}).anchor()
    world.rate("version-1")
    for standing in world.ladder.standings.values():
        standing.mu = math.nan
    world.write(world.ladder.begin_rating("version-2"))
    world.step(lambda game: 1.0)
    assert world.ladder.trial is None and world.ladder.gave_up == "version-2"
    assert world.ladder.begin_rating("version-3") is not None


def test_anchors_are_replayed_when_random_play_has_no_game() -> None:
    world = World(truth={"version-1": 5.0})
    world.rate("version-0")
    world.write(world.ladder.begin_rating("version-1"))
    for game in world.ladder.pending_games():
        aborted = RANDOM in (game.first, game.second)
        world.write(world.ladder.abort_game(game.id) if aborted else world.ladder.report_game(game.id, 1.0, 60.0, []))
    outcome = world.ladder.advance()
    assert outcome is not None and not outcome.standings
    world.write(outcome.rows)
    assert world.ladder.begin_rating("version-1") is not None


def test_rows_restore_the_ladder() -> None:
    """A ladder that reads the rows in mid-round continues exactly there."""
    world = World(truth={"version-1": 5.0, "version-2": 6.0}).anchor()
    world.rate("version-1")
    world.write(world.ladder.begin_rating("version-2"))
    for game in world.ladder.pending_games()[:7]:
        world.write(world.ladder.report_game(game.id, 1.0, 60.0, []))
    again = Ladder(CONFIG, 0)
    again.apply_rows(dict(reversed(world.rows.items())), True)
    assert again.pending_games() == world.ladder.pending_games() and again.trial == world.ladder.trial
    assert again.standings == world.ladder.standings
    assert [s.player for s in parse_standings(world.rows)] == sorted(
        again.standings, key=lambda n: -again.standings[n].mu)


def test_rows_of_an_earlier_release_are_removed() -> None:
    world = World(truth={"version-1": 5.0})
    world.rows = {"state": {"format": 1}, "win_rates": {}}
    world.ladder.apply_rows(world.rows, True)
    assert parse_standings(world.rows) == []
    world.anchor().rate("version-1")
    assert not {"state", "win_rates"} & set(world.rows) and world.ladder.has_rated_anchors


def test_random_play_can_be_the_only_anchor() -> None:
    world = World(RatingConfig(anchors=("random",), games_per_rating=10), truth={"version-1": 3.0})
    assert world.rate("version-0").results.keys() == world.rate("version-1").results.keys() == {RANDOM}
    assert world.ladder.standings[RANDOM].mu == 0.0 and ANCHORS not in world.ladder.standings

"""Rounds of a rating by hand: pairings, shares, seeds, references and rows, on standings that are given."""

from collections import Counter
from typing import Any

import pytest

from five.agent.config import RatingConfig
from five.agent.ladder import EXTRA_ROUNDS, AssignedGame, Ladder, RatingOutcome
from five.agent.ratings import RANDOM
from five.agent.standings import Standing

CONFIG = RatingConfig(games_per_rating=80, games_per_round=40, required_references=(), reference_spacing=3.0,
                      max_reference_distance=10.0)
ANCHOR_MUS = {RANDOM: 0.0, "scripted-easy": 6.0, "scripted": 11.0, "scripted-hard": 15.0}


def rows_of(standings: dict[str, Standing]) -> dict[str, Any]:
    return {"format": 2, **Ladder._rating_rows(standings.values())}


def rated(mus: dict[str, float], sigma: float = 1.0, reference: bool = True) -> dict[str, Standing]:
    return {name: Standing(name, mu, sigma, number, 0.1, reference) for number, (name, mu) in enumerate(mus.items())}


def ladder(config: RatingConfig = CONFIG, versions: dict[str, Standing] | None = None, seed: int = 0) -> Ladder:
    """Return a ladder with rated anchors and an unreferenced first version, or other versions."""
    made = Ladder(config, seed)
    others = {"version-0": Standing("version-0", 0.5, 1.0, 9, 0.1)} if versions is None else versions
    made.apply_rows(rows_of({**rated(ANCHOR_MUS), **others}), True)
    return made


def write(made: Ladder, rows: dict[str, Any] | None) -> dict[str, Any]:
    assert rows is not None
    made.apply_rows(rows, False)
    return rows


def pairs_met(made: Ladder) -> dict[str, int]:
    """Return the pairs of games by opponent, in order of assignment."""
    met = Counter(game.second for game in made.pending_games())
    assert all(count % 2 == 0 for count in met.values())
    return {name: count // 2 for name, count in met.items()}


def play(made: Ladder, score: float = 1.0) -> RatingOutcome:
    """End all pending games with that score and return the outcome of the round."""
    for game in made.pending_games():
        write(made, made.report_game(game.id, score, 60.0, []))
    outcome = made.advance()
    assert outcome is not None
    made.apply_rows(outcome.rows, False)
    return outcome


@pytest.mark.parametrize(("mu", "games", "expected"), [
    (0.0, 40, {RANDOM: 10, "scripted-easy": 10}),
    (5.0, 40, {"scripted-easy": 5, RANDOM: 5, "scripted": 5, "scripted-hard": 5}),
    (4.9, 40, {"scripted-easy": 7, RANDOM: 7, "scripted": 6}),  # the strongest bot is 10.1 points away
    (4.9, 39, {"scripted-easy": 7, RANDOM: 7, "scripted": 6}),  # an odd number of games is rounded up to pairs
    (4.9, 38, {"scripted-easy": 7, RANDOM: 6, "scripted": 6}),
    (4.9, 3, {"scripted-easy": 1, RANDOM: 1}),
    (25.0, 40, {"scripted-hard": 20}), (25.1, 40, {"scripted-hard": 20}), (-99.0, 40, {RANDOM: 20})])
def test_near_references_get_equal_shares_of_a_round(mu: float, games: int, expected: dict[str, int]) -> None:
    made = ladder(CONFIG.model_copy(update={"games_per_round": games}))
    write(made, made.begin_rating("version-1", mu))
    assert list(pairs_met(made).items()) == list(expected.items())
    assert made.trial is not None and (made.trial.mu, made.trial.rounds, made.trial.number) == (mu, 1, 10)


def test_expected_rating_is_that_of_the_last_rated_version() -> None:
    versions = rated({"version-5": 30.0, "version-4": 2.0}, reference=False)
    versions["version-4"].trial, versions["version-5"].trial = 20, 21
    made = ladder(versions=versions)
    assert made.last_rated == versions["version-5"]
    write(made, made.begin_rating("version-6"))
    assert made.trial is not None and (made.trial.mu, made.trial.number) == (30.0, 22)


@pytest.mark.parametrize(("games", "pairs"), [(2, 1), (3, 2), (4, 2), (39, 20), (40, 20)])
def test_anchors_play_each_other_in_pairs(games: int, pairs: int) -> None:
    """An odd number of games is rounded up. The rating is numbered after those of random play and the first version."""
    made = Ladder(CONFIG.model_copy(update={"games_per_anchor_pair": games}))
    first = {**rated({RANDOM: 0.0}), "version-0": Standing("version-0", 0.5, 1.0, 7, 0.1)}
    made.apply_rows(rows_of(first), True)
    write(made, made.begin_rating("version-1"))
    assert made.trial is not None and (made.trial.player, made.trial.number) == ("anchors", 8)
    assert made.trial.pairings == [(one, other, pairs) for i, one in enumerate(CONFIG.anchors)
                                   for other in CONFIG.anchors[i + 1:]]
    assert all(type(count) is int for *_, count in made.trial.pairings)
    assert {len([g for g in made.pending_games() if (g.first, g.second) == (RANDOM, "scripted")])} == {2 * pairs}


def test_first_ratings_are_numbered_from_0() -> None:
    made = Ladder(CONFIG)
    rows = write(made, made.begin_rating("version-0"))
    assert rows[f"rated:{RANDOM}"]["trial"] == 0 and rows["format"] == 2
    write(made, made.begin_rating("version-0"))
    assert made.trial is not None and (made.trial.number, made.trial.mu) == (1, 0.0)
    assert pairs_met(made) == {RANDOM: 20}


def test_required_references_get_at_least_a_pair() -> None:
    far = CONFIG.model_copy(update={"required_references": ("scripted-hard", "scripted-easy")})
    made = ladder(far)
    write(made, made.begin_rating("version-1", 0.0))
    assert pairs_met(made) == {RANDOM: 7, "scripted-easy": 7, "scripted-hard": 6}
    made = ladder(far.model_copy(update={"games_per_round": 2}))
    write(made, made.begin_rating("version-1", 0.0))
    assert pairs_met(made) == {RANDOM: 1, "scripted-hard": 1}


def test_next_round_plays_the_remaining_games_least_met_first() -> None:
    made = ladder(CONFIG.model_copy(update={"games_per_rating": 60}))
    write(made, made.begin_rating("version-1", 4.9))
    first = {game.id for game in made.pending_games()}
    outcome = play(made, 0.5)
    assert not outcome.standings and made.trial is not None and made.trial.rounds == 2
    later = made.pending_games()
    assert len(first) == 40 and len(later) == 20 and first.isdisjoint(game.id for game in later)
    assert sum(pairs_met(made).values()) == 10
    numbers = {name: sorted({game.pair for game in later if game.second == name}) for name in pairs_met(made)}
    begun = {"scripted-easy": 7, RANDOM: 7, "scripted": 6}
    for name, pairs in numbers.items():
        start = begun.get(name, 0)
        assert pairs == list(range(start, start + len(pairs))), "pairs are numbered on"
    assert "scripted-hard" not in numbers or next(iter(numbers)) == "scripted-hard"
    done = play(made, 0.5)
    assert [standing.player for standing in done.standings] == ["version-1"] and done.standings[0].games == 60
    assert len(done.games) == 60 and made.trial is None


@pytest.mark.parametrize(("rating", "more"), [(40, 0), (41, 0), (42, 20), (60, 20), (61, 22), (65, 26), (100, 40)])
def test_later_round_has_at_least_half_of_a_full_one(rating: int, more: int) -> None:
    """The rating ends when one game is missing. Otherwise the missing games are played in pairs."""
    made = ladder(CONFIG.model_copy(update={"games_per_rating": rating}))
    write(made, made.begin_rating("version-1", 4.9))
    outcome = play(made, 0.5)
    assert len(made.pending_games()) == more and bool(outcome.standings) is not bool(more)


def test_version_far_above_all_references_ends_after_its_games() -> None:
    """Rating ends once the version has met all references above it."""
    made = ladder(CONFIG.model_copy(update={"games_per_rating": 40}))
    write(made, made.begin_rating("version-1", 30.0))
    assert pairs_met(made) == {"scripted-hard": 20}
    assert play(made).standings


def test_misplaced_version_gets_a_limited_number_of_rounds() -> None:
    """A version that loses all games moves to the nearest unmet reference below, half a round of games each time."""
    references = rated({f"version-{i}": 30.0 + 30.0 * i for i in range(1, 12)}, sigma=0.1)
    config = CONFIG.model_copy(update={"games_per_rating": 40, "games_per_round": 40})
    made = ladder(config, {"version-0": Standing("version-0", 0.5, 1.0, 9, 0.1), **references})
    write(made, made.begin_rating("version-99", 30.0 + 30.0 * 11))
    rounds = [sum(pairs_met(made).values())]
    while not (outcome := play(made, 0.0)).standings:
        rounds.append(sum(pairs_met(made).values()))
    assert rounds[0] == 20 and set(rounds[1:]) <= {10}
    assert 2 <= len(rounds) <= 1 + EXTRA_ROUNDS
    assert outcome.standings[0].games == 2 * sum(rounds)


def test_seeds_depend_on_the_pair_and_the_run() -> None:
    def games(seed: int, player: str = "version-1") -> list[AssignedGame]:
        made = ladder(seed=seed)
        write(made, made.begin_rating(player, 4.9))
        return made.pending_games()

    one = games(1)
    assert one == games(1)
    by_pair: dict[tuple[str, int], list[AssignedGame]] = {}
    for game in one:
        by_pair.setdefault((game.second, game.pair), []).append(game)
    assert all([game.side for game in both] == [0, 1] and both[0].seed == both[1].seed for both in by_pair.values())
    assert len({game.seed for game in one}) == len(by_pair) == 20
    assert not {game.seed for game in one} & {game.seed for game in games(2)}
    assert not {game.seed for game in one} & {game.seed for game in games(1, "version-2")}
    assert one[1].id == "10.version-1.scripted-easy.0.1" and all(0 <= game.seed < 1 << 64 for game in one)


@pytest.mark.parametrize(("mu", "sigma", "becomes"), [
    (18.0, 1.0, True), (17.9, 1.0, False),  # 3 points above the strongest, or less
    (18.0, 50.0, True),  # stronger than all references: with any σ
    (3.0, 5.0, True), (3.0, 5.1, False),  # between two references: σ of at most half the distance
    (2.9, 1.0, False), (3.1, 1.0, False), (-3.0, 5.0, True), (-3.0, 5.1, False)])
def test_version_becomes_a_reference_in_a_gap(mu: float, sigma: float, becomes: bool) -> None:
    made = ladder()
    found = made._becomes_reference(Standing("version-1", mu, sigma, 10, 0.1), list(ANCHOR_MUS.values()))
    assert found is becomes


def test_no_version_becomes_a_reference_before_the_anchors() -> None:
    made = Ladder(CONFIG)
    made.apply_rows(rows_of(rated({RANDOM: 0.0})), True)
    assert not made._becomes_reference(Standing("version-0", 20.0, 1.0, 1, 0.1), [0.0])


def test_results_and_scores_by_opponent() -> None:
    """Two pairs against random play (won and drawn, lost twice), from both players' views."""
    made = ladder(CONFIG.model_copy(update={"games_per_round": 8, "games_per_rating": 8}))
    write(made, made.begin_rating("version-1", 0.0))
    scores = {"random.0.0": 1.0, "random.0.1": 0.5, "random.1.0": 0.0, "random.1.1": 0.0}
    for game in made.pending_games():
        write(made, made.report_game(game.id, scores.get(game.id.removeprefix("10.version-1."), 1.0), 60.0, [1.5]))
    assert made.trial is not None
    results, found = made._opponent_results(made.trial, "version-1")
    assert results == {RANDOM: [1, 1, 2], "scripted-easy": [4, 0, 0]}
    assert found[RANDOM][0] == 0.375 and found["scripted-easy"][0] == 1.0
    assert found[RANDOM][1] < 0.375 < found[RANDOM][2]
    reverse, mirrored = made._opponent_results(made.trial, RANDOM)
    assert reverse == {"version-1": [2, 1, 1]}
    assert mirrored["version-1"] == pytest.approx([0.625, 1 - found[RANDOM][2], 1 - found[RANDOM][1]])


def test_reported_game_is_stored_with_its_numbers() -> None:
    made = ladder()
    write(made, made.begin_rating("version-1", 0.0))
    game = made.pending_games()[0]
    rows = write(made, made.report_game(game.id, 0.5, 61.5, [1.0, 2.0]))
    (name,) = rows
    assert name == f"game:{game.id}" and rows[name]["score"] == 0.5
    assert made.report_game(game.id, 0.5, 61.5, []) is None and game not in made.pending_games()


def test_rated_player_or_open_trial_begins_nothing() -> None:
    made = ladder()
    assert made.begin_rating("version-0") is None
    write(made, made.begin_rating("version-1"))
    assert made.begin_rating("version-2") is None
    made.apply_rows({"open": None, "gave_up": "version-1"}, False)
    assert made.begin_rating("version-1") is None and made.begin_rating("version-2") is not None
    made.apply_rows({"gave_up": None}, False)
    assert made.gave_up == ""


def test_retired_reference_keeps_its_rating_and_cancels_its_games() -> None:
    versions = {"version-0": Standing("version-0", 0.5, 1.0, 9, 0.1), **rated({"version-3": 4.0})}
    made = ladder(versions=versions)
    write(made, made.begin_rating("version-9", 4.0))
    (first, *_) = made.pending_games()
    write(made, made.report_game(first.id, 1.0, 60.0, []))
    rows = write(made, made.retire_references(["version-3", "version-0", "nobody"]))
    assert rows.keys() == {"rated:version-3", "open", f"game:{first.id}"}
    assert "version-3" not in made.references and made.standings["version-3"].mu == 4.0 and made.trial is None
    assert made.retire_references(["version-3", "version-0"]) is None
    write(made, made.begin_rating("version-9", 60.0))
    assert set(pairs_met(made)) == {"scripted-hard"}
    assert made.retire_references(["version-3"]) is None
    assert made.retire_references([RANDOM]).keys() == {f"rated:{RANDOM}"}  # type: ignore[union-attr]
    assert made.retire_references(["version-9"]) == {"open": None}


def test_removed_anchor_is_no_version_and_keeps_its_rating() -> None:
    version = Standing("version-0", 0.5, 1.0, 1, 0.1)
    fewer = ladder(CONFIG.model_copy(update={"anchors": (RANDOM, "scripted")}), {"version-0": version})
    assert fewer.standings["scripted-hard"].trial == 3 and fewer.last_rated == version
    retired = write(fewer, fewer.retire_references(["scripted-hard"]))
    made = ladder(versions={"version-0": version})
    made.apply_rows(retired, False)
    assert "scripted-hard" not in made.references and made.has_rated_anchors
    assert write(made, made.begin_rating("version-1")).keys() == {"rated:scripted-hard"}
    assert made.references["scripted-hard"].mu == ANCHOR_MUS["scripted-hard"] and made.trial is None
    write(made, made.begin_rating("version-1", 20.0))
    assert set(pairs_met(made)) == {"scripted-hard", "scripted"}


def test_games_that_arrive_before_their_trial_count() -> None:
    made, early = ladder(), ladder()
    opened = write(made, made.begin_rating("version-1", 0.0))
    games = made.pending_games()
    row = write(made, made.report_game(games[0].id, 1.0, 60.0, []))
    stale = {"game:9.version-0.random.0.0": {"score": 1.0}}
    early.apply_rows(row | stale, False)
    assert early.trial is None
    early.apply_rows(opened, False)
    assert early.trial == made.trial and early.pending_games() == games[1:]
    # The open row is written again when a game is aborted, and the games that have ended stay.
    early.apply_rows(opened, False)
    assert early.pending_games() == games[1:]


def test_standing_is_removed_by_an_empty_row() -> None:
    made = ladder()
    made.apply_rows({"rated:version-0": None, "rated:nobody": None}, False)
    assert "version-0" not in made.standings and made.last_rated is None

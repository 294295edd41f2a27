"""Games of bots: their order and seeds, and the statistics of the spectator's view."""

from typing import Any

import numpy as np
import pytest

from dota.config import GameConfig, evaluation_game
from dota.vec_game import STATS, TEAMS, VecGame, Winner
from five.evaluation import bot_games
from five.evaluation.bot_games import (
    MARKED,
    TIMED_ITEMS,
    BotGameRecord,
    TeamRecord,
    _GameObserver,
    full_game_config,
    play,
    quick_game_config,
)


def short(seconds: float = 20.0) -> GameConfig:
    return quick_game_config().model_copy(update={"max_game_seconds": seconds})


@pytest.fixture(scope="module")
def lane() -> list[BotGameRecord]:
    """A pair of games of one hero a side, the hard bot against random play, with marks at 1 and 2 minutes."""
    game = full_game_config().model_copy(update={"heroes_per_team": 1, "hero_pool": ["sniper"], "mirror_match": True,
                                                 "max_game_seconds": 300.0})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bot_games, "MARKS", (1, 2))
        patched.setattr(bot_games, "OBSERVE_SECONDS", 30.0)
        return play(game, "scripted-hard", "random", 1, seed=4, concurrent=2)


def test_bots_swap_sides_in_each_pair(lane: list[BotGameRecord]) -> None:
    assert [(game.pair, game.first_side) for game in lane] == [(0, 0), (0, 1)]
    for game in lane:
        hard, random = game.teams[game.first_side], game.teams[1 - game.first_side]
        assert hard.last_hits > random.last_hits and hard.denies > random.denies == 0
        assert all(hard.marks[2][name] > random.marks[2][name] for name in ("net_worth", "xp", "level"))
        assert game.seconds == 300 and game.winner == Winner.DRAW and game.score == 0.5


def test_marks_hold_the_statistics_of_their_minute(lane: list[BotGameRecord]) -> None:
    game = full_game_config().model_copy(update={"heroes_per_team": 1, "hero_pool": ["sniper"], "mirror_match": True,
                                                 "max_game_seconds": 60.0})
    ended = play(game, "scripted-hard", "random", 1, seed=4, observe=False)
    for whole, first_minute in zip(lane, ended, strict=True):
        for team, before in zip(whole.teams, first_minute.teams, strict=True):
            one, two = team.marks[1], team.marks[2]
            assert list(team.marks) == [1, 2]
            assert one["last_hits"] == before.last_hits
            assert one["xp"] <= two["xp"] and 200 < one["net_worth"] != one["xp"]
            assert one["last_hits"] <= two["last_hits"] <= team.last_hits
    assert any(team.marks[1]["last_hits"] > 0 for game in lane for team in game.teams)


def test_fallen_towers_are_counted_for_their_owner(lane: list[BotGameRecord]) -> None:
    lost = {game.first_side: [team.towers_lost for team in game.teams] for game in lane}
    assert any(any(towers) for towers in lost.values()), "a tower of the random bot falls in five minutes"
    for game in lane:
        towers = lost[game.first_side]
        assert towers[game.first_side] == 0 and towers[1 - game.first_side] in (0, 1)
        assert (game.first_tower is not None) == any(towers)
        assert game.first_tower is None or 200 < game.first_tower <= 300


def test_first_purchases_are_timed(lane: list[BotGameRecord]) -> None:
    bought = {(game.first_side, side, item): minutes for game in lane for side in range(TEAMS)
              for item, minutes in game.teams[side].items.items()}
    assert {item for _, _, item in bought} >= {"item_boots", "item_magic_wand"}
    for (_, _, item), minutes in bought.items():
        assert item in TIMED_ITEMS and len(minutes) == 1, f"{item}: one hero has one first purchase"
        assert 0 < minutes[0] <= 5 and minutes[0] * 60 == pytest.approx(round(minutes[0] * 2) * 30, abs=1)


def test_without_observation_only_results_are_recorded() -> None:
    seen: list[BotGameRecord] = []
    (game,) = play(short(40.0), "scripted", "scripted", 1, observe=False, on_game=seen.append)
    assert seen == [game] == play(short(40.0), "scripted", "scripted", 1, seed=0, observe=False)
    assert game.seconds == pytest.approx(40) and game.first_tower is None
    assert all(not team.marks and not team.items and team.towers_lost == 0 for team in game.teams)


@pytest.mark.parametrize("concurrent", [1, 50])
def test_games_are_equal_for_any_number_at_once(concurrent: int) -> None:
    played: list[tuple[int, int]] = []
    found = play(short(40.0), "scripted", "scripted-easy", 2, seed=5, concurrent=concurrent,
                 on_game=lambda game: played.append((game.pair, game.first_side)))
    assert [(game.pair, game.first_side) for game in found] == [(0, 0), (0, 1), (1, 0), (1, 1)] == sorted(played)
    assert found == play(short(40.0), "scripted", "scripted-easy", 2, seed=5)
    assert found != play(short(40.0), "scripted", "scripted-easy", 2, seed=6)
    assert found[0].teams != found[2].teams, "each pair has its own seed"


@pytest.mark.parametrize(("first", "second", "pairs", "words"), [
    ("scripted", "random", 0, "at least 1 is required"), ("hard", "random", 1, "unknown bot 'hard'"),
    ("random", "hard", 1, "unknown bot 'hard'; known bots: .*scripted")])
def test_unknown_bots_and_no_pairs_are_refused(first: str, second: str, pairs: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        play(short(), first, second, pairs)


@pytest.mark.parametrize(("winner", "side", "score"), [
    (Winner.RADIANT, 0, 1), (Winner.RADIANT, 1, 0), (Winner.DIRE, 0, 0), (Winner.DIRE, 1, 1), (Winner.DRAW, 0, 0.5),
    (Winner.DRAW, 1, 0.5)])
def test_score_is_of_the_first_bot(winner: Winner, side: int, score: float) -> None:
    assert BotGameRecord(0, side, winner, 1.0, (TeamRecord(), TeamRecord())).score == score


def test_aegis_is_counted_once_for_the_team() -> None:
    observer = _GameObserver()
    for minute, taken in enumerate(([0, 0], [1, 0], [0, 0.5], [0, 0], [1, 0])):
        observer.count_aegis(np.array(taken, np.float32), 60.0 * minute)
    assert [(team.roshans, team.first_roshan) for team in observer.teams] == [(2, 60), (1, 120)]


def test_quick_games_are_short_mirror_matches() -> None:
    quick, full = quick_game_config(), full_game_config()
    assert (quick.mode, quick.heroes_per_team, quick.hero_pool) == ("1v1_mid", 1, ["nevermore"])
    assert not quick.neutrals and not quick.roshan and not quick.runes
    slots = quick.observation
    assert (slots.neutral_creeps, slots.buildings, slots.wards, slots.couriers) == (0, 3, 0, 0)
    assert (quick.start_seconds, quick.max_game_seconds, full.max_game_seconds) == (-30, 900, 4800)
    assert full.heroes_per_team == 5 and len(full.hero_pool) > 5 and full.neutrals


class GivenViews(VecGame):
    """A game whose spectator's view, time and statistics a test sets."""

    def __init__(self) -> None:
        super().__init__(evaluation_game(quick_game_config()), 1, 0, 1, observations=False)
        self.units: list[dict[str, Any]] = []

    def spectate(self, index: int) -> dict[str, Any]:
        return {"units": self.units}

    def observe(self, observer: _GameObserver, seconds: float, *units: dict[str, Any]) -> None:
        self.units = list(units)
        self.game_time[0] = seconds
        observer.observe(self, 0)


def unit(kind: str, team: int, hero: int = -1, items: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"kind": kind, "team": team, "hero": hero, "items": list(items)}


def towers(radiant: int, dire: int) -> list[dict[str, Any]]:
    """Towers of both teams, and units of other kinds."""
    return [unit("tower", 0)] * radiant + [unit("tower", 1)] * dire + [unit("barracks", 0), unit("creep", 1)]


@pytest.fixture
def game() -> GivenViews:
    return GivenViews()


@pytest.fixture
def observer() -> _GameObserver:
    return _GameObserver()


def lost(observer: _GameObserver) -> list[int]:
    return [team.towers_lost for team in observer.teams]


def test_towers_are_lost_by_their_owner(game: GivenViews, observer: _GameObserver) -> None:
    game.observe(observer, 0.0, *towers(3, 2))
    assert lost(observer) == [0, 0] and observer.first_tower is None, "the first one counts the towers"
    game.observe(observer, 240.0, *towers(3, 1))
    assert lost(observer) == [0, 1] and observer.first_tower == 240
    game.observe(observer, 300.0, *towers(1, 1))
    assert lost(observer) == [2, 1] and observer.first_tower == 240, "the first tower stays the first"


def test_purchases_have_the_minute_of_each_hero(game: GivenViews, observer: _GameObserver) -> None:
    boots, wand = "item_boots", "item_magic_wand"
    courier = unit("courier", 1, items=(boots,))
    game.observe(observer, 60.0, courier, unit("hero", 0, 0, ("item_tango", "", boots)), unit("hero", 1, 5))
    game.observe(observer, 90.0, courier, unit("hero", 0, 0, (boots, wand)), unit("hero", 0, 1, (boots,)))
    game.observe(observer, 120.0, unit("hero", 0, 0), unit("hero", 1, 5, (wand,)))
    game.observe(observer, 150.0, unit("hero", 0, 0, (boots,)))  # bought again
    assert observer.teams[0].items == {boots: [1, 1.5], wand: [1.5]}, "couriers and other items do not count"
    assert observer.teams[1].items == {wand: [2]}


def test_marks_are_taken_at_the_start_of_their_minute(game: GivenViews, observer: _GameObserver) -> None:
    def observe(seconds: float, scale: float) -> None:
        for at, name in enumerate(MARKED, 1):
            game.stats[0, :, :, STATS.index(name)] = [[scale * at], [scale * at + 0.5]]
        game.observe(observer, seconds)

    for seconds, scale in ((299.0, 1.0), (300.0, 2.0), (330.0, 3.0), (615.0, 4.0), (630.0, 5.0)):
        observe(seconds, scale)
    for team, more in zip(observer.teams, (0, 0.5), strict=True):
        assert team.marks == {minute: {name: scale * at + more for at, name in enumerate(MARKED, 1)}
                              for minute, scale in ((5, 2), (10, 4))}


def test_games_are_observed_in_intervals_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    observed: list[int] = []
    observe = _GameObserver.observe

    def note(self: _GameObserver, games: VecGame, slot: int) -> None:
        observed.append(round(float(games.game_time[slot])))
        observe(self, games, slot)

    monkeypatch.setattr(_GameObserver, "observe", note)
    play(quick_game_config().model_copy(update={"max_game_seconds": 25.0}), "random", "random", 1)
    assert observed == [0, 10, 20, 25], "every 10 seconds from the horn, and when the game is over"

"""Deaths of a match: one for each that the game counts, with the fight around it."""

from typing import Any

import pytest

from dota.events import Event, EventKind
from five.evaluation.bot_games import quick_game_config
from five.evaluation.deaths import Death, DeathRecorder, summarise
from five.evaluation.match import Contestant, play

# Radiant's hero 0, which dies, on the way between the fountains, a quarter of it from its own.
PLACES = {0: (0.0, 0.0), 1: (1000.0, 0.0), 2: (5000.0, 0.0), 5: (0.0, 1399.0), 6: (0.0, 1401.0)}
FOUNTAINS = {0: (-3000.0, 0.0), 1: (9000.0, 0.0)}


class PlacedHeroes:
    """Stand-in for a game with heroes at ``PLACES``, of which hero 0 has ``health`` of 1,000."""

    def __init__(self) -> None:
        self.game_time = [100.0]
        self.health = 1000.0
        self.new_events: list[Event] = []

    def events(self, slot: int) -> list[Event]:
        return self.new_events

    def spectate(self, slot: int) -> dict[str, Any]:
        health = {hero: self.health if hero == 0 else 700.0 for hero in PLACES}
        heroes = [{"kind": "hero", "hero": hero, "team": hero // 5, "x": x, "y": y, "alive": health[hero] > 0,
                   "hp": health[hero], "max_hp": 1000.0} for hero, (x, y) in PLACES.items()]
        return {"units": [*heroes, *({"kind": "fountain", "hero": -1, "team": team, "x": x, "y": y}
                                     for team, (x, y) in FOUNTAINS.items())]}


def death_after(health: list[float], first_side: int = 0, **event: Any) -> Death:
    """Return the death of hero 0 after a second at each of these amounts of health."""
    game: Any = PlacedHeroes()
    recorder = DeathRecorder()
    for game.health in health:
        recorder(game, 0, first_side)
        game.game_time[0] += 1.0
    game.health, killer = 0.0, {"other_name": "npc_dota_hero_sniper", "other_hero": 5, **event}
    game.new_events = [Event(3000, game.game_time[0], EventKind.HERO_DEATH, 0, hero=0, **killer)]
    recorder(game, 0, first_side)
    (death,) = recorder.deaths
    return death


def test_every_death_of_a_match_is_recorded() -> None:
    recorder = DeathRecorder()
    match = play(quick_game_config(), Contestant.bot("scripted-hard"), Contestant.bot("scripted"), pairs=1, seed=4,
                 concurrent=2, on_step=recorder)
    for first, statistics in zip((True, False), match.statistics(), strict=True):
        own = [death for death in recorder.deaths if death.of_first == first]
        assert summarise(own, len(match.games), 1)["per_game"] == pytest.approx(statistics["deaths"])
    assert recorder.deaths
    longest = max(game.seconds for game in match.games)
    for death in recorder.deaths:
        assert 0 < death.seconds <= longest and death.allies == 0 and death.enemies <= 1
        assert 0 < death.health_before <= 1 and 0 < death.advance < 1


def test_a_death_tells_the_fight_around_it() -> None:
    death = death_after([1000.0] * 5 + [800.0, 600.0, 500.0, 400.0, 300.0, 200.0, 100.0, 50.0])
    assert death == Death(True, 113.0, "hero", allies=1, enemies=1, health_before=0.8, advance=0.25)
    assert not death_after([500.0], first_side=1).of_first


def test_health_before_a_death_skips_the_time_while_the_hero_was_dead() -> None:
    assert death_after([0.0, 0.0, 0.0, 900.0, 100.0]).health_before == 0.9


@pytest.mark.parametrize(("unit", "owner", "killer"), [
    ("npc_dota_badguys_tower1_mid", -1, "tower"), ("npc_dota_creep_goodguys_melee", -1, "creep"),
    ("npc_dota_neutral_kobold", -1, "neutral"), ("npc_dota_roshan", -1, "other"), ("", -1, "other"),
    ("npc_dota_creep_goodguys_melee", 7, "hero")])
def test_killers_are_counted_by_kind(unit: str, owner: int, killer: str) -> None:
    """A creep that a hero owns counts as the hero."""
    assert death_after([500.0], other_name=unit, other_hero=owner).killer == killer


def test_summary_of_a_side() -> None:
    deaths = [Death(True, 100.0, "hero", 0, 3, 0.5, 0.2), Death(True, 200.0, "tower", 1, 1, 0.7, 0.6)]
    summary = summarise(deaths, games=4, heroes=5)
    assert summary.pop("killers") == {"hero": 0.5, "tower": 0.5}
    assert summary == pytest.approx({"per_game": 0.1, "seconds": 150.0, "allies": 0.5, "enemies": 2.0,
                                     "health_before": 0.6, "advance": 0.4})
    assert summarise([], 4, 5) == {"per_game": 0.0, "killers": {}, "seconds": None, "allies": None, "enemies": None,
                                   "health_before": None, "advance": None}

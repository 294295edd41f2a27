"""A player's view and events are limited to what the team sees."""

import numpy as np
import pytest

from dota.events import EventKind
from dota.play import InteractiveGame
from dota.vec_game import Controller
from tests.dota.playing import SCHEMA, played, seen
from tests.dota.small_games import TEAM

UNIT, HERO = SCHEMA.table("unit"), SCHEMA.table("hero")
HIDDEN = ("gold", "net_worth", "xp", "last_hits", "denies", "damage", "buyback", "talents", "talents_high")
HIDDEN_KINDS = {EventKind.LEARNED, EventKind.BOUGHT, EventKind.SOLD, EventKind.ASSEMBLED}


def check_frame(game: InteractiveGame, team: int, ever: set[int]) -> None:
    """Compare a team's view with the core's own vision; ``ever``: enemy heroes seen before."""
    whole, own = seen(game, None), seen(game, team)
    units = {u["slot"]: u for u in game.spectate()["units"]}
    look = UNIT.column("look")
    for slot in np.flatnonzero(own["unit"].any(axis=1)):
        u = units[int(slot)]
        row, full = own["unit"][slot], whole["unit"][slot]
        target = int(row[UNIT.column("target")])
        if target:
            aimed = units[target - 1]
            assert aimed["team"] == team or aimed["seen_by"][team]
        if u["team"] == team:
            np.testing.assert_array_equal(np.delete(row, [look, UNIT.column("target")]),
                                          np.delete(full, [look, UNIT.column("target")]))
            assert not row[look] & (1 << 7 + 1 - team)
        else:
            assert u["seen_by"][team] and u["alive"]
            assert row[UNIT.column("act")] < 256  # no order
    for slot, u in units.items():
        assert own["unit"][slot].any() == (u["team"] == team or (u["alive"] and u["seen_by"][team]))
        if u["hero"] >= 0 and u["team"] != team and u["alive"] and u["seen_by"][team]:
            ever.add(u["hero"])
    for hero in range(5 * (1 - team), 5 * (2 - team)):
        row = own["hero"][hero]
        assert not any(row[HERO.column(name)] for name in HIDDEN)
        body = int(row[HERO.column("unit")])
        assert not body or units[body - 1]["seen_by"][team]
        items = own["item"][hero * 16:hero * 16 + 16]
        assert not items[6:15].any()  # backpack and stash
        if hero not in ever:
            assert not items.any() and not own["ability"][hero * 6:hero * 6 + 6].any()
    mates = slice(5 * team, 5 * team + 5)
    np.testing.assert_array_equal(own["hero"][mates], whole["hero"][mates])
    fogs = ("radiant_fog", "dire_fog")
    np.testing.assert_array_equal(own[fogs[team]], whole[fogs[team]])
    assert not own[fogs[1 - team]].any()
    for table in ("projectile", "area", "ground_item"):
        rows = own[table].any(axis=1)
        assert not (rows & ~whole[table].any(axis=1)).any()
        x, y = (SCHEMA.table(table).column(c) for c in ("x", "y"))
        for row in own[table][rows]:
            of = -1 if table == "ground_item" else int(row[1]) >> 4 & 3
            assert of == team or in_sight(own[fogs[team]], int(row[x]), int(row[y]))
    kinds = len(own["stock"]) // 2
    mine = slice(kinds * team, kinds * team + kinds)  # stock of the team's own shop only
    np.testing.assert_array_equal(own["stock"][mine], whole["stock"][mine])
    assert own["stock"][mine, 0].all() and not np.delete(own["stock"], np.arange(2 * kinds)[mine], axis=0).any()
    assert own["clock"][0, SCHEMA.table("clock").column("roshan")] == 0


def in_sight(fog: np.ndarray, x: int, y: int) -> bool:
    """Return whether the team sees the cell of a quantised position or a neighbour: rounding may cross a border."""
    cells = [(x + dx) * 130 // 65536 + 130 * ((y + dy) * 130 // 65536) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]
    return any(0 <= c < 130 * 130 and fog[c >> 3] >> (c & 7) & 1 for c in cells)


def visible(game: InteractiveGame) -> list[set[tuple[int, int]]]:
    """Return the handles of the units that each team sees."""
    units = game.spectate()["units"]
    return [{(u["slot"], u["generation"]) for u in units if u["team"] == t or (u["alive"] and u["seen_by"][t])}
            for t in range(2)]


def check_events(game: InteractiveGame, team: int, before: set[tuple[int, int]], after: set[tuple[int, int]]) -> int:
    """Compare a team's events with all events and its vision before and after; return the number of hidden ones."""
    told, all_of_it = game.events(team), game.events()
    assert len(told) <= len(all_of_it)
    for event in told:
        if event.team != team:
            assert event.kind not in HIDDEN_KINDS
            if event.kind in (EventKind.LAST_HIT, EventKind.HERO_KILL, EventKind.BUYBACK):
                assert event.value == 0
        for slot, generation, whose in ((event.unit, event.generation, event.hero),
                                        (event.other, event.other_generation, event.other_hero)):
            if slot < 0 or (event.team == team and slot == event.unit) or (whose >= 0 and whose // 5 == team):
                continue
            assert (slot, generation) in before | after
    own = [e for e in all_of_it if e.team == team]
    assert [e._replace(other=-1, other_generation=0, other_name="", other_hero=-1) for e in told if e.team == team] == \
        [e._replace(other=-1, other_generation=0, other_name="", other_hero=-1) for e in own]
    return len(all_of_it) - len(told)


def play_through(game: InteractiveGame, steps: int, every: int = 1) -> tuple[int, int]:
    """Play on and check all frames of every few timesteps; return the numbers of visible and of hidden events."""
    ever: list[set[int]] = [set(), set()]
    told = kept = 0
    for step in range(steps):
        if game.winner:
            break
        if step % every:
            game.step()
            for u in game.spectate()["units"]:
                for team in range(2):
                    if u["hero"] >= 0 and u["team"] != team and u["alive"] and u["seen_by"][team]:
                        ever[team].add(u["hero"])
            continue
        game.begin()
        for _ in range(4):
            before = visible(game)
            game.frame()
            after = visible(game)
            for team in range(2):
                check_frame(game, team, ever[team])
                kept += check_events(game, team, before[team], after[team])
                told += len(game.events(team))
    return told, kept


def test_a_teams_view_shows_only_visible_units() -> None:
    game = InteractiveGame(TEAM.model_copy(update={"max_game_seconds": 600.0, "start_seconds": 0.0}), 4)
    game.controllers[:] = Controller.HARD
    told, kept = play_through(game, 30)
    assert told > 0 and kept > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_teams_view_shows_only_visible_units_in_whole_games() -> None:
    game = InteractiveGame(TEAM.model_copy(update={"max_game_seconds": 420.0, "start_seconds": 0.0}), 4)
    game.controllers[:] = Controller.HARD
    told, kept = play_through(game, 7000, every=16)
    assert game.winner and told > 20 and kept > 0


def test_the_full_view_equals_the_spectators() -> None:
    game = played()
    out = SCHEMA.empty()
    game._vec.write_seen(0, out)
    for name, array in seen(game, None).items():
        np.testing.assert_array_equal(array, out[name])
    with pytest.raises(ValueError):
        seen(game, 2)
    with pytest.raises(ValueError):
        game.events(-1)

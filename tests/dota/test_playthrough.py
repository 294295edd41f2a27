"""Golden games: transcripts of short games and of a whole one are reproduced line by line.

After an intended change of the game, ``FIVE_REGENERATE=1 pytest tests/dota/test_playthrough.py`` rewrites the
transcripts: review their difference and commit it with the change. State hashes also detect compilers that round
differently; the lines before a differing hash show where.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dota.config import GameConfig, RandomisationConfig
from dota.events import FEED, EventKind, line
from dota.game import Game
from dota.vec_game import STATS, Controller, Winner
from tests.dota.watching import duel

FOLDER = Path(__file__).parent / "playthroughs"
SECONDS, EVERY = 240, 5
STEPS_A_SECOND = 7.5

# Short games of other heroes each, from levels at which they fight: name -> lineup.
SHORT = {
    "three-lanes": (("axe", "lich", "razor"), ("sven", "witch_doctor", "viper")),
    "casters": (("lion", "queenofpain"), ("crystal_maiden", "necrolyte")),
    "hunters": (("riki", "earthshaker"), ("slark", "gyrocopter")),
    "ghosts": (("death_prophet", "sniper"), ("nevermore", "tidehunter")),
    "melee": (("sven", "earthshaker"), ("slark", "riki")),
}
SHORT_SECONDS = 150
# Event kinds of a whole game's transcript.
STORY = FEED | {EventKind.BOUGHT, EventKind.LEVEL_UP}


def line_of(game: Game) -> list[str]:
    """Format the current state for people, rounded, so that a line differs only when the game does."""
    seen = game.spectate()
    out = [f"{seen['time']:6.1f} s  {'day' if seen['day'] else 'night'}  kills {seen['kills'][0]}-{seen['kills'][1]}  "
           f"hash {game.hash():016x}"]
    for team in (0, 1):
        mine = [u for u in seen["units"] if u["team"] == team and u["alive"]]
        (hero,) = (u for u in seen["units"] if u["hero"] == team * 5)
        statistics = dict(zip(STATS, game.stats[team, 0].tolist(), strict=True))
        ranks = " ".join(str(rank) for _, rank, _ in hero["abilities"])
        where = f"at {hero['x']:.0f} {hero['y']:.0f}" if hero["alive"] else "dead"
        out.append(
            f"  {hero['name'].removeprefix('npc_dota_hero_')} {where}  level {hero['level']}  hp {hero['hp']:.0f}  "
            f"mana {hero['mana']:.0f}  gold {hero['gold']:.0f}  last hits {statistics['last_hits']:.0f}  "
            f"denies {statistics['denies']:.0f}  abilities {ranks}")
        out.append(f"    items {' '.join(i.removeprefix('item_') for i in hero['items'] if i)}")
        creeps = sorted((round(u["x"]), round(u["y"]), round(u["hp"])) for u in mine if u["kind"] == "creep")
        out.append(f"    creeps {' '.join(f'({x} {y}: {hp})' for x, y, hp in creeps)}".rstrip())
        kinds = Counter(u["kind"] for u in mine if u["kind"] in ("tower", "barracks", "fort"))
        hurt = [f"{u['name'].removeprefix('npc_dota_')} {u['hp']:.0f}" for u in mine
                if u["kind"] in kinds and u["hp"] < u["max_hp"]]
        out.append(f"    {', '.join(f'{n} {kind}' for kind, n in sorted(kinds.items()))}"
                   f"{'; hurt: ' + ', '.join(hurt) if hurt else ''}")
    return out


def duel_lines() -> Iterator[str]:
    game = Game(duel(), seed=2019)
    game.controllers[:] = Controller.SCRIPTED
    yield from line_of(game)
    for step in range(1, int(SECONDS * STEPS_A_SECOND) + 1):
        game.step()
        if step % int(EVERY * STEPS_A_SECOND + 0.5) == 0:
            yield from line_of(game)


def transcript(game: Game, kinds: frozenset[EventKind], steps: int, every: int) -> Iterator[str]:
    """Return the events of these kinds, with the state's hash after every ``every`` timesteps and at the end."""
    for step in range(steps + 1):
        if step:
            game.step()
        yield from (line(event) for event in game.events() if event.kind in kinds)
        over = game.winner != Winner.RUNNING
        if over or step % every == 0:
            yield f"{game.time:8.2f}  hash {game.hash():016x}"
        if over:
            return


def short_lines(name: str) -> Iterator[str]:
    lineup = SHORT[name]
    config = GameConfig(heroes_per_team=len(lineup[0]), hero_pool=sorted({*lineup[0], *lineup[1]}), start_seconds=-30,
                        randomisation=RandomisationConfig(xp=6.0, gold=0.5))
    game = Game(config, seed=721, lineup=lineup)
    game.controllers[:] = Controller.HARD
    return transcript(game, frozenset(EventKind), int(SHORT_SECONDS * STEPS_A_SECOND), 150)


def whole_lines() -> Iterator[str]:
    lineup = (("sven", "sniper", "lion", "crystal_maiden", "viper"),
              ("nevermore", "axe", "witch_doctor", "lich", "razor"))
    config = GameConfig(hero_pool=sorted({*lineup[0], *lineup[1]}))
    game = Game(config, seed=2019, lineup=lineup)
    game.controllers[:] = Controller.HARD
    return transcript(game, STORY, int(4000 * STEPS_A_SECOND), 450)


def compare(name: str, lines: list[str]) -> None:
    golden = FOLDER / f"{name}.txt"
    if os.environ.get("FIVE_REGENERATE"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text("\n".join(lines) + "\n")
        pytest.skip(f"{golden} was rewritten")
    was = golden.read_text().splitlines()
    for number, (before, now) in enumerate(zip(was, lines, strict=False), 1):
        assert now == before, f"line {number} of {golden.name}: the game has changed"
    assert len(lines) == len(was), f"{golden.name}: the game ends elsewhere"


def test_golden_duel_is_unchanged() -> None:
    compare("duel", list(duel_lines()))


@pytest.mark.parametrize("name", SHORT)
def test_short_games_are_played_as_they_were(name: str) -> None:
    compare(name, list(short_lines(name)))


@pytest.mark.slow  # five seconds
def test_golden_games_are_unchanged() -> None:
    compare("whole", list(whole_lines()))


def test_the_duel_shows_a_game() -> None:
    """A transcript in which nothing happens would hold whatever the game does."""
    text = (FOLDER / "duel.txt").read_text()
    assert "last hits 0" in text.split("\n")[1]
    last = [line for line in text.splitlines() if "last hits" in line][-2:]
    assert sum(int(line.split("last hits ")[1].split()[0]) for line in last) >= 6
    assert all("level 1 " not in line for line in last)


@pytest.mark.parametrize("name", SHORT)
def test_short_games_show_fights(name: str) -> None:
    kinds = Counter(row.split()[1] for row in (FOLDER / f"{name}.txt").read_text().splitlines())
    for kind, least in (("hash", 5), ("cast", 6), ("last_hit", 2), ("level_up", 4), ("bought", 4)):
        assert kinds[kind] >= least, kind


def test_the_whole_game_shows_all_that_decides_it() -> None:
    rows = (FOLDER / "whole.txt").read_text().splitlines()
    kinds = Counter(row.split()[1] for row in rows)
    for kind, least in (("hero_kill", 20), ("building_death", 10), ("bought", 100), ("level_up", 80)):
        assert kinds[kind] >= least, kind
    assert [row.split()[1] for row in rows[-2:]] == ["won", "hash"] and rows[-2].split()[2] in ("radiant", "dire")

"""A game that was played before is played again, line by line: the transcript of a short duel of scripted bots.

When the game was changed on purpose, ``FIVE_REGENERATE=1 pytest tests/dota/test_playthrough.py`` writes the transcript
again: read its difference, and commit it with the change. The states' hashes also tell compilers apart that round
differently; the lines before them say where.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

from dota.game import Game
from dota.vec_game import STATS, Controller
from tests.dota.watching import duel

GOLDEN = Path(__file__).parent / "playthroughs" / "duel.txt"
SECONDS, EVERY = 240, 5
STEPS_A_SECOND = 7.5


def line_of(game: Game) -> list[str]:
    """The game as it is now, for people: rounded, so that a line differs only where the game does."""
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


def playthrough() -> list[str]:
    game = Game(duel(), seed=2019)
    game.controllers[:] = Controller.SCRIPTED
    lines = line_of(game)
    for step in range(1, int(SECONDS * STEPS_A_SECOND) + 1):
        game.step()
        if step % int(EVERY * STEPS_A_SECOND + 0.5) == 0:
            lines += line_of(game)
    return lines


def test_the_game_is_played_as_it_was() -> None:
    lines = playthrough()
    if os.environ.get("FIVE_REGENERATE"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text("\n".join(lines) + "\n")
        pytest.skip(f"{GOLDEN} was rewritten")
    golden = GOLDEN.read_text().splitlines()
    for number, (was, now) in enumerate(zip(golden, lines, strict=True), 1):
        moment = next(line for line in reversed(golden[:number]) if not line.startswith(" " * 4) and " s  " in line)
        assert now == was, f"line {number} of {GOLDEN.name} ({moment.split('  ')[0].strip()}): the game has changed"


def test_the_transcript_shows_a_game() -> None:
    """A transcript in which nothing happens would hold whatever the game does."""
    text = GOLDEN.read_text()
    assert "last hits 0" in text.split("\n")[1]
    last = [line for line in text.splitlines() if "last hits" in line][-2:]
    assert sum(int(line.split("last hits ")[1].split()[0]) for line in last) >= 6
    assert all("level 1 " not in line for line in last)

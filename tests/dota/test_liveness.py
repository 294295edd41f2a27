"""Every field, action and reward term is alive: it varies in games, or docs/observations.md says why it cannot."""

import re
from pathlib import Path

import numpy as np
import pytest

from dota.spaces import actions_of
from dota.vec_game import Controller
from tests.dota.liveness import WHOLE, Liveness, Range, play

PAGE = (Path(__file__).parents[2] / "docs" / "observations.md").read_text()
SECTION = PAGE.split("## What never varies", 1)[1].split("\n## ", 1)[0]
EXCUSED = {name for entry in re.findall(r"^- (`.*?):", SECTION, re.M | re.S)
           for name in re.findall(r"`([^`]+)`", entry)}
# What takes longer than a few minutes to happen once; the whole games look at it.
LATE = re.compile(r"global\.(day|roshan_(randomisation|cheese|refresher|alive|dead|max_hp)|stock|glyph_cooldown)"
                  r"|units\.(glyph|shrine|animation|tower_eta)|heroes\.|allied_heroes\.|items\.|hero_modifiers\.|unit_modifiers\.|pickups\.|minimap\.wards"
                  r"|nearby_map\.|abilities\.(in_use|levels)")


def test_a_value_that_never_changes_is_found() -> None:
    found = Liveness(looks=2, fields={"global.day": Range(np.zeros(1), np.zeros(1), np.zeros(1, np.int64)),
                                      "global.stock": Range(np.zeros(2), np.array([0.0, 1.0]), np.zeros(2, np.int64))})
    assert found.dead_fields() == ["global.day", "global.stock[0]"]
    found.taken["move"] += 1
    assert "move" not in found.dead_actions() and "attack" in found.dead_actions()
    found.signals["xp"] += 1
    assert "xp" not in found.dead_signals() and "aegis" in found.dead_signals()


def test_page_excuses_only_what_there_is() -> None:
    assert EXCUSED, "docs/observations.md lists nothing under 'What never varies'"
    short = play(WHOLE, [(Controller.RANDOM, Controller.RANDOM)], -85.0, every=10)
    names = set(short.fields) | {f"{name}[{i}]" for name, seen in short.fields.items() for i in range(len(seen.low))}
    names |= {a.name for a in actions_of("7.21d")}
    assert names >= EXCUSED, f"no such field or action: {sorted(EXCUSED - names)}"


def test_fields_that_need_no_long_game_vary_in_a_short_one() -> None:
    """The first three minutes of two games of the strongest bots, against random play and against themselves."""
    found = play(WHOLE, [(Controller.HARD, Controller.RANDOM), (Controller.HARD, Controller.HARD)], 180.0)
    dead = [name for name in found.dead_fields() if name not in EXCUSED and not LATE.match(name)]
    assert not dead
    for action in ("move", "attack", "follow", "noop"):
        assert found.taken[action] > 10
    assert not {"xp", "gold", "health", "mana", "last_hit"} & set(found.dead_signals())


@pytest.mark.slow
def test_everything_varies_in_whole_games() -> None:
    """Twelve whole games of the strongest, the middle, the weakest and the random bot."""
    sides = [(Controller.HARD, Controller.HARD), (Controller.HARD, Controller.SCRIPTED),
             (Controller.RANDOM, Controller.EASY), (Controller.EASY, Controller.HARD)]
    found = play(WHOLE, sides * 3, 4800.0)
    print("\n".join(f"{name}: {seen.changed.max() / found.looks:.4f}" for name, seen in sorted(found.fields.items())))
    print(found.taken, found.signals)
    assert [name for name in found.dead_fields() if name not in EXCUSED] == []
    assert [name for name in found.dead_actions() if name not in EXCUSED] == []
    assert found.dead_signals() == []
    excused_but_alive = {name for name in EXCUSED if name in found.fields and found.fields[name].varies.any()}
    assert not excused_but_alive, "these vary now: take them off the page's list"
    assert all(count > 0 for count in found.groups.values()), found.groups

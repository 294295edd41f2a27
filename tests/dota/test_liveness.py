"""Every field, action and reward term varies in games, or docs/observations.md states why it cannot."""

import re
from pathlib import Path

import numpy as np
import pytest

from dota.registry import load
from dota.spaces import actions_of
from dota.tables import HERO_PREFIX, load_tables
from dota.vec_game import Controller
from tests.dota.liveness import WHOLE, Liveness, Range, play

PAGE = (Path(__file__).parents[2] / "docs" / "observations.md").read_text()
SECTION = PAGE.split("## What never varies", 1)[1].split("\n## ", 1)[0]
EXCUSED = {name for entry in re.findall(r"^- (`.*?):", SECTION, re.M | re.S)
           for name in re.findall(r"`([^`]+)`", entry)}
ENTRIES = {tuple(re.findall(r"`([^`]+)`", names)): " ".join(reason.split())
           for names, reason in re.findall(r"^- (`.*?):(.*?)(?=\n- |\n\n|\Z)", SECTION, re.M | re.S)}
SOMETIMES = {name for names, reason in ENTRIES.items() if "in some sets of 24 games only" in reason
             for name in names}
IN_NO_BUILD = {name for names, reason in ENTRIES.items() if reason == "in no build" for name in names}
# Items that the scripted buyer keeps in addition to builds, and Roshan's drops (economy.cpp, rules.json).
BESIDE_BUILDS = ("tango", "flask", "clarity", "tpscroll", "ward_observer", "ward_sentry", "dust", "gem",
                 "smoke_of_deceit", "infused_raindrop", "aegis", "cheese", "refresher_shard")
NEVER_AN_ITEM = {"item_courier", "item_ward_dispenser", "item_tango_single"}  # for reasons of their own
# Fields that need more than a few minutes to vary; the whole games cover them.
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


def test_page_excuses_only_existing_entries() -> None:
    assert EXCUSED and SOMETIMES and IN_NO_BUILD, "docs/observations.md lists nothing under 'What never varies'"
    assert {name for names in ENTRIES for name in names} == EXCUSED
    short = play(WHOLE, [(Controller.RANDOM, Controller.RANDOM)], -85.0, every=10)
    names = set(short.fields) | {f"{name}[{i}]" for name, seen in short.fields.items() for i in range(len(seen.low))}
    names |= {a.name for a in actions_of("7.21d")}
    assert names >= EXCUSED, f"no such field or action: {sorted(EXCUSED - names)}"


def test_items_outside_builds_match_the_data() -> None:
    """No hero buys it, inserted or not, no scripted buyer keeps it, it is not dropped, and it is not a component of
    these."""
    tables = load_tables("7.21d")
    held: set[str] = set()

    def take(item: str) -> None:
        if item in held or tables.item(item)["excluded"]:
            return
        held.add(item)
        for recipe in tables.item(item)["recipes"]:
            for part in recipe:
                take(part)

    for hero in load().heroes:
        data = tables.hero(HERO_PREFIX + hero)
        for item in (*data["item_start"], *data["item_order"], *data["item_pool"]):
            take(item)
    for name in BESIDE_BUILDS:
        take("item_" + name)
    nobodys = {a.name for a in actions_of("7.21d") if a.casts.startswith("item_") and a.casts not in held}
    assert nobodys == IN_NO_BUILD | NEVER_AN_ITEM
    assert not IN_NO_BUILD & SOMETIMES


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
    """24 whole games of the strongest, the middle, the weakest and the random bot: twelve do not show all 25 heroes."""
    sides = [(Controller.HARD, Controller.HARD), (Controller.HARD, Controller.SCRIPTED),
             (Controller.RANDOM, Controller.EASY), (Controller.EASY, Controller.HARD)]
    found = play(WHOLE, sides * 6, 4800.0, seed=3)  # in not every set of games Roshan dies twice in one game
    print("\n".join(f"{name}: {seen.changed.max() / found.looks:.4f}" for name, seen in sorted(found.fields.items())))
    print(found.taken, found.signals)
    assert [name for name in found.dead_fields() if name not in EXCUSED] == []
    assert [name for name in found.dead_actions() if name not in EXCUSED] == []
    assert found.dead_signals() == []
    taken_all_the_same = {name for name in EXCUSED - SOMETIMES if found.taken[name]}
    assert not taken_all_the_same, "these are taken now: take them off the page's list"
    excused_but_alive = {name for name in EXCUSED if name in found.fields and found.fields[name].varies.any()}
    assert not excused_but_alive, "these vary now: take them off the page's list"
    assert all(count > 0 for count in found.groups.values()), found.groups

"""README: the heroes that it says can be played are those that can, and its figures are measured ones."""

import json
import re

import pytest

from dota.config import GameConfig
from dota.tables import HERO_PREFIX
from dota.vec_game import VecGame
from five.run.load import load, presets
from tests.repository import ROOT

README = (ROOT / "README.md").read_text()
PAGES = [(ROOT / "docs" / page).read_text() for page in ("benchmarks.md", "learning.md")]


@pytest.mark.parametrize("patch", ["7.21d", "7.19"])
def test_the_heroes_that_can_be_played(patch: str) -> None:
    heroes = json.loads((ROOT / f"libs/dota/data/dota-{patch}/heroes.json").read_text())["heroes"]
    section = README.partition("### Who can be played")[2].partition("`game.hero_pool`")[0]
    count, _, names = section.partition("heroes, in both patches: ")
    told = re.sub(r"\s+", " ", names).strip().rstrip(".").split(", ")
    assert sorted(told) == sorted(hero["name"] for hero in heroes.values())
    assert int(count.strip()) == len(told)
    config = GameConfig(patch=patch, mode="1v1_mid", heroes_per_team=1, start_seconds=0.0,
                        hero_pool=[name.removeprefix(HERO_PREFIX) for name in heroes])
    game = VecGame(config, 2, seed=1)  # raises for a hero whose program is not whole
    game.step()


def test_its_presets_are_there() -> None:
    for name in re.findall(r"`((?:laptop|gpu)-\w+|rerun)`", README):
        assert name in presets() and load(name)


@pytest.mark.parametrize(("told", "figure"), [
    ("5 won, 19 drawn of 40", "| 130 | 3.2 M | `scripted-easy` | 5, 19, 16 | 9.0 min | 32.4 | 24.9 |"),
    ("an hour, 34, 38 and 41 million, three seeds", "| 1 | 1392 | 34.2 M | `scripted-easy` | 99, 1, 0 |"),
    ("an hour, 34, 38 and 41 million, three seeds", "| 2 | 1562 | 38.4 M | `scripted-easy` | 95, 0, 5 |"),
    ("an hour, 34, 38 and 41 million, three seeds", "| 3 | 1669 | 41.0 M | `scripted-easy` | 100, 0, 0 |"),
    ("99, 95 and 100 won of 100 against `scripted-easy`", "| 3 | 1669 | 41.0 M | `scripted-easy` | 100, 0, 0 |"),
    ("78, 86 and 85 won of 100 against `scripted`, 19, 11 and 14 lost", "`scripted` | 78, 3, 19 |"),
    ("78, 86 and 85 won of 100 against `scripted`, 19, 11 and 14 lost", "`scripted` | 86, 3, 11 |"),
    ("78, 86 and 85 won of 100 against `scripted`, 19, 11 and 14 lost", "`scripted` | 85, 1, 14 |"),
    ("16.9 to 19.5 million, three seeds", "| 1 | 688 | 16.9 M | `scripted-easy` | 96, 0, 4 |"),
    ("96, 99 and 97 won of 100 against `scripted-easy`", "| 2 | 755 | 18.6 M | `scripted-easy` | 99, 1, 0 |"),
    ("96, 99 and 97 won of 100 against `scripted-easy`", "| 3 | 795 | 19.5 M | `scripted-easy` | 97, 2, 1 |"),
    ("64, 70 and 51 won of 100 against `scripted`", "`scripted` | 64, 0, 36 |"),
    ("64, 70 and 51 won of 100 against `scripted`", "`scripted` | 70, 1, 29 |"),
    ("36, 29 and 33 lost", "`scripted` | 51, 16, 33 |"),
    ("6,500 to 13,900 hero-steps", "They learned from 6,500 to 13,100 hero-steps a second"),
    ("6,500 to 13,900 hero-steps", "from 7,400 to 13,900, 10,700 in the mean"),
    ("24 of 24 won against random play, 49.9 last hits a hero to 2.8",
     "| 331, 9d03edc | `random` | 24, 0, 0 | 18.3 min | 49.9 to 2.8 |"),
    ("half an hour, 13.6 million", "13.6 million hero-steps, 7,300 a second"),
    ("of 20 against `scripted-easy` 1 won, 2 drawn", "| `scripted-easy` | 1, 2, 17 | 24.5 min |"),
    ("69,000 to 75,000", "75,030 and 68,708")])
def test_its_figures_are_measured_ones(told: str, figure: str) -> None:
    assert told in README and any(figure in page for page in PAGES)

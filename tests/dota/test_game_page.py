"""docs/game-coverage.md is current and complete, and docs/game.md names real differences between patches."""

import re

import pytest

from tests.dota import coverage_page, effect_nodes
from tests.dota.coverage_page import OF_EFFECTS, ROOT, words
from tests.dota.fight import ITEMS, OWNERS
from tests.dota.scenes.patches import read_data
from tests.dota.test_matrix_creatures import NOT_PLAYED

PAGE = (ROOT / "docs" / "game.md").read_text()


def test_the_coverage_page_is_current() -> None:
    assert coverage_page.PAGE.read_text() == coverage_page.page(), "python -m tests.dota.coverage_page"


@pytest.mark.parametrize("subject", [*OWNERS, *(item for item in ITEMS if item not in coverage_page.NOT_BUILT)])
def test_an_effect_of_each_ability_and_item_is_observed(subject: str) -> None:
    assert set(words(subject)) & OF_EFFECTS or coverage_page.files(subject)


def test_each_creatures_ability_is_observed() -> None:
    for _, ability in effect_nodes.creature_abilities(read_data("7.21d")):
        if ability not in NOT_PLAYED:
            assert coverage_page.creature_words(ability) or coverage_page.files(ability), ability


def test_the_switches_between_versions_differ() -> None:
    """Each key in the table of patches exists in a rules.json and has different values in the two."""
    new, old = (read_data(version)["rules"]["rules"] for version in ("7.21d", "7.19"))
    switches = re.findall(r"^\| `(\w+)\.(\w+)`", PAGE.partition("## Two versions")[2], re.M)
    assert len(switches) >= 6
    for block, key in switches:
        assert new[block].get(key) != old[block].get(key), f"{block}.{key}"

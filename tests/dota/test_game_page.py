"""docs/game.md names every ability, item, rule block and version switch of the data, and only tests that are there."""

import re
from pathlib import Path

import pytest

from tests.dota import stated
from tests.dota.conftest import read_data
from tests.dota.fight import ITEMS, OWNERS
from tests.dota.shown import OF_EFFECTS, words

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "game.md").read_text()


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert found, title
    return found[1]


def test_every_ability_has_its_row() -> None:
    rows = section("Heroes and abilities").splitlines()
    for hero, ability in stated.hero_abilities(read_data("7.21d")):
        (row,) = (r for r in rows if r.startswith(f"| {hero} | `{ability}` |"))
        assert row.split("|")[4].strip(), ability


def test_every_creatures_ability_has_its_row() -> None:
    rows = [row.split("|") for row in section("Creatures").splitlines() if row.startswith("| `")]
    for creature, ability in stated.creature_abilities(read_data("7.21d")):
        (row,) = (r for r in rows if r[2].strip() == f"`{ability}`")
        assert creature.removeprefix("npc_dota_").removeprefix("neutral_") in re.findall(r"`(\w+)`", row[1])
        assert row[4].strip(), ability


def test_every_item_has_its_row() -> None:
    rows = section("Items").splitlines()
    for item in read_data("7.21d")["items"]["items"]:
        (row,) = (r for r in rows if r.startswith(f"| `{item}` |"))
        assert row.split("|")[2].strip(), item


def said_of(subject: str) -> tuple[list[str], list[str]]:
    """The words and the files of its row."""
    title = "Items" if subject in ITEMS else "Heroes and abilities"
    (row,) = (r for r in section(title).splitlines() if f"| `{subject}` |" in r)
    cell = row.split("|")[-2]
    return [w for w in cell.replace(" ", "").split(",") if w.isalpha()], re.findall(r"`(test_\w+\.py)`", cell)


@pytest.mark.parametrize("subject", [*OWNERS, *ITEMS])
def test_a_row_says_what_is_tested(subject: str) -> None:
    """Its words are those of the tests over all abilities and items that try it; the files it names name it; and of
    what does anything at all, something that it does is seen, not only how it is cast or bought."""
    said, files = said_of(subject)
    if "not built" in section("Items" if subject in ITEMS else "Heroes and abilities").split(f"`{subject}` |")[1][:12]:
        return
    assert said == words(subject)
    name = subject.removeprefix("item_")
    for file in files:
        text = (ROOT / "tests" / "dota" / file).read_text()
        assert f'"{name}"' in text or f'"{subject}"' in text or f"{subject}" in text, file
    assert set(said) & OF_EFFECTS or files


def test_every_block_of_the_rules_is_there() -> None:
    rows = [line for line in section("Rules and their tests").splitlines() if line.startswith("| `")]
    named = set(re.findall(r"`(\w+)`", "\n".join(row.split("|")[1] for row in rows)))
    assert named == set(read_data("7.21d")["rules"]["rules"])


def test_the_tests_it_names_are_there() -> None:
    files = set(re.findall(r"`(test_\w+\.py)`", PAGE))
    assert len(files) > 20
    assert not [f for f in files if not (ROOT / "tests" / "dota" / f).is_file()]


def test_the_switches_between_versions_differ() -> None:
    """Each key that the table of versions names is in one of the two rules.json, and not the same in both."""
    new, old = (read_data(v)["rules"]["rules"] for v in ("7.21d", "7.19"))
    switches = re.findall(r"^\| `(\w+)\.(\w+)`", section("Two versions"), re.M)
    assert len(switches) >= 6
    for block, key in switches:
        assert new[block].get(key) != old[block].get(key), f"{block}.{key}"


def test_what_is_not_played_has_a_reason() -> None:
    text = section("Simplifications")
    data = read_data("7.21d")
    for name in ("Scan", "Raise Dead", "Tornado", "Ward dispenser", "Enchant Totem"):
        assert name in text
    assert "scan" in data["rules"]["rules"]

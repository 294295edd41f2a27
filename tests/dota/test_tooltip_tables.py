"""The tables of tests/dota/tooltips are complete: every ability, item and talent, every number of the game's files."""

from pathlib import Path
from typing import Any

import pytest

from tests.dota.coverage_page import words
from tests.dota.scenes.patches import PATCHES, read_data
from tests.dota.tooltip_tables import FOLDER, NOT_PLAYED, SOURCES, Row, names_in, read

DATA = {patch: read_data(patch) for patch in PATCHES}
HEROES = sorted({hero for data in DATA.values() for hero in data["heroes"]["heroes"]})
ITEMS = sorted({name for data in DATA.values() for name, item in data["items"]["items"].items()
                if not item.get("excluded")})
ABILITIES = sorted({name for data in DATA.values() for name in data["abilities"]["abilities"]})
FILES = sorted(FOLDER.glob("*.md"))
# Files over all abilities and items: the word that `shown.words` has for what such a test covers.
MATRIX = {f"test_matrix_{word}.py": {word} for word in ("damage", "stats", "radius", "flight", "immunity", "break")} | {
    "test_matrix_modifiers.py": {"lasting"}, "test_matrix_abilities.py": {"cast", "passive"},
    "test_matrix_items.py": {"held", "used"}, "test_matrix_stacking.py": {"twice", "stacking"}}


def rows_of_items() -> list[Row]:
    return [row for path in FILES if path.name.startswith("items_") for row in read(path)]


def numbers_of(subject: str) -> set[str]:
    """Return the names of an ability's or item's specials in both patches."""
    found: set[str] = set()
    for data in DATA.values():
        entry: dict[str, Any] = data["abilities"]["abilities"].get(subject) or data["items"]["items"].get(subject) or {}
        found |= set(entry.get("specials", {}))
    return found


def fields_of(subject: str) -> set[str]:
    """Return the names of an ability's or item's other fields in both patches."""
    return {field for data in DATA.values()
            for field in (data["abilities"]["abilities"] | data["items"]["items"]).get(subject, {})}


def assert_numbers_are_named(subjects: list[str], rows: list[Row]) -> None:
    for subject in subjects:
        own = [row for row in rows if row.subject == subject]
        assert own, f"{subject} has no clause"
        named = {name for row in own for name in row.numbers}
        assert numbers_of(subject) <= named, f"{subject}: no clause has {sorted(numbers_of(subject) - named)}"


@pytest.mark.parametrize("hero", HEROES)
def test_each_ability_and_talent_of_a_hero_has_clauses(hero: str) -> None:
    path = FOLDER / f"{hero.removeprefix('npc_dota_hero_')}.md"
    rows = read(path)
    heroes = [data["heroes"]["heroes"][hero] for data in DATA.values() if hero in data["heroes"]["heroes"]]
    abilities = sorted({name for data in DATA.values() for name, ability in data["abilities"]["abilities"].items()
                        if ability.get("owner") == hero})
    talents = {talent["id"] for entry in heroes for talent in entry["talents"]}
    assert_numbers_are_named(abilities, rows)
    assert talents <= {row.subject for row in rows}
    assert {row.subject for row in rows} <= {*abilities, *talents}


def test_each_item_has_clauses() -> None:
    rows = rows_of_items()
    assert_numbers_are_named([item for item in ITEMS if not item.startswith("item_recipe")], rows)
    assert {row.subject for row in rows} <= set(ITEMS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_clause_has_a_source_and_a_test_that_exists(path: Path) -> None:
    for row in read(path):
        assert row.clause, row.where
        assert SOURCES.fullmatch(row.source), f"{row.where}: unknown source {row.source!r}"
        if row.test.startswith(NOT_PLAYED):
            assert len(row.test) > len(NOT_PLAYED), f"{row.where}: say why"
            continue
        assert row.program and row.tests(), f"{row.where}: how the program says it, and a test or '{NOT_PLAYED}reason'"
        for file, name in row.tests():
            assert name in names_in(file), f"{row.where}: no test {file}::{name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_numbers_exist_and_tests_over_all_abilities_include_this_one(path: Path) -> None:
    for row in read(path):
        unknown = {name.removeprefix("@") for name in row.numbers} - numbers_of(row.subject) - fields_of(row.subject)
        assert not unknown, f"{row.where}: {row.subject} has no {sorted(unknown)}"
        for file, _ in row.tests():
            if file in MATRIX and row.subject in {*ABILITIES, *ITEMS}:
                assert MATRIX[file] & set(words(row.subject)), f"{row.where}: {file} does not cover {row.subject}"

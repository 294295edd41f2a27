"""``python -m tests.dota.coverage_page`` writes docs/game-coverage.md: what is played, and which tests see it."""

from functools import cache
from pathlib import Path
from typing import Any

from tests.dota import (
    effect_nodes,
    test_matrix_abilities,
    test_matrix_break,
    test_matrix_creatures,
    test_matrix_damage,
    test_matrix_flight,
    test_matrix_immunity,
    test_matrix_items,
    test_matrix_modifiers,
    test_matrix_radius,
    test_matrix_stacking,
    test_matrix_stats,
)
from tests.dota.fight import ITEMS, OWNERS
from tests.dota.scenes.patches import read_data

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "game-coverage.md"
ABILITIES_BY_WORD = {
    "cast": {a for _, a in test_matrix_abilities.ACTIVE},
    "passive": {a for _, a in test_matrix_abilities.PASSIVE},
    "damage": {a for _, a in test_matrix_damage.DEALERS},
}
ITEMS_BY_WORD = {
    "held": set(test_matrix_items.HELD),
    "used": {i for i in test_matrix_items.USABLE if i not in test_matrix_items.OTHERWISE},
    "stacking": test_matrix_stacking.TWICE,
}
# For abilities and items.
BY_WORD = {
    "stats": {s for s, _ in test_matrix_stats.SUBJECTS},
    "radius": {s for s, _ in test_matrix_radius.SUBJECTS},
    "flight": {s for s, _ in test_matrix_flight.SUBJECTS},
    "lasting": {s for s, _ in test_matrix_modifiers.SUBJECTS},
    "immunity": {s for s in (*OWNERS, *ITEMS) if test_matrix_immunity.states_it(s)},
    "break": set(test_matrix_break.PASSIVE) | set(test_matrix_break.CARRIED),
    "twice": {s for s, _ in test_matrix_stacking.AGAIN},
}
# These show an ability's or item's effects; the others show how it is learned, cast or bought.
OF_EFFECTS = {"damage", "stats", "radius", "flight", "lasting", "break", "used", "held", "stacking"}
CREATURE_WORDS = {"cast": test_matrix_creatures.ACTIVE, "aura": test_matrix_creatures.AURAS,
                  "around": test_matrix_creatures.AROUND, "ally": test_matrix_creatures.GIVEN}
NOT_BUILT = {"item_ward_dispenser"}
HEAD = """# Abilities and items

Every ability and item of the data, what it is made of, and the tests that observe it, made by
`python -m tests.dota.coverage_page`. Tests over all abilities and items read from the data what they expect; a word
names each of them. Other tests that use the ability or item are listed by file. All files are in `tests/dota`.

| word | what is tested | file |
|---|---|---|
| cast; passive | mana, cast point, cooldown, range, duration; learned and forgotten | `test_matrix_abilities.py` |
| damage | damage at once or over time, after armor and resistance | `test_matrix_damage.py` |
| held; used | an item's stats; its mana, cooldown, times and charges | `test_matrix_items.py` |
| stats | changed speed, armor, resistance, attack speed, damage, regeneration | `test_matrix_stats.py` |
| radius | who is reached 12 units inside a circle, and is not 12 units outside | `test_matrix_radius.py` |
| flight | later arrival at a distance | `test_matrix_flight.py` |
| lasting | duration to the frame, status resistance, dispels | `test_matrix_modifiers.py` |
| immunity | whether it reaches a bearer of Black King Bar | `test_matrix_immunity.py` |
| break | a broken hero's passives do nothing | `test_matrix_break.py` |
| twice; stacking | a second cast; two sources of the same effect | `test_matrix_stacking.py` |
| aura; around; ally | a creature's aura; effects around it; effects on one ally | `test_matrix_creatures.py` |

Talents: plain stats in `test_effects_compile.py`, `affects` number by number in `test_talents_numbers.py`, games in
`test_talents.py`.
"""


def words(subject: str) -> list[str]:
    """Return the words of its row, in the order of the page."""
    of_kind = ITEMS_BY_WORD if subject in ITEMS else ABILITIES_BY_WORD
    return [word for word, subjects in (of_kind | BY_WORD).items() if subject in subjects]


@cache
def other_tests() -> dict[str, str]:
    """Return the text of each test file that does not run over all abilities, by file name."""
    return {path.name: path.read_text() for path in sorted((ROOT / "tests" / "dota").glob("test_*.py"))
            if not path.name.startswith(("test_matrix_", "test_game_page", "test_data"))}


def files(subject: str) -> list[str]:
    """Return the test files that name an ability or item."""
    short = subject.removeprefix("item_")
    return [name for name, text in other_tests().items() if f'"{short}"' in text or subject in text]


def tested_by(subject: str, observed: list[str]) -> str:
    """Return the table cell: words, then files."""
    return ", ".join([*observed, *(f"`{name}`" for name in files(subject))])


def primitives(ability: dict[str, Any]) -> str:
    """Return the primitives of an ability's program, each once."""
    return ", ".join(dict.fromkeys(node.primitive for node in effect_nodes.nodes(ability)))


def creature_words(ability: str) -> list[str]:
    """Return the words of the creature tests that run over an ability."""
    return [word for word, cases in CREATURE_WORDS.items() if ability in [name for _, name in cases]]


def rows(data: dict[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """Return the table rows of heroes' abilities, creatures' abilities and items."""
    abilities = data["abilities"]["abilities"]
    heroes = [f"| {hero} | `{name}` | {primitives(abilities[name])} | {tested_by(name, words(name))} |"
              for hero, name in effect_nodes.hero_abilities(data)]
    bearers: dict[str, list[str]] = {}
    for unit, name in effect_nodes.creature_abilities(data):
        bearers.setdefault(name, []).append(unit.removeprefix("npc_dota_").removeprefix("neutral_"))
    creatures = [f"| {', '.join(f'`{unit}`' for unit in units)} | `{name}` | {primitives(abilities[name])} | "
                 + ("not played" if name in test_matrix_creatures.NOT_PLAYED else tested_by(name, creature_words(name)))
                 + " |" for name, units in bearers.items()]
    items = [f"| `{name}` | {item_cell(name)} |" for name in data["items"]["items"]]
    return heroes, creatures, items


def item_cell(name: str) -> str:
    """Return the cell of an item: why it is not played, or its tests."""
    if name in NOT_BUILT:
        return "not played: observer and sentry wards keep a slot each"
    return tested_by(name, words(name)) if name in ITEMS else "not played: illusions or other controlled units"


def page() -> str:
    """Return the text of docs/game-coverage.md."""
    heroes, creatures, items = rows(read_data("7.21d"))
    head = "|---|---|---|---|"
    return "\n".join([
        HEAD, "## Heroes and abilities", "", "| hero | ability | made of | tested by |", head, *heroes, "",
        "## Creatures", "", "| creature | ability | made of | tested by |", head, *creatures, "",
        "## Items", "", "| item | tested by |", "|---|---|", *items, ""])


if __name__ == "__main__":
    PAGE.write_text(page())

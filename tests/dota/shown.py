"""Coverage of the tests that run over all abilities and items: the words of docs/game-coverage.md."""

from tests.dota import (
    test_matrix_abilities,
    test_matrix_break,
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


def words(subject: str) -> list[str]:
    """Return the words of its row, in the order of the page."""
    of_kind = ITEMS_BY_WORD if subject in ITEMS else ABILITIES_BY_WORD
    return [word for word, subjects in (of_kind | BY_WORD).items() if subject in subjects]

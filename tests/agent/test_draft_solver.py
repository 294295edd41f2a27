"""Solutions of drafts against brute force over all orders of picks."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest

from five.agent.draft.advice import advise
from five.agent.draft.leaves import HeroPool, LeafTable, win_from_heads
from five.agent.draft.pick_order import OPENAI_FIVE_ORDER, DraftError, default_order, parse_pick_order

TEN = tuple(f"hero{i}" for i in range(10))


def leaves(heroes: tuple[str, ...], team: int, shared: bool = False, seed: int = 0) -> LeafTable:
    pool = HeroPool(heroes, team, shared)
    return LeafTable(pool, np.random.default_rng(seed).random(pool.shape, dtype=np.float32))


def by_line_up(table: LeafTable) -> dict[tuple[frozenset[str], frozenset[str]], float]:
    """Return every leaf by its two sets of names, independent of the pool's numbering."""
    heroes, team = table.pool.heroes, table.pool.team
    found = {}
    every = np.arange(table.pool.line_ups)
    for (radiant, dire), win in zip(table.pool.teams(every).tolist(), table.win.reshape(-1).tolist(), strict=True):
        found[frozenset(heroes[h] for h in radiant), frozenset(heroes[h] for h in dire)] = win
    expected = {(frozenset(r), frozenset(d)) for r in combinations(heroes, team) for d in combinations(heroes, team)
                if table.pool.shared or not set(r) & set(d)}
    assert found.keys() == expected
    return found


def brute(table: LeafTable, order: str, radiant: tuple[str, ...] = (), dire: tuple[str, ...] = (),
          banned: tuple[str, ...] = ()) -> dict[str, float]:
    """Return the value of each open pick by recursion over all later picks."""
    known = by_line_up(table)

    @cache
    def value(mine: frozenset[str], theirs: frozenset[str]) -> float:
        at = len(mine) + len(theirs)
        if at == len(order):
            return known[mine, theirs]
        found = choices(mine, theirs)
        return max(found.values()) if order[at] == "R" else min(found.values())

    def choices(mine: frozenset[str], theirs: frozenset[str]) -> dict[str, float]:
        moving = order[len(mine) + len(theirs)]
        taken = (mine if moving == "R" else theirs) if table.pool.shared else mine | theirs
        return {hero: value(mine | {hero}, theirs) if moving == "R" else value(mine, theirs | {hero})
                for hero in table.pool.heroes if hero not in taken and hero not in banned}

    return choices(frozenset(radiant), frozenset(dire))


def assert_same(table: LeafTable, order: str, radiant: tuple[str, ...] = (), dire: tuple[str, ...] = (),
                banned: tuple[str, ...] = ()) -> None:
    found = advise(table, radiant, dire, banned, order)
    expected = brute(table, order, radiant, dire, banned)
    assert {choice.hero: choice.win for choice in found.choices} == expected
    best = max if found.to_move == "R" else min
    assert found.win == found.choices[0].win == best(expected.values())


def test_published_order_of_ten_heroes() -> None:
    table = leaves(TEN, 5)
    assert table.pool.line_ups == 252
    assert_same(table, OPENAI_FIVE_ORDER)


@pytest.mark.parametrize("order", ["RRRRRDDDDD", "DDDDDRRRRR", "RDRDRDRDRD", "DRRDDRRDDR", "RDDRRDDRRD"])
def test_any_pick_order(order: str) -> None:
    assert_same(leaves(TEN, 5, seed=1), order)


def test_partial_draft() -> None:
    assert_same(leaves(TEN, 5, seed=2), OPENAI_FIVE_ORDER, ("hero9", "hero0"), ("hero4",))
    assert_same(leaves(TEN, 5, seed=3), OPENAI_FIVE_ORDER, ("hero7", "hero1", "hero2", "hero3"),
                ("hero0", "hero5", "hero8", "hero9"))


def test_larger_pool_with_bans() -> None:
    table = leaves(TEN, 3, seed=4)
    assert_same(table, "DRRDDR")
    assert_same(table, "DRRDDR", banned=("hero3", "hero8"))
    assert_same(table, "DRRDDR", ("hero2",), ("hero9",), ("hero0", "hero4", "hero5"))


def test_one_a_side_from_25_heroes() -> None:
    assert_same(leaves(tuple(f"hero{i}" for i in range(25)), 1), "DR")


def test_ban_equals_a_smaller_pool() -> None:
    table = leaves(TEN, 3, seed=5)
    left = tuple(hero for hero in TEN if hero not in ("hero0", "hero6"))
    known = by_line_up(table)
    pool = HeroPool(left, 3)
    win = np.array([known[frozenset(left[h] for h in r), frozenset(left[h] for h in d)]
                    for r, d in pool.teams(np.arange(pool.line_ups)).tolist()], np.float32)
    smaller = LeafTable(pool, win.reshape(pool.shape))
    assert advise(smaller, order="DRRDDR") == advise(table, banned=("hero0", "hero6"), order="DRRDDR")


def test_small_pool_is_shared_by_both_teams() -> None:
    pool = HeroPool.from_game([f"hero{i}" for i in range(6)], 5)
    assert pool.shared and pool.line_ups == 36
    table = leaves(pool.heroes, 5, shared=True, seed=6)
    assert_same(table, OPENAI_FIVE_ORDER)
    assert_same(table, OPENAI_FIVE_ORDER, ("hero1", "hero2"), ("hero1",))
    small = leaves(tuple("abcd"), 3, shared=True)
    assert_same(small, "DRRDDR", banned=("c",))


def test_complete_draft_has_the_value_of_its_leaf() -> None:
    table = leaves(TEN, 5, seed=7)
    for radiant in (TEN[:5], TEN[3:8]):
        dire = tuple(hero for hero in TEN if hero not in radiant)
        found = advise(table, radiant, dire)
        assert (found.to_move, found.choices) == ("", ())
        assert found.win == by_line_up(table)[frozenset(radiant), frozenset(dire)]


def test_number_of_line_ups_is_the_published_one() -> None:
    assert HeroPool(tuple(f"h{i}" for i in range(17)), 5).line_ups == 4_900_896
    assert HeroPool(tuple(f"h{i}" for i in range(18)), 5).line_ups == 11_027_016


def test_invalid_draft_is_rejected() -> None:
    table = leaves(TEN, 5)
    for wrong, arguments in (
            ("unknown hero 'axe'", {"radiant": ("axe",)}), ("duplicate hero hero1", {"dire": ("hero1", "hero1")}),
            ("picked and banned", {"dire": ("hero1",), "banned": ("hero1",)}),
            ("picked by both", {"dire": ("hero1",), "radiant": ("hero1",)}),
            ("Radiant has 0 heroes and Dire 1, not 1 and 0", {"radiant": ("hero1",)}),
            ("5 times R and 5 times D", {"order": "RD"}), ("remove bans", {"banned": ("hero1",)})):
        with pytest.raises(DraftError, match=wrong):
            advise(table, **arguments)
    with pytest.raises(ValueError, match="too small"):
        HeroPool(TEN, 6)


def test_pick_orders_are_parsed() -> None:
    assert parse_pick_order("d r r d", 2) == "DRRD"
    assert [default_order(n) for n in (1, 2, 3, 5)] == ["DR", "DRRD", "DRRDDR", OPENAI_FIVE_ORDER]


def test_win_from_heads_averages_both_teams() -> None:
    heads = np.array([[[0.6, 0.8], [0.1, 0.3]], [[0.5, 0.5], [0.5, 0.5]]])
    np.testing.assert_allclose(win_from_heads(heads), [0.75, 0.5], rtol=1e-6)

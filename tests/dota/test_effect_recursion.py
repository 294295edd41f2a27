"""Chains of effects that trigger each other terminate."""

from typing import Any

import pytest

from tests.dota.scenes.arena import Arena
from tests.dota.scenes.program import HEX, programmed

DEEPEST = 32  # world.hpp: kDeepestConsequence
PURE = {"p": "damage", "amount": 1, "type": "pure"}


def answering_lions(core: Any, **more: Any) -> Arena:
    """Return two Lions whose passive answers every enemy attack with an attack."""
    proc = {"p": "proc", "on": "damaged_by_enemy", "then": [PURE]} | more
    arena = programmed(core, proc, behavior=("passive",), enemy="lion")
    arena.teach(5, HEX, 1)
    return arena


def test_mutual_damage_returns_terminate(core: Any) -> None:
    """Neither dies: both lose as much health as the recursion limit allows, and dropped effects are counted."""
    arena = answering_lions(core)
    ours, theirs = arena.unit(0), arena.unit(5)
    for unit in (ours, theirs):
        arena.world.set_unit(unit, extra_hp=50000, hp=50000)
    assert arena.world.dropped()["consequences"] == 0
    arena.world.damage(ours, theirs, 1, "pure")
    lost = [50000 - arena.hp(unit) for unit in (ours, theirs)]
    assert all(2 <= loss <= DEEPEST for loss in lost), lost
    assert arena.world.dropped()["consequences"] == 1
    arena.world.damage(ours, theirs, 1, "pure")  # the next blow is a new beginning
    assert [50000 - arena.hp(unit) for unit in (ours, theirs)] == pytest.approx([2 * loss for loss in lost])


def test_one_answer_each_is_not_cut_short(core: Any) -> None:
    arena = answering_lions(core, icd=0.5)
    ours, theirs = arena.unit(0), arena.unit(5)
    before = [arena.hp(unit) for unit in (ours, theirs)]
    arena.world.damage(ours, theirs, 10, "pure")
    lost = [b - arena.hp(unit) for b, unit in zip(before, (ours, theirs), strict=True)]
    assert lost == pytest.approx([1, 11], abs=0.1)
    assert arena.world.dropped()["consequences"] == 0

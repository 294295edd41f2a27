"""Slots that operators and viewers share."""

import pytest

from five.run.config.controller import LimitsConfig
from five.services.controller.http.auth import Caller, Role
from five.services.controller.http.problems import Problem
from five.services.controller.http.slots import Slot, SlotPool

ADA, VERA, VINCE = Caller("ada", Role.OPERATOR), Caller("vera", Role.VIEWER), Caller("vince", Role.VIEWER)


def pool(size: int, viewer_share: float = 0.25, operator_share: float = 0.25) -> SlotPool:
    limits = LimitsConfig(viewer_share=viewer_share, operator_share=operator_share)
    return SlotPool(size, limits, "streams", "streams are open")


def take_all(slots: SlotPool, holder: Caller | str) -> list[Slot]:
    found: list[Slot] = []
    while True:
        try:
            found.append(slots.take(holder))
        except Problem as problem:
            assert problem.status == 429 and problem.headers["Retry-After"] == "10"
            assert "services.controller.limits.streams" in problem.detail
            return found


def test_viewers_have_shares_and_operators_the_rest() -> None:
    slots = pool(16)
    assert [len(take_all(slots, holder)) for holder in (VERA, VINCE, "192.0.2.1", "192.0.2.2", ADA)] == [4, 4, 4, 0, 4]
    assert slots.taken == 16


def test_operators_may_use_all_slots() -> None:
    slots = pool(8)
    assert len(take_all(slots, ADA)) == 8 and take_all(slots, VERA) == []


def test_a_token_named_like_an_address_is_another_holder() -> None:
    slots = pool(16)
    assert len(take_all(slots, Caller("192.0.2.1", Role.VIEWER))) == len(take_all(slots, "192.0.2.1")) == 4


@pytest.mark.parametrize("holder", [ADA, VERA, "192.0.2.1"])
def test_the_only_slot_is_for_everybody(holder: Caller | str) -> None:
    slots = pool(1, operator_share=0.9)
    with slots.take(holder):
        assert take_all(slots, ADA) == take_all(slots, VERA) == []
    assert slots.taken == 0


def test_a_slot_is_freed_once() -> None:
    slots = pool(8)
    first, second = slots.take(VERA), slots.take(VERA)
    first.release()
    first.release()
    assert slots.taken == 1 and len(take_all(slots, VERA)) == 1
    second.release()
    assert slots.taken == 1

"""Slots that operators and viewers share."""

import asyncio
import contextlib

import pytest
from starlette.types import Message

from five.run.config.controller import LimitsConfig
from five.services.controller.http.auth import Caller, Role
from five.services.controller.http.problems import Problem
from five.services.controller.http.slots import ReleasingResponse, Slot, SlotPool

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


@pytest.mark.parametrize(("size", "viewer_share", "operator_share", "one_viewer", "all_viewers"), [
    (7, 0.5, 0.25, 4, 6), (8, 0.5, 0.25, 4, 6), (3, 0.01, 0.01, 1, 3), (4, 1.0, 0.5, 2, 2), (2, 0.5, 0.9, 1, 1),
    (1, 1.0, 0.9, 1, 1), (5, 1.0, 0.0, 5, 5)])
def test_shares_are_rounded_in_favour_of_viewers(size: int, viewer_share: float, operator_share: float,
                                                 one_viewer: int, all_viewers: int) -> None:
    slots = pool(size, viewer_share, operator_share)
    assert len(take_all(slots, VERA)) == one_viewer
    others = [Caller(f"viewer-{n}", Role.VIEWER) for n in range(size)]
    assert one_viewer + sum(len(take_all(slots, other)) for other in others) == all_viewers
    assert len(take_all(slots, ADA)) == size - all_viewers


def test_refusal_names_the_limit_that_is_reached() -> None:
    slots = pool(4, viewer_share=0.25, operator_share=0.5)
    take_all(slots, VERA), take_all(slots, "192.0.2.1"), take_all(slots, ADA)
    for holder, expected in ((VERA, "1 streams are open belong to vera, .*viewer_share"),
                             ("192.0.2.1", "1 streams are open belong to address 192.0.2.1, .*viewer_share"),
                             (VINCE, "4 streams are open, the maximum for viewers .*operator_share"),
                             (ADA, r"4 streams are open, the maximum \(services.controller.limits.streams\)")):
        with pytest.raises(Problem, match=expected):
            slots.take(holder)


def test_refusal_has_the_status_and_wait_of_its_kind() -> None:
    slots = SlotPool(1, LimitsConfig(), "concurrent_requests", "requests are in progress", 503, 1)
    with slots.take(ADA), pytest.raises(Problem) as caught:
        slots.take(ADA)
    assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "1"})


def test_slot_is_freed_after_an_error() -> None:
    slots = pool(8)
    for holder in (ADA, VERA, "192.0.2.1"):
        with pytest.raises(KeyError), slots.take(holder):
            assert slots.taken == 1
            raise KeyError
    assert slots.taken == 0


def test_freed_holders_use_no_memory() -> None:
    """Anybody can send from thousands of addresses."""
    slots = pool(8)
    for n in range(10):
        slots.take(f"192.0.2.{n}").release()
    assert slots.taken == 0 and not slots._by_viewer


@pytest.mark.parametrize("leaves", [False, True])
async def test_stream_frees_its_slot_at_its_end(leaves: bool) -> None:
    slots, sent = pool(8), []

    async def send(message: Message) -> None:
        if leaves:
            raise ConnectionResetError
        sent.append(message["type"])

    async def receive() -> Message:
        return {"type": "http.disconnect"} if leaves else await asyncio.Future()

    response = ReleasingResponse(iter(["a", "b"]), slots.take(VERA).release, media_type="text/event-stream")
    assert slots.taken == 1 and response.media_type == "text/event-stream"
    with contextlib.suppress(ConnectionResetError, ExceptionGroup):
        await response({"type": "http", "asgi": {"spec_version": "2.3"}}, receive, send)
    assert slots.taken == 0
    assert sent == ([] if leaves else ["http.response.start", *["http.response.body"] * 3])

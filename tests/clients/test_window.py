"""Slots are granted in order, are never lost, and are refused after a failure."""

import asyncio

import pytest

from five.clients.window import RequestWindow


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_slots_are_granted_in_order() -> None:
    window, got = RequestWindow(2), []

    async def ask(who: int) -> None:
        await window.acquire()
        got.append(who)

    tasks = [asyncio.create_task(ask(i)) for i in range(5)]
    await settle()
    assert got == [0, 1]
    window.release()
    window.release()
    await settle()
    assert got == [0, 1, 2, 3]
    window.release()
    await asyncio.gather(*tasks)
    for _ in range(4):
        window.release()
    await asyncio.wait_for(asyncio.gather(window.acquire(), window.acquire()), 30)  # slots without a waiter stay free


@pytest.mark.parametrize("after_grant", [False, True])
async def test_cancelled_waiter_loses_no_slot(after_grant: bool) -> None:
    window = RequestWindow(1)
    await window.acquire()
    cancelled, waits = [asyncio.create_task(window.acquire()) for _ in range(2)]
    await settle()
    if after_grant:
        window.release()
        cancelled.cancel()
    else:
        cancelled.cancel()
        await settle()
        window.release()
    await asyncio.wait_for(waits, 30)
    with pytest.raises(asyncio.CancelledError):
        await cancelled


async def test_failure_reaches_waiters_and_later_callers() -> None:
    window = RequestWindow(1)
    await window.acquire()
    waiting = [asyncio.create_task(window.acquire()) for _ in range(3)]
    await settle()
    window.fail(OSError("gone"))
    for answer in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(answer, OSError)
    window.release()
    with pytest.raises(OSError, match="gone"):
        await window.acquire()

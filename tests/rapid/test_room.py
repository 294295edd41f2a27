"""Places are given in order, never lost, and refused once it is clear that none will be free."""

import asyncio

import pytest

from rapid.clients.room import Room


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_places_are_given_in_the_order_in_which_they_were_asked_for() -> None:
    room, got = Room(2), []

    async def ask(who: int) -> None:
        await room.take()
        got.append(who)

    tasks = [asyncio.create_task(ask(i)) for i in range(5)]
    await settle()
    assert got == [0, 1]
    room.leave()
    room.leave()
    await settle()
    assert got == [0, 1, 2, 3]
    room.leave()
    await asyncio.gather(*tasks)
    for _ in range(4):
        room.leave()
    await asyncio.wait_for(asyncio.gather(room.take(), room.take()), 1)  # what nobody waited for is there for the next


@pytest.mark.parametrize("after_it_was_given", [False, True])
async def test_who_gives_up_waiting_costs_no_place(after_it_was_given: bool) -> None:
    room = Room(1)
    await room.take()
    gives_up, waits = [asyncio.create_task(room.take()) for _ in range(2)]
    await settle()
    if after_it_was_given:
        room.leave()
        gives_up.cancel()
    else:
        gives_up.cancel()
        await settle()
        room.leave()
    await asyncio.wait_for(waits, 1)
    with pytest.raises(asyncio.CancelledError):
        await gives_up


async def test_a_failure_wakes_who_waits_and_is_told_to_who_asks() -> None:
    room = Room(1)
    await room.take()
    waiting = [asyncio.create_task(room.take()) for _ in range(3)]
    await settle()
    room.fail(OSError("gone"))
    for answer in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(answer, OSError)
    room.leave()
    with pytest.raises(OSError, match="gone"):
        await room.take()

"""Writes to a stream whose call another task may cancel."""

import asyncio

import pytest

from five.clients.stream_write import write


class Call:
    """A call whose write ends as grpc.aio ends it when the call is cancelled."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def write(self, message: bytes) -> None:
        self.begun.set()
        await self.cancelled.wait()
        raise asyncio.CancelledError


async def test_cancelled_call_does_not_cancel_its_writer() -> None:
    call = Call()
    writing = asyncio.create_task(write(call, b""))
    await call.begun.wait()
    call.cancelled.set()
    with pytest.raises(asyncio.InvalidStateError, match="cancelled"):
        await writing


async def test_cancelled_writer_ends() -> None:
    call = Call()
    writing = asyncio.create_task(write(call, b""))
    await call.begun.wait()
    writing.cancel()
    await asyncio.wait({writing})
    assert writing.cancelled()


async def test_writer_ends_by_its_deadline() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await write(Call(), b"")

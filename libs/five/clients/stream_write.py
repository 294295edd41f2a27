"""Writes to a gRPC stream whose call another task may cancel."""

import asyncio
from typing import Any


async def write(call: Any, message: Any) -> None:
    """Write a message to a stream. Raise what ``call.write`` raises.

    A write waits while the server does not read. If another task cancels the call meanwhile, grpc.aio raises
    CancelledError here, although nobody cancelled this task, and the task would end without a reason. That case
    raises asyncio.InvalidStateError, as a write after the end of a call does.
    """
    try:
        await call.write(message)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise asyncio.InvalidStateError("the call was cancelled while a message was being written") from None

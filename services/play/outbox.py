"""Send queue of a connection: messages in order, and frames, of which slow clients skip some."""

import asyncio
from collections import deque
from typing import Any

from five.protos.v1 import play_pb2
from five.services.play import metrics as page
from five.services.play.views import HEADER, View, message_of

MOST_FRAMES = 15  # half a second: who is further behind reacts to what is long past
MOST_EVENTS = 64  # of the frames that a client skipped, told with the next that he gets
MOST_MESSAGES = 4096  # answers that wait: orders are bounded, so that only who reads nothing comes there


class Outbox:
    """Queue of one connection: ``send`` adds messages, ``show`` a view's frame; iterate it with ``async for``.

    Frames are differences to the previous one. When more than MOST_FRAMES of them or more than ``most_bytes`` are
    queued, all are dropped and the current frame is sent whole: slow clients get fewer, but current frames.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._waiting: deque[tuple[list[dict[str, Any]] | None, play_pb2.JoinResponse]] = deque()  # a frame's events
        self._news = asyncio.Event()
        self._whole = False  # whether the client has, or will have, what changes go by
        self._missed: list[dict[str, Any]] = []
        self._ended = False
        self.frames = 0  # that wait
        self.bytes = 0  # of them

    def begin(self, header: bytes) -> None:
        """Queue the header, before all frames."""
        self._put(None, play_pb2.JoinResponse(frame=bytes([HEADER]) + header))

    def send(self, response: play_pb2.JoinResponse) -> None:
        """Queue a message, which is never dropped; a client with thousands of queued messages is disconnected."""
        if len(self._waiting) > MOST_MESSAGES:
            self._waiting.clear()
            self.end()
        self._put(None, response)

    def show(self, view: View) -> None:
        """Queue a view's next frame."""
        if self.behind:
            self.drop_frames()
        events = [*self._missed, *view.events]
        body = view.changes() if self._whole else view.keyframe()
        message = message_of(view.engine_frame, not self._whole, body, events)
        self._whole, self._missed = True, []
        self._put(events, play_pb2.JoinResponse(frame=message))

    @property
    def behind(self) -> bool:
        """Return whether the queue exceeds its limits."""
        return self.frames >= MOST_FRAMES or self.bytes > self._most_bytes

    def drop_frames(self) -> None:
        """Drop queued frames; the next one is sent whole."""
        page.SKIPPED.inc(self.frames)
        missed = [event for events, _ in self._waiting for event in events or ()]
        self._missed = missed[-MOST_EVENTS:]
        self._waiting = deque(item for item in self._waiting if item[0] is None)
        self.frames = self.bytes = 0
        self._whole = False

    def show_message(self, message: bytes) -> None:
        """Queue an encoded frame (services.play.broadcast)."""
        self._put([], play_pb2.JoinResponse(frame=message))

    def end(self) -> None:
        """Close the queue: remaining messages are sent, then iteration ends."""
        self._ended = True
        self._news.set()

    @property
    def ended(self) -> bool:
        """Return whether the queue is closed."""
        return self._ended

    def _put(self, events: list[dict[str, Any]] | None, response: play_pb2.JoinResponse) -> None:
        if self._ended:
            return
        self._waiting.append((events, response))
        if events is not None:
            self.frames += 1
            self.bytes += len(response.frame)
        self._news.set()

    def __aiter__(self) -> "Outbox":
        return self

    async def __anext__(self) -> play_pb2.JoinResponse:
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        events, response = self._waiting.popleft()
        if events is not None:
            self.frames -= 1
            self.bytes -= len(response.frame)
            page.SENT.inc(len(response.frame))
        return response

"""Send queue of a connection: messages in order, and frames, of which slow clients skip some."""

import asyncio
from collections import deque
from typing import Any

from five.protos.v1 import play_pb2
from five.services.play import metrics as page
from five.services.play.views import HEADER, View, message_of

MAX_FRAMES = 15  # half a second; older frames are useless to a player
MAX_EVENTS = 64  # events of skipped frames, which are sent with the next frame
MAX_MESSAGES = 4096  # orders are limited, so that only a client that reads nothing reaches this


class Outbox:
    """Queue of one connection: ``send`` adds messages, ``send_frame`` a view's frame; iterate it with ``async for``.

    A frame holds the differences to the previous one. When MAX_FRAMES frames or more than ``most_bytes`` are queued,
    all are dropped and the current frame is sent whole: a slow client receives fewer frames, but current ones.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._queue: deque[tuple[list[dict[str, Any]] | None, play_pb2.JoinResponse]] = deque()  # a frame's events
        self._wake = asyncio.Event()
        self._has_keyframe = False  # whether the client has received, or will receive, the frame that changes refer to
        self._missed: list[dict[str, Any]] = []
        self._ended = False
        self.frames = 0  # queued frames
        self.bytes = 0  # of queued frames

    def begin(self, header: bytes) -> None:
        """Queue the header, before all frames."""
        self._queue_response(None, play_pb2.JoinResponse(frame=bytes([HEADER]) + header))

    def send(self, response: play_pb2.JoinResponse) -> None:
        """Queue a message, which is never dropped; a client with thousands of queued messages is disconnected."""
        if len(self._queue) > MAX_MESSAGES:
            self._queue.clear()
            self.end()
        self._queue_response(None, response)

    def send_frame(self, view: View) -> None:
        """Queue a view's next frame."""
        if self.is_behind:
            self.drop_frames()
        events = [*self._missed, *view.events]
        body = view.changes() if self._has_keyframe else view.keyframe()
        message = message_of(view.engine_frame, not self._has_keyframe, body, events)
        self._has_keyframe, self._missed = True, []
        self._queue_response(events, play_pb2.JoinResponse(frame=message))

    @property
    def is_behind(self) -> bool:
        """Return whether the queued frames exceed a limit."""
        return self.frames >= MAX_FRAMES or self.bytes > self._most_bytes

    def drop_frames(self) -> None:
        """Drop queued frames; the next one is sent whole."""
        page.SKIPPED.inc(self.frames)
        missed = [event for events, _ in self._queue for event in events or ()]
        self._missed = missed[-MAX_EVENTS:]
        self._queue = deque(item for item in self._queue if item[0] is None)
        self.frames = self.bytes = 0
        self._has_keyframe = False

    def send_encoded_frame(self, message: bytes) -> None:
        """Queue an encoded frame (services.play.broadcast)."""
        self._queue_response([], play_pb2.JoinResponse(frame=message))

    def end(self) -> None:
        """Close the queue: remaining messages are sent, then iteration ends."""
        self._ended = True
        self._wake.set()

    @property
    def ended(self) -> bool:
        """Return whether the queue is closed."""
        return self._ended

    def _queue_response(self, events: list[dict[str, Any]] | None, response: play_pb2.JoinResponse) -> None:
        if self._ended:
            return
        self._queue.append((events, response))
        if events is not None:
            self.frames += 1
            self.bytes += len(response.frame)
        self._wake.set()

    def __aiter__(self) -> "Outbox":
        return self

    async def __anext__(self) -> play_pb2.JoinResponse:
        while not self._queue:
            if self._ended:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        events, response = self._queue.popleft()
        if events is not None:
            self.frames -= 1
            self.bytes -= len(response.frame)
            page.SENT.inc(len(response.frame))
        return response

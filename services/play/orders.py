"""Validation of people's orders, and their rate limit."""

import time
from collections.abc import Callable

from dota.play import KINDS, Order
from five.protos.v1 import play_pb2

MAX_ITEM_NAME = 64
MAX_UINT16 = 65535  # map positions in a view, unit slots and generations


class RateLimit:
    """Token bucket with a burst of one second."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_second
        self._clock = clock
        self._tokens = max(per_second, 1.0)
        self._at = clock()

    def take(self) -> bool:
        """Take a token; return whether there was one."""
        now = self._clock()
        self._tokens = min(self._tokens + (now - self._at) * self._rate, max(self._rate, 1.0))
        self._at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


def order_of(message: play_pb2.Order, x: float, y: float, extent: float) -> Order | None:
    """Convert a person's order to the core's form. Return None for an invalid one. The map's corner is at world units
    ``x``, ``y``, and the map is ``extent`` wide."""
    if message.kind not in KINDS or len(message.item) > MAX_ITEM_NAME:
        return None
    target = (message.target.slot, message.target.generation) if message.HasField("target") else None
    if target is not None and max(target) > MAX_UINT16:
        return None
    at = None
    if message.HasField("at"):
        if max(message.at.x, message.at.y) > MAX_UINT16:
            return None
        at = (x + message.at.x * extent / MAX_UINT16, y + message.at.y * extent / MAX_UINT16)
    if not -1 <= message.slot < 64 or not -1 <= message.to < 64:
        return None
    return Order(message.kind, target, at, message.slot, message.to, message.item, message.queue)

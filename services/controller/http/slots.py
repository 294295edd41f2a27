"""Slots: requests, streams and sockets at once, shared among operators and viewers."""

import math
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from five.run.config.controller import LimitsConfig
from five.services.controller.http.auth import Caller, Role
from five.services.controller.http.problems import Problem


class Slot:
    """A taken slot. ``release`` it once; it is also a context."""

    def __init__(self, free: Callable[[], None]) -> None:
        self._free: Callable[[], None] | None = free

    def release(self) -> None:
        """Free the slot. Repeating it has no effect."""
        free, self._free = self._free, None
        if free is not None:
            free()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
                 ) -> None:
        self.release()


class SlotPool:
    """The slots of one kind, for use in one event loop.

    An operator may use every free slot. One viewer may use ``viewer_share`` of them, and all viewers together all but
    ``operator_share``. ``what`` names the kind in errors, ``key`` is its configuration key.
    """

    def __init__(self, size: int, limits: LimitsConfig, key: str, what: str, status: int = 429,
                 retry_seconds: int = 10) -> None:
        self._size = size
        self._each = math.ceil(size * limits.viewer_share)
        self._viewers = size - math.floor(size * limits.operator_share)
        self._key = f"services.controller.limits.{key}"
        self._what = what
        self._status = status
        self._headers = {"Retry-After": str(retry_seconds)}
        self._taken = 0
        self._by_viewer: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """Number of slots in use."""
        return self._taken

    def take(self, holder: Caller | str) -> Slot:
        """Take a slot for a caller, or for an address without one. Raise Problem if the holder may have no more."""
        if isinstance(holder, Caller) and holder.role >= Role.OPERATOR:
            if self._taken >= self._size:
                raise self._refusal(f"{self._taken} {self._what}, the maximum ({self._key})")
            self._taken += 1
            return Slot(self._free)
        name = holder.name if isinstance(holder, Caller) else f"address {holder}"
        if self._by_viewer[name] >= self._each:
            raise self._refusal(f"{self._each} {self._what} belong to {name}, the maximum of one viewer ({self._key}, "
                                "services.controller.limits.viewer_share)")
        if self._taken >= self._size or self._by_viewer.total() >= self._viewers:
            raise self._refusal(f"{self._taken} {self._what}, the maximum for viewers ({self._key}, "
                                "services.controller.limits.operator_share)")
        self._taken += 1
        self._by_viewer[name] += 1
        return Slot(lambda: self._free(name))

    def _free(self, name: str = "") -> None:
        self._taken -= 1
        if name:
            self._by_viewer[name] -= 1
            if not self._by_viewer[name]:
                del self._by_viewer[name]

    def _refusal(self, reason: str) -> Problem:
        return Problem(self._status, f"{reason}; try again later", headers=dict(self._headers))


class ReleasingResponse(StreamingResponse):
    """Streaming response that calls ``release`` at its end, even if the client leaves before the first byte."""

    def __init__(self, content: Any, release: Callable[[], None], **options: Any) -> None:
        super().__init__(content, **options)
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()

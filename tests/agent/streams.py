"""CUDA streams that only record calls, to test the order of copies and steps without a GPU."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

LOG: list[str] = []


class Event:
    def __init__(self, blocking: bool = False) -> None:
        self.name, self.blocking = "", blocking

    def record(self, stream: "Stream") -> None:
        self.name = f"{stream.name}@{len(LOG)}"
        LOG.append(f"{stream.name}: record {self.name}")

    def synchronize(self) -> None:
        """Record that the host waits, sleeping if the event is blocking."""
        waits = "sleeps" if self.blocking else "waits"
        LOG.append(f"{threading.current_thread().name} {waits} until {self.name}")


class Stream:
    def __init__(self, name: str) -> None:
        self.name = name

    def wait_event(self, event: Event) -> None:
        LOG.append(f"{self.name}: wait for {event.name}")


COPY, MAIN = Stream("copy"), Stream("main")


def write_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace PyTorch's streams: MAIN is the current one, COPY the only one that is entered."""

    @contextmanager
    def within(stream: Stream) -> Iterator[None]:
        assert stream is COPY
        yield

    LOG.clear()
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "stream", within)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: MAIN)

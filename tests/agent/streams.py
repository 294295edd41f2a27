"""CUDA streams that only write down what they are told, for the order of copies and steps where there is no GPU."""

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
        """The host waits; asleep, where the event was made so."""
        waits = "sleeps" if self.blocking else "waits"
        LOG.append(f"{threading.current_thread().name} {waits} until {self.name}")


class Stream:
    def __init__(self, name: str) -> None:
        self.name = name

    def wait_event(self, event: Event) -> None:
        LOG.append(f"{self.name}: wait for {event.name}")


COPY, MAIN = Stream("copy"), Stream("main")


def write_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts them in the place of PyTorch's: MAIN is the current stream, COPY the only one that is entered."""

    @contextmanager
    def within(stream: Stream) -> Iterator[None]:
        assert stream is COPY
        yield

    LOG.clear()
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "stream", within)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: MAIN)

"""Output to terminals, pipes and files that close, stop or fill up."""

import os
import pty
import threading
import time
from io import TextIOWrapper
from typing import TextIO

import pytest
from rich.panel import Panel

from five.cli.terminal import QUEUED_WRITES, Terminal


@pytest.fixture(autouse=True)
def patient_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write everything that is queued, also where the writing thread has to wait for a processor."""
    monkeypatch.setattr("five.cli.terminal.CLOSE_SECONDS", 60.0)


def opened(fd: int, encoding: str = "utf-8") -> TextIOWrapper:
    return open(fd, "w", encoding=encoding, closefd=False)


def closed_pipe() -> TextIO:
    read, write = os.pipe()
    os.close(read)
    return opened(write)


def closed_terminal() -> TextIO:
    controller, terminal = pty.openpty()
    stream = opened(terminal)
    os.close(controller)
    return stream


def full_disk() -> TextIO:
    return open("/dev/full", "w")


@pytest.mark.parametrize("stream", [closed_pipe, closed_terminal, full_disk, lambda: None],
                         ids=["closed pipe", "closed terminal", "full disk", "no output"])
def test_output_that_fails_raises_nothing(stream: object, caplog: pytest.LogCaptureFixture,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", None)  # as after `five train >&-`
    caplog.set_level("INFO", "five.cli.terminal")
    with Terminal(stream()) as terminal:  # type: ignore[operator]
        for number in range(3):
            terminal.say(f"line {number}")
            terminal.show(Panel("figures"))
    assert len(caplog.records) <= 1


def test_lines_reach_the_stream_unwrapped() -> None:
    read, write = os.pipe()
    with Terminal(opened(write)) as terminal:
        terminal.say("[" + "x" * 300 + "] ±")
        terminal.say("run [bold]trial[/bold]", markup=True)
        terminal.say("cluster.py:100: no emoji")
    os.close(write)
    with open(read, encoding="utf-8") as pipe:
        assert pipe.read() == "[" + "x" * 300 + "] ±\nrun trial\ncluster.py:100: no emoji\n"


@pytest.mark.parametrize(("environment", "on_terminal", "draws"), [
    ({"TERM": "xterm"}, True, True), ({"TERM": "xterm", "NO_COLOR": "1"}, True, True), ({"TERM": "dumb"}, True, False),
    ({"TERM": "xterm", "FORCE_COLOR": "1"}, False, False)])
def test_panel_needs_a_terminal_that_redraws(environment: dict[str, str], on_terminal: bool, draws: bool,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    read, write = pty.openpty() if on_terminal else os.pipe()
    with Terminal(opened(write)) as terminal:
        assert terminal.is_terminal is draws
    os.close(write)
    os.close(read)


def test_characters_that_the_encoding_lacks_are_replaced() -> None:
    read, write = os.pipe()
    with Terminal(opened(write, "ascii")) as terminal:
        terminal.say("12.3 ± 1.0")
    os.close(write)
    with open(read, encoding="ascii") as pipe:
        assert pipe.read() == "12.3 ? 1.0\n"


def test_stopped_reader_delays_nothing() -> None:
    read, write = os.pipe()
    terminal = Terminal(opened(write))
    began = time.monotonic()
    for _ in range(QUEUED_WRITES + 500):  # more than the pipe and the queue hold
        terminal.say("x" * 200)
    assert time.monotonic() - began < 20
    received = bytearray()

    def read_all() -> None:
        while part := os.read(read, 65536):
            received.extend(part)

    reader = threading.Thread(target=read_all)
    reader.start()
    with terminal:
        pass
    os.close(write)
    reader.join(60)
    os.close(read)
    lines = received.decode().splitlines()
    assert len(lines) >= QUEUED_WRITES and set(lines) == {"x" * 200}


def test_output_returns_when_the_disk_has_space_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "five.cli.terminal")
    full = full_disk()
    read, write = os.pipe()
    with Terminal(full) as terminal:
        terminal.say("lost")
        while not caplog.records:
            time.sleep(0.01)
        os.dup2(write, full.fileno())
        terminal.say("written")
    os.close(write)
    full.close()
    with open(read) as pipe:
        assert pipe.read() == "written\n"

"""Processes that run have to answer; those that do not run are not asked."""

import socket
import subprocess
import sys

import pytest

from rapid.telemetry.pages import start_pages
from rapid.telemetry.probe import hanging


@pytest.fixture
def port() -> int:
    """One of two free ports in a row."""
    for _ in range(100):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            found = int(first.getsockname()[1])
            try:
                second.bind(("127.0.0.1", found + 1))
            except OSError:
                continue
            return found
    raise AssertionError("no two free ports in a row")


def test_nobody_there_is_alive(port: int) -> None:
    """The agent waits for the group."""
    assert hanging(port, 2) == []


def test_who_answers_is_alive(port: int) -> None:
    pages = start_pages(port, not_ready=lambda: "waits for its peers")
    try:
        assert hanging(port, 2) == []
    finally:
        pages.close()


def test_who_listens_and_does_not_answer_hangs(port: int) -> None:
    pages = start_pages(port)
    with socket.socket() as second:
        second.bind(("127.0.0.1", port + 1))
        second.listen()
        try:
            assert hanging(port, 2, 0.2) == [f"port {port + 1}: timed out"]
        finally:
            pages.close()


def test_the_command_says_so_by_its_exit_status(port: int) -> None:
    command = [sys.executable, "-m", "rapid.telemetry.probe", str(port), "1"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "alive\n"
    with socket.socket() as second:
        second.bind(("127.0.0.1", port))
        second.listen()
        second.settimeout(10)
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        second.accept()[0].close()
        assert f"port {port}: " in running.communicate(timeout=20)[0] and running.returncode == 1

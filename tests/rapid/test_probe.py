"""The startup and liveness probe of a machine's processes."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from five.local.cluster import free_ports, is_free
from rapid.telemetry.pages import start_pages
from rapid.telemetry.probe import find_dead


@pytest.fixture
def port() -> int:
    """First of two consecutive free ports."""
    return next(port for port in free_ports(100) if is_free("127.0.0.1", port + 1))


def test_absent_processes_are_dead(port: int) -> None:
    assert find_dead(port, 2) == [f"port {port}: no process listens", f"port {port + 1}: no process listens"]


def test_responding_process_is_alive(port: int) -> None:
    pages = start_pages(port, not_ready=lambda: "waits for its peers")
    try:
        assert find_dead(port, 1) == []
        assert find_dead(port, 2) == [f"port {port + 1}: no process listens"]
    finally:
        pages.close()


def test_silent_listener_hangs(port: int) -> None:
    pages = start_pages(port)
    with socket.socket() as second:
        second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        second.bind(("127.0.0.1", port + 1))
        second.listen()
        try:
            assert find_dead(port, 2, 1.0) == [f"port {port + 1}: timed out"]
        finally:
            pages.close()


def test_probe_exit_status(port: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rapid.telemetry.probe", str(port), "1"]
    pages = start_pages(port)
    try:
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "alive\n"
    finally:
        pages.close()
    waiting = tmp_path / "waiting"
    assert subprocess.run([*command, f"--waiting={waiting}"], capture_output=True).returncode == 1
    waiting.write_text("waiting for the first pod\n")
    done = subprocess.run([*command, f"--waiting={waiting}"], capture_output=True, text=True, check=True)
    assert done.stdout == "alive: waiting for the first pod\n"
    with socket.socket() as second:
        second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        second.bind(("127.0.0.1", port))
        second.listen()
        second.settimeout(60)
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        second.accept()[0].close()
        assert f"port {port}: " in running.communicate(timeout=60)[0] and running.returncode == 1

"""A pod of an optimizer group starts torchrun when the group's first pod takes connections."""

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from five.services.optimizer import first_pod

ECHO = [sys.executable, "-c", "import sys; print(' '.join(sys.argv[1:]))", "joined"]


def start(waiting: Path, address: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-m", "five.services.optimizer.first_pod", f"--waiting={waiting}",
                             address, *ECHO, "--nnodes=2"], stdout=subprocess.PIPE, text=True)


def test_first_pod_starts_at_once(tmp_path: Path) -> None:
    waiting = tmp_path / "waiting"
    waiting.write_text("left by a killed container")
    running = start(waiting, f"{socket.gethostname()}.five-optimizer.five.svc:1")
    assert running.communicate(timeout=30)[0] == "joined --nnodes=2\n"
    assert not waiting.exists()


def test_other_pods_wait_until_the_first_one_listens(tmp_path: Path) -> None:
    waiting = tmp_path / "waiting"
    with socket.socket() as first:
        first.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{first.getsockname()[1]}"
        running = start(waiting, address)
        until = time.monotonic() + 30
        while not (waiting.exists() and waiting.read_text()) and time.monotonic() < until:
            time.sleep(0.05)
        assert waiting.read_text() == f"waiting for the group's first pod at {address}\n" and running.poll() is None
        first.listen()
        assert running.communicate(timeout=30)[0] == "joined --nnodes=2\n"
    assert not waiting.exists()


def test_each_attempt_resolves_the_name_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pod's name moves from an address that drops packets to its new address."""
    dropping, new = "192.0.2.1", "127.0.0.1"  # 192.0.2.0/24 is reserved for documentation
    resolved: list[str] = []
    with socket.socket() as first:
        first.bind((new, 0))
        first.listen()
        port = first.getsockname()[1]

        def resolve(host: str, service: object, *more: object) -> list[tuple[object, ...]]:
            resolved.append(host)
            address = dropping if len(resolved) == 1 else new
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        monkeypatch.setattr(first_pod, "ATTEMPT_SECONDS", 0.3)
        thread = threading.Thread(target=first_pod.wait_for_first_pod, daemon=True,
                                  args=("five-optimizer-0.five-optimizer", port, tmp_path / "waiting"))
        thread.start()
        thread.join(timeout=10)
    assert not thread.is_alive() and len(resolved) == 2


@pytest.mark.parametrize("address", ["five-optimizer-0", "host:", ":29400"])
def test_an_invalid_address_is_refused(tmp_path: Path, address: str) -> None:
    done = subprocess.run([sys.executable, "-m", "five.services.optimizer.first_pod",
                           f"--waiting={tmp_path / 'waiting'}", address, "true"], capture_output=True, text=True)
    assert done.returncode == 2 and "expected HOST:PORT" in done.stderr

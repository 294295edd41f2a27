"""Start of a pod's torchrun agent, once the group's first pod takes connections.

    python -m five.services.optimizer.first_pod --waiting FILE HOST:PORT COMMAND ...

torchrun resolves the rendezvous address once and dials it with a timeout of minutes. Where a network policy drops
packets, a dial to the address of a pod that was just replaced blocks for all of that time. This module resolves the
name again for each short attempt, then becomes COMMAND. The first pod itself, whose name HOST begins with, starts at
once. FILE exists during the wait and says what for; the pod's probes read it.
"""

import argparse
import logging
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger("five.services.optimizer.first_pod")

ATTEMPT_SECONDS = 2.0  # timeout of one attempt
PAUSE_SECONDS = 0.5
LOG_SECONDS = 60.0


def accepts(host: str, port: int) -> bool:
    """Return whether a process at the host's present address accepts a connection."""
    try:
        socket.create_connection((host, port), ATTEMPT_SECONDS).close()
    except OSError:
        return False
    return True


def wait_for_first_pod(host: str, port: int, waiting: Path, reachable: Callable[[str, int], bool] = accepts) -> None:
    """Wait until the group's first pod accepts connections; return at once in that pod."""
    waiting.unlink(missing_ok=True)  # of a container that was killed during its wait
    if host.partition(".")[0] == socket.gethostname():
        return
    reported = None
    while not reachable(host, port):
        if reported is None:
            waiting.write_text(f"waiting for the group's first pod at {host}:{port}\n", encoding="utf-8")
        if reported is None or time.monotonic() - reported >= LOG_SECONDS:
            log.info("waiting for the group's first pod address=%s:%d", host, port)
            reported = time.monotonic()
        time.sleep(PAUSE_SECONDS)
    waiting.unlink(missing_ok=True)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    parser = argparse.ArgumentParser(prog="python -m five.services.optimizer.first_pod",
                                     description="Start torchrun once the group's first pod takes connections.")
    parser.add_argument("--waiting", type=Path, required=True, metavar="FILE", help="file that exists while it waits")
    parser.add_argument("address", metavar="HOST:PORT", help="rendezvous of the group, at its first pod")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="torchrun and its arguments")
    given = parser.parse_args()
    host, _, port = given.address.rpartition(":")
    if not host or not port.isdecimal() or not given.command:
        parser.error(f"got {given.address!r} and command {given.command}: expected HOST:PORT and a command")
    wait_for_first_pod(host, int(port), given.waiting)
    os.execvp(given.command[0], given.command)


if __name__ == "__main__":
    main()

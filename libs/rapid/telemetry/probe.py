"""Startup and liveness probe of all processes of a machine: ``python -m rapid.telemetry.probe PORT COUNT``.

It is for a pod whose processes an agent starts and restarts. Every process must respond. With
``--waiting FILE`` the pod also counts as alive while FILE exists: the agent is not started yet.
"""

import argparse
import http.client
import sys
from pathlib import Path

SECONDS = 5.0  # response timeout


def find_dead(port: int, count: int, seconds: float = SECONDS) -> list[str]:
    """Return what is wrong with those of ``count`` processes that do not respond. Their pages are at ``port`` and the
    ports after it."""
    found = []
    for current in range(port, port + count):
        connection = http.client.HTTPConnection("127.0.0.1", current, timeout=seconds)
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                found.append(f"port {current}: {answer.status} {answer.read(500).decode('utf-8', 'replace').strip()}")
        except ConnectionRefusedError:
            found.append(f"port {current}: no process listens")
        except (OSError, http.client.HTTPException) as error:
            found.append(f"port {current}: {error or type(error).__name__}")
        finally:
            connection.close()
    return found


def main() -> int:
    """Print what is wrong, or that all are alive. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m rapid.telemetry.probe", description="Check a pod's processes.")
    parser.add_argument("port", type=int, help="port of the first process's pages")
    parser.add_argument("count", type=int, help="number of processes, at consecutive ports")
    parser.add_argument("--waiting", type=Path, metavar="FILE", help="file that exists while the processes are not "
                        "started yet")
    given = parser.parse_args()
    failures = find_dead(given.port, given.count)
    if failures and given.waiting is not None and given.waiting.exists():
        print(f"alive: {given.waiting.read_text(encoding='utf-8').strip()}")
        return 0
    print("\n".join(failures) or "alive")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

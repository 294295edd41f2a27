"""Liveness probe of all processes of a machine: ``python -m rapid.telemetry.probe PORT COUNT``.

It is for a pod whose processes come and go under an agent such as torchrun. A process that does not listen is not
running, which is the agent's concern. A process that listens and does not respond hangs.
"""

import http.client
import sys

SECONDS = 5.0  # response timeout


def find_hanging(port: int, count: int, seconds: float = SECONDS) -> list[str]:
    """Return what is wrong with those of ``count`` processes that listen. Their pages are at ``port`` and the ports
    after it."""
    found = []
    for current in range(port, port + count):
        connection = http.client.HTTPConnection("127.0.0.1", current, timeout=seconds)
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                found.append(f"port {current}: {answer.status} {answer.read(500).decode('utf-8', 'replace').strip()}")
        except ConnectionRefusedError:
            pass
        except (OSError, http.client.HTTPException) as error:
            found.append(f"port {current}: {error or type(error).__name__}")
        finally:
            connection.close()
    return found


if __name__ == "__main__":
    troubles = find_hanging(int(sys.argv[1]), int(sys.argv[2]))
    print("\n".join(troubles) or "alive")
    sys.exit(bool(troubles))

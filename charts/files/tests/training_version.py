"""Test that the run publishes a new version.

usage: training_version.py URL SECONDS     a viewer's token from FIVE_VIEWER_TOKEN_FILE
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy inside the cluster

RUNS_ON = ("starting", "running", "warming")


def look(url):
    """Return the run's status, or the reason why it is not available."""
    headers = {"Authorization": f"Bearer {Path(os.environ['FIVE_VIEWER_TOKEN_FILE']).read_text().strip()}"}
    request = urllib.request.Request(f"{url}/v1/status", headers=headers)
    try:
        with OPENER.open(request, timeout=10) as answer:
            return json.loads(answer.read()), ""
    except urllib.error.HTTPError as error:
        return None, f"{error.code} {error.read().decode()}"
    except OSError as error:
        return None, str(error)


def main(url, seconds):
    end = time.monotonic() + seconds
    first = None
    while True:
        status, problem = look(url)
        if status is not None:
            if status["status"] not in RUNS_ON:
                sys.exit(f"the run is {status['status']} ({status['reason']}): nothing is learnt until it is resumed")
            head = status["version"]
            if head is not None and first is not None and head > first:
                print(f"version {head} came after version {first}")
                return
            if first is None and head is not None:
                first = head
            problem = f"the run is {status['status']}, its newest version {head}"
        if time.monotonic() > end:
            sys.exit(f"no new version within {seconds:g} s: {problem}")
        time.sleep(2)


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"), float(sys.argv[2]))

"""Test of the controller's REST API: alive, ready, and closed without a token.

usage: rest_endpoint.py URL SECONDS     a viewer's token from FIVE_VIEWER_TOKEN_FILE
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy inside the cluster


def ask(url, token="", method="GET"):
    """Return status and body of a request."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with OPENER.open(urllib.request.Request(url, headers=headers, method=method), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def until(url, seconds, token=""):
    """Return the body of the first response with status 200. Exit with the last response after ``seconds``."""
    end = time.monotonic() + seconds
    while True:
        try:
            status, body = ask(url, token)
        except OSError as error:
            status, body = 0, str(error)
        if status == 200:
            return body
        if time.monotonic() > end:
            sys.exit(f"{url}: {status} {body} after {seconds:g} s")
        time.sleep(1)


def expect(url, status, token="", method="GET"):
    """Exit with an error unless the response has that status."""
    found, body = ask(url, token, method)
    if found != status:
        sys.exit(f"{method} {url}: {found} {body}, expected {status}")


def main(url, seconds):
    until(f"{url}/healthz", seconds)
    until(f"{url}/readyz", seconds)
    viewer = Path(os.environ["FIVE_VIEWER_TOKEN_FILE"]).read_text().strip()
    status = json.loads(until(f"{url}/v1/status", seconds, viewer))
    print(f"run {status['run']}: {status['status']}, version {status['version']}, services {status['services']}")
    expect(f"{url}/v1/status", 401)
    expect(f"{url}/v1/status", 401, "not-a-token-of-this-run")
    expect(f"{url}/v1/pause", 403, viewer, "POST")
    print("the REST API answers, and only to a token")


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"), float(sys.argv[2]))

